package kinds

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"example.com/sample-controller/explore/apiserver"
)

// TestTable shows that the table of built-in kinds is what Kubernetes' own functions say. With -update,
// it writes the table.
func TestTable(t *testing.T) {
	const file = "../../apiserver/zz_generated.kinds.json"
	best := map[schema.GroupKind]schema.GroupVersionResource{}
	table := apiserver.Table{Resources: map[string]apiserver.Traits{}, Defaults: map[string]map[string]any{}}
	k := load()
	for path := range k {
		parts := strings.Split(path, "/")
		if parts[0] == "v1" {
			parts = slices.Insert(parts, 0, "")
		}
		if len(parts) > 3 { // a subresource
			continue
		}
		gvr := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
		gvk, ok := k.kindOf(gvr)
		if ok && version.CompareKubeAwareVersionStrings(gvr.Version, best[gvk.GroupKind()].Version) > 0 {
			best[gvk.GroupKind()] = gvr
		}
	}
	for _, gvr := range best {
		gvk, _ := k.kindOf(gvr)
		table.Resources[path(gvr, "")] = k.traits(gvr, gvk)
		c := constants{gvk, table.Defaults}
		c.add(scheme.Scheme.AllKnownTypes()[gvk], nil, nil)
	}
	maps.DeleteFunc(table.Defaults, func(_ string, values map[string]any) bool { return len(values) == 0 })
	want := string(must(json.MarshalIndent(table, "", " "))) + "\n"
	if flag.Lookup("update").Value.String() == "true" {
		must(0, os.WriteFile(file, []byte(want), 0o644))
	}
	if got := must(os.ReadFile(file)); string(got) != want {
		t.Errorf("%s is not what Kubernetes says; to write it: go -C explore/board test ./kinds -run TestTable -update", file)
	}
}

// kindOf returns the kind of a resource, and whether client-go knows it.
func (k kinds) kindOf(gvr schema.GroupVersionResource) (gvk schema.GroupVersionKind, known bool) {
	gvks, _, err := legacyscheme.Scheme.ObjectKinds(k.store(gvr, "").New())
	gvk = gvr.GroupVersion().WithKind(must(gvks, err)[0].Kind)
	return gvk, scheme.Scheme.Recognizes(gvk)
}

func (k kinds) traits(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind) apiserver.Traits {
	store := k.store(gvr, "")
	t := apiserver.Traits{Kind: gvk.Kind, Namespaced: store.CreateStrategy.NamespaceScoped(),
		Conditional:      !store.UpdateStrategy.AllowUnconditionalUpdate(context.Background()),
		CreatedByUpdate:  store.UpdateStrategy.AllowCreateOnUpdate(context.Background()),
		ReturnedByDelete: store.ReturnDeletedObject}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(gvk)
	created := must(internal(empty))
	store.CreateStrategy.PrepareForCreate(context.Background(), created)
	t.Generation = must(meta.Accessor(created)).GetGeneration() > 0
	storage := k[path(gvr, "")]
	if named, ok := storage.(rest.ShortNamesProvider); ok {
		t.ShortNames = named.ShortNames()
	}
	if named, ok := storage.(rest.CategoriesProvider); ok {
		t.Categories = named.Categories()
	}
	for _, name := range slices.Sorted(maps.Keys(k)) {
		sub, is := strings.CutPrefix(name, path(gvr, "")+"/")
		if _, updates := k[name].(rest.Updater); is && updates {
			t.Subresources = append(t.Subresources, sub)
		}
	}
	t.Fields = selectable(gvk, scheme.Scheme.AllKnownTypes()[gvk], "")
	return t
}

// selectable returns the fields below a path by which objects are selected.
func selectable(gvk schema.GroupVersionKind, t reflect.Type, path string) (fields []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if _, _, err := legacyscheme.Scheme.ConvertFieldLabel(gvk, path+name, ""); err == nil && !strings.HasPrefix(path, "metadata") {
			fields = append(fields, path+name)
		}
		if child := t.Field(i).Type; name != "" && child.Kind() == reflect.Struct && path == "" {
			fields = append(fields, selectable(gvk, child, name+".")...)
		}
	}
	return fields
}

// constants finds the fields of the Go types of a kind that get the same value wherever such a value
// is, whatever its other fields are.
type constants struct {
	gvk    schema.GroupVersionKind
	values map[string]map[string]any
}

// add adds those of a type, and of all types in it. The path has the numbers of the fields that lead
// to it.
func (c constants) add(t reflect.Type, path []int, outer []reflect.Type) {
	name := apiserver.TypeName(t)
	found := map[string]any{}
	for key, value := range c.defaulted(path, "") {
		_, err := time.Parse(time.RFC3339, fmt.Sprint(value)) // of when it is set
		if err != nil && reflect.DeepEqual(c.defaulted(path, key)[key], value) {
			found[key] = value
		}
	}
	if known, ok := c.values[name]; ok {
		maps.DeleteFunc(found, func(key string, value any) bool { return !reflect.DeepEqual(known[key], value) })
	}
	c.values[name] = found
	for i := range t.NumField() {
		child := elementOf(t.Field(i).Type)
		if strings.HasPrefix(child.PkgPath(), "k8s.io/api/") && child.Kind() == reflect.Struct && !slices.Contains(outer, child) {
			c.add(child, append(slices.Clip(path), i), append(slices.Clip(outer), t))
		}
	}
}

// defaulted returns the fields of the value at a path that get defaults, in an object that has nothing
// else. If except is not "", all other fields of the value are set.
func (c constants) defaulted(path []int, except string) map[string]any {
	object := must(scheme.Scheme.New(c.gvk))
	at := reflect.ValueOf(object).Elem()
	for _, i := range path {
		at = valueOf(at.Field(i))
	}
	if except != "" {
		fill(at, except)
	}
	before := must(runtime.DefaultUnstructuredConverter.ToUnstructured(at.Addr().Interface()))
	legacyscheme.Scheme.Default(object)
	after := must(runtime.DefaultUnstructuredConverter.ToUnstructured(at.Addr().Interface()))
	maps.DeleteFunc(after, func(key string, value any) bool {
		isSet := before[key] != nil && before[key] != ""
		return isSet || reflect.DeepEqual(value, before[key])
	})
	return after
}

// fill sets all fields of a struct but one.
func fill(value reflect.Value, except string) {
	for i := range value.NumField() {
		field, name := value.Field(i), strings.Split(value.Type().Field(i).Tag.Get("json"), ",")[0]
		switch kind := field.Kind(); {
		case name == except:
		case kind == reflect.Struct && name == "":
			fill(field, except)
		case kind == reflect.String:
			field.SetString("x:1")
		case kind == reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case kind == reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		}
	}
}

// elementOf returns what a pointer or a list leads to.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// valueOf does the same with a value, and makes it.
func valueOf(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return valueOf(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return valueOf(v.Index(0))
	}
	return v
}
