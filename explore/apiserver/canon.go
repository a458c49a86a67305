package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// structType is what canon knows of a Go struct: its fields by their names in JSON, and those that
// JSON always has.
type structType struct {
	fields map[string]structField
	always []structField
}

type structField struct {
	name      string
	goType    reflect.Type
	omitempty bool
}

var (
	structTypes   sync.Map // of reflect.Type: *structType
	timeType      = reflect.TypeFor[metav1.Time]()
	microTimeType = reflect.TypeFor[metav1.MicroTime]()
	quantityType  = reflect.TypeFor[resource.Quantity]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
)

// canon brings a value into the form that it has after it was read into, and written from, a Go
// type, with defaults. Fields that the type does not have stay, unlike there.
func canon(value any, t reflect.Type, path string) (any, error) {
	if t.Kind() == reflect.Pointer {
		return canon(value, t.Elem(), path)
	}
	switch {
	case t == timeType:
		return canonTime(value, time.RFC3339, time.RFC3339, path)
	case t == microTimeType:
		return canonTime(value, metav1.RFC3339Micro, metav1.RFC3339Micro, path)
	case t == quantityType:
		quantity, err := resource.ParseQuantity(fmt.Sprint(value))
		return quantity.String(), err
	case reflect.PointerTo(t).Implements(unmarshaler):
		return value, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return canonStruct(value, t, path)
	case reflect.Map:
		return canonMap(value, t, path)
	case reflect.Slice:
		if list, ok := value.([]any); ok && t.Elem().Kind() != reflect.Uint8 {
			return canonSlice(list, t, path)
		}
		return matches(value, t, path, t.Elem().Kind() == reflect.Uint8)
	case reflect.String:
		return matches(value, t, path, true)
	case reflect.Bool:
		_, ok := value.(bool)
		return typed(value, t, path, ok)
	case reflect.Float64, reflect.Float32:
		if i, ok := value.(int64); ok {
			return float64(i), nil
		}
		_, ok := value.(float64)
		return typed(value, t, path, ok)
	case reflect.Interface:
		return value, nil
	}
	_, ok := value.(int64)
	return typed(value, t, path, ok)
}

func matches(value any, t reflect.Type, path string, isString bool) (any, error) {
	_, ok := value.(string)
	return typed(value, t, path, ok && isString)
}

// typed returns the value, or an error if it does not match its type.
func typed(value any, t reflect.Type, path string, ok bool) (any, error) {
	if ok {
		return value, nil
	}
	return nil, fmt.Errorf("json: cannot unmarshal %s into Go struct field %s of type %v",
		jsonType(value), strings.TrimPrefix(path, "."), t)
}

func jsonType(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string, bool:
		return fmt.Sprintf("%T", value)
	}
	return "number"
}

func canonTime(value any, in, out, path string) (any, error) {
	text, ok := value.(string)
	if !ok {
		return typed(value, timeType, path, false)
	}
	if text == "" {
		return nil, nil
	}
	parsed, err := time.Parse(in, text)
	if err != nil {
		return nil, err
	}
	return parsed.UTC().Format(out), nil
}

func canonMap(value any, t reflect.Type, path string) (any, error) {
	in, ok := value.(map[string]any)
	if !ok {
		return typed(value, t, path, false)
	}
	for key, element := range in {
		if element == nil && t.Elem().Kind() != reflect.Interface {
			element = zero(t.Elem())
		}
		var err error
		if in[key], err = canonElement(element, t.Elem(), path); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func canonSlice(list []any, t reflect.Type, path string) (_ any, err error) {
	for i, element := range list {
		if list[i], err = canonElement(element, t.Elem(), path); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func canonElement(value any, t reflect.Type, path string) (any, error) {
	if value == nil {
		return nil, nil
	}
	return canon(value, t, path)
}

func canonStruct(value any, t reflect.Type, path string) (any, error) {
	in, ok := value.(map[string]any)
	if !ok {
		return typed(value, t, path, false)
	}
	s := structOf(t)
	for name, value := range in {
		field, known := s.fields[name]
		switch {
		case !known:
			continue
		case value == nil:
			delete(in, name)
			continue
		}
		value, err := canon(value, field.goType, path+"."+name)
		if err != nil {
			return nil, err
		}
		if in[name] = value; field.omitempty && isZero(value, field.goType) {
			delete(in, name)
		}
	}
	if setDefaults := defaults()[t]; setDefaults != nil {
		setDefaults(in)
	}
	for _, field := range s.always {
		if in[field.name] == nil {
			in[field.name] = zero(field.goType)
		}
	}
	return in, nil
}

// isZero reports whether the value is what `omitempty` leaves out.
func isZero(value any, t reflect.Type) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0 && t.Kind() == reflect.Map
	case []any:
		return len(value) == 0
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Struct {
		return false
	}
	return value == "" || value == false || value == int64(0) || value == float64(0)
}

// zero returns what JSON has for a zero value of a type.
func zero(t reflect.Type) any {
	switch t.Kind() {
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(unmarshaler) {
			if t == quantityType {
				return "0"
			}
			return nil
		}
		value, _ := canonStruct(map[string]any{}, t, "")
		return value
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Float64, reflect.Float32:
		return float64(0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int64(0)
	}
	return nil
}

// structOf returns what is known of a struct.
func structOf(t reflect.Type) *structType {
	if known, ok := structTypes.Load(t); ok {
		return known.(*structType)
	}
	s := &structType{fields: map[string]structField{}}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
			continue
		case field.Anonymous && name == "":
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			maps.Copy(s.fields, structOf(embedded).fields)
			s.always = append(s.always, structOf(embedded).always...)
			continue
		}
		f := structField{name, field.Type, strings.Contains(options, "omitempty")}
		s.fields[name] = f
		isStruct := field.Type.Kind() == reflect.Struct && !strings.Contains(options, "omitzero")
		if isStruct || !f.omitempty && !strings.Contains(options, "omitzero") {
			s.always = append(s.always, f)
		}
	}
	structTypes.Store(t, s)
	return s
}

// canonical brings an object of this kind into canonical form: a built-in one all, a custom one its
// metadata only.
func (k *kind) canonical(object map[string]any) error {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	metaType := reflect.TypeFor[metav1.ObjectMeta]()
	if _, err := canonStruct(metadata, metaType, "ObjectMeta.metadata"); err != nil {
		return err
	}
	for name := range metadata { // the metadata has no unknown fields
		if _, known := structOf(metaType).fields[name]; !known {
			delete(metadata, name)
		}
	}
	if k.goType == nil {
		return nil
	}
	_, err := canonStruct(object, k.goType, k.gvk.Kind)
	return err
}

// deepCopy returns a copy of an object's content.
func deepCopy(object map[string]any) map[string]any { return runtime.DeepCopyJSON(object) }
