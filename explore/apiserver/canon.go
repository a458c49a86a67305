package apiserver

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	converter    = runtime.DefaultUnstructuredConverter
	unmarshaler  = reflect.TypeFor[json.Unmarshaler]()
	metadataType = reflect.TypeFor[metav1.ObjectMeta]()
	structFields sync.Map // the fields of a Go struct by their names: map[string]reflect.Type
)

// canonical brings an object into the form that it has after it was read into a Go type and written
// from there, with defaults. Fields that this version of the type does not have stay, but for those
// of the metadata. Of a custom resource, it is the metadata only.
func (k *kind) canonical(object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata, err := throughType(metadata, metadataType)
	if err != nil {
		return err
	}
	object["metadata"] = metadata
	if k.goType == nil {
		return nil
	}
	out, err := throughType(object, k.goType)
	if err != nil {
		return err
	}
	finish(object, out, k.goType)
	clear(object)
	maps.Copy(object, out)
	return nil
}

// throughType reads a value into a Go type, and returns what that has of it.
func throughType(value map[string]any, t reflect.Type) (map[string]any, error) {
	typed := reflect.New(t).Interface()
	if err := converter.FromUnstructured(value, typed); err != nil {
		return nil, err
	}
	return converter.ToUnstructured(typed)
}

// finish adds what was in a value but not in its Go type, and the defaults.
func finish(in, out any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return
	}
	switch out := out.(type) {
	case []any:
		list, _ := in.([]any)
		for i, element := range out {
			if i < len(list) {
				finish(list[i], element, t.Elem())
			}
		}
	case map[string]any:
		content, _ := in.(map[string]any)
		if t.Kind() == reflect.Map {
			for name, element := range out {
				finish(content[name], element, t.Elem())
			}
			return
		}
		fields := fieldsOf(t)
		for name, value := range content {
			if fields[name] == nil {
				out[name] = value
			}
		}
		if setDefaults := defaults()[t]; setDefaults != nil {
			setDefaults(out)
		}
		for name, value := range out {
			if field := fields[name]; field != nil {
				finish(content[name], value, field)
			}
		}
	}
}

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := structFields.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			maps.Copy(fields, fieldsOf(field.Type))
		case name != "-" && field.IsExported():
			fields[name] = field.Type
		}
	}
	structFields.Store(t, fields)
	return fields
}
