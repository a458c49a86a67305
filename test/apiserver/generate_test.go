package apiserver

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func generate(r *rand.Rand) []step {
	var names []string
	for name := range resources {
		names = append(names, name)
	}
	slices.Sort(names)
	chosen := []string{pick(r, names), pick(r, names)}
	var steps []step
	for range 4 + r.IntN(12) {
		steps = append(steps, one(r, pick(r, chosen)))
	}
	return steps
}

func one(r *rand.Rand, name string) step {
	res := resources[name]
	st := step{Resource: name, Name: pick(r, []string{"a", "a", "b"}), Media: "application/json"}
	options := []string{}
	if maybe(r, 8) {
		options = append(options, "dryRun=All")
	}
	edit := pick(r, append(slices.Clone(common), append(res.edits, res.edits...)...))
	switch kind := r.IntN(100); {
	case kind < 25:
		create(r, &st, edit)
	case kind < 32:
		st.Method, st.Body = "GET", ""
	case kind < 37:
		st.Method, st.Name = "GET", ""
		options = append(options, selectors(r, res)...)
	case kind < 55:
		st.Method, st.Body = "PUT", edit
		subresource(r, &st, res)
	case kind < 65:
		st.Method, st.Body, st.Media = "PATCH", edit, "application/merge-patch+json"
		subresource(r, &st, res)
	case kind < 70:
		st.Method, st.Body, st.Media = "PATCH", edit, "application/strategic-merge-patch+json"
		subresource(r, &st, res)
	case kind < 74:
		jsonPatch(r, &st)
	case kind < 82:
		apply(r, &st, edit, &options)
	case kind < 94:
		st.Method, st.Body = "DELETE", pick(r, []string{"", `{"propagationPolicy": "Foreground"}`,
			`{"propagationPolicy": "Orphan"}`, `{"preconditions": {"uid": "$UID"}}`,
			`{"preconditions": {"resourceVersion": "$RV"}}`, `{"propagationPolicy": "Background"}`,
			`{"propagationPolicy": "Never"}`})
	case kind < 95 && res.namespaced:
		st.Method, st.Name = "DELETE", ""
		options = append(options, selectors(r, res)...)
	default:
		st.Method, st.Name = "WATCH", ""
		options = watchOptions(r)
	}
	if maybe(r, 15) {
		st.Behind = 1 + r.IntN(2)
	}
	st.Query = strings.Join(options, "&")
	return st
}

func create(r *rand.Rand, st *step, edit string) {
	st.Method = "POST"
	if maybe(r, 40) || st.Resource == "namespaces" && strings.Contains(edit, "other") {
		edit = "{}"
	}
	st.Body = merge(resources[st.Resource].valid, `{"metadata": {"name": "`+st.objectName()+`"}}`, edit)
}

func merge(base string, patches ...string) string {
	text := []byte(base)
	for _, patch := range patches {
		merged, err := jsonpatch.MergePatch(text, []byte(patch))
		if err != nil {
			panic(err)
		}
		text = merged
	}
	return string(text)
}

func subresource(r *rand.Rand, st *step, res resource) {
	switch {
	case res.status && (strings.Contains(st.Body, "status") || maybe(r, 15)):
		st.Subresource = "status"
	case res.scale && maybe(r, 15) && st.Method == http.MethodPatch:
		st.Subresource = "scale"
		st.Body = pick(r, []string{`{"spec": {"replicas": 4}}`, `{"spec": {"replicas": -4}}`,
			`{"metadata": {"resourceVersion": "$RV"}, "spec": {"replicas": 5}}`})
	case st.Resource == "namespaces" && st.Method == http.MethodPut && maybe(r, 50):
		st.Subresource = "finalize"
	}
}

func jsonPatch(r *rand.Rand, st *step) {
	st.Method, st.Media = "PATCH", "application/json-patch+json"
	st.Body = pick(r, []string{`[{"op": "add", "path": "/metadata/labels", "value": {"app": "b"}}]`,
		`[{"op": "remove", "path": "/metadata/finalizers"}]`,
		`[{"op": "test", "path": "/metadata/uid", "value": "$UID"}]`,
		`[{"op": "replace", "path": "/metadata/resourceVersion", "value": "$RV"},
		{"op": "add", "path": "/metadata/annotations", "value": {"j": "p"}}]`,
		`[{"op": "replace", "path": "/nothing/there", "value": 1}]`, `{"not": "a list"}`})
}

// apply makes st an apply of an edit, or of a valid object with it.
func apply(r *rand.Rand, st *step, edit string, options *[]string) {
	st.Method, st.Media = "PATCH", "application/apply-patch+yaml"
	res := resources[st.Resource]
	apiVersion := strings.TrimPrefix(strings.TrimPrefix(res.prefix, "/apis/"), "/api/")
	base := `{"metadata": {"annotations": {"is": "applied"}}}` // one without fields owns nothing
	if maybe(r, 70) {
		base = merge(base, res.valid)
	}
	type meta = map[string]any
	header, _ := json.Marshal(meta{"apiVersion": apiVersion, "kind": kinds[st.Resource],
		"metadata": meta{"name": st.objectName()}})
	st.Body = withoutNulls(merge(base, string(header), edit))
	if maybe(r, 95) {
		*options = append(*options, "fieldManager="+pick(r, []string{"one", "two"}))
	}
	if maybe(r, 40) {
		*options = append(*options, "force=true")
	}
	if res.status && (strings.Contains(st.Body, `"status"`) || maybe(r, 10)) {
		st.Subresource = "status"
	}
}

var kinds = map[string]string{"configmaps": "ConfigMap", "leases": "Lease", "events": "Event",
	"serviceaccounts": "ServiceAccount", "namespaces": "Namespace", "deployments": "Deployment",
	"foos": "Foo"}

// withoutNulls drops fields that are null: an applied configuration has none.
func withoutNulls(text string) string {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	var walk func(any)
	walk = func(value any) {
		if content, ok := value.(map[string]any); ok {
			for name, element := range content {
				if walk(element); element == nil {
					delete(content, name)
				}
			}
		}
	}
	walk(value)
	result, _ := json.Marshal(value)
	return string(result)
}

// selectors are options of a list. Namespaces of other sequences must not be seen.
func selectors(r *rand.Rand, res resource) []string {
	if !res.namespaced {
		return []string{"fieldSelector=metadata.name%3D$NS-a"}
	}
	return []string{pick(r, []string{"labelSelector=app%3Da", "labelSelector=app%21%3Da", "limit=1",
		"fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name%21%3Da", "resourceVersion=0",
		"fieldSelector=spec.x%3Da", "labelSelector=%3D%3D", "resourceVersionMatch=Exact", "limit=10"})}
}

// watchOptions are options of a watch that shows the last object of a sequence.
func watchOptions(r *rand.Rand) []string {
	options := []string{"watch=true", "labelSelector=" + pick(r, []string{"app%3Da", "app%21%3Db", ""})}
	return append(options, pick(r, []string{"resourceVersion=0", "", "resourceVersion=$RV",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=$RV",
		"sendInitialEvents=true", "resourceVersionMatch=Exact"}))
}
