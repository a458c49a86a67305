package main

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/lens/model"
)

// object returns a ConfigMap.
func object(name, uid, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"namespace": "default", "name": name, "uid": uid, "resourceVersion": version,
		},
	}}
}

func TestStoreTellsEachChange(t *testing.T) {
	var told []string
	s := &store{resource: "configmaps", see: func(stored model.Stored) {
		told = append(told, fmt.Sprintf("%s %s@%s %v",
			stored.Type, stored.Object.Name, stored.Object.ResourceVersion, stored.Initial))
	}}
	check := func(what string, err error, want ...string) {
		t.Helper()
		slices.Sort(told)
		if err != nil || !slices.Equal(told, want) {
			t.Errorf("%s: %v; told %q, want %q", what, err, told, want)
		}
		told = nil
	}
	check("first list", s.Replace([]any{object("a", "1", "10"), object("b", "2", "11")}, "11"),
		"ADDED a@10 true", "ADDED b@11 true")
	check("added", s.Add(object("c", "3", "12")), "ADDED c@12 false")
	check("modified", s.Update(object("a", "1", "13")), "MODIFIED a@13 false")
	check("the same again", s.Update(object("a", "1", "13")))
	check("deleted", s.Delete(object("a", "1", "14")), "DELETED a@14 false")
	check("a list after a gap", s.Replace([]any{
		object("b", "4", "20"), object("d", "5", "21"),
	}, "21"), "ADDED b@20 false", "ADDED d@21 false", "DELETED b@11 false", "DELETED c@12 false")
}
