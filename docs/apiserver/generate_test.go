package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func generate(r *rand.Rand) []step {
	names := slices.Sorted(maps.Keys(resources))
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
	if maybe(r, 5) {
		edit = `{"metadata": {"fieldOfTomorrow": 1}}`
	}
	type meta = map[string]any
	header, _ := json.Marshal(meta{"apiVersion": apiVersion, "kind": kinds[st.Resource],
		"metadata": meta{"name": st.objectName()}})
	st.Body = merge(base, string(header), edit) // without nulls, as applied configurations are
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

// selectors are options of a list. Namespaces of other sequences must not be seen.
func selectors(r *rand.Rand, res resource) []string {
	if !res.namespaced {
		return []string{"fieldSelector=metadata.name%3D$NS-a"}
	}
	return []string{pick(r, []string{"labelSelector=app%3Da", "labelSelector=app%21%3Da",
		"fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name%21%3Da", "resourceVersion=0",
		"fieldSelector=spec.x%3Da", "labelSelector=%3D%3D", "resourceVersionMatch=Exact"})}
}

// watchOptions are options of a watch that shows the last object of a sequence.
func watchOptions(r *rand.Rand) []string {
	options := []string{"watch=true", "labelSelector=" + pick(r, []string{"app%3Da", "app%21%3Db", ""})}
	return append(options, pick(r, []string{"resourceVersion=0", "", "resourceVersion=$RV",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=$RV",
		"sendInitialEvents=true", "resourceVersionMatch=Exact"}))
}

// step is a request. In its body, $RV and $UID are those of the object's version that was seen last,
// or Behind versions before. With the method PUT, the body is a merge patch of that version.
type step struct {
	Method, Resource, Name, Subresource, Query, Media, Body string
	Behind                                                  int
}

func (st step) String() string {
	behind := ""
	if st.Behind > 0 {
		behind = fmt.Sprintf(" (%d versions behind)", st.Behind)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s%s", st.Method, st.path(), st.Media, st.Body, behind))
}

// resource is one whose objects the sequences are about.
type resource struct {
	prefix     string
	namespaced bool
	valid      string   // the body of a create
	edits      []string // merge patches
	status     bool
}

var resources = map[string]resource{
	"configmaps": {"/api/v1", true, `{"data": {"a": "1"}}`, []string{`{"data": {"a": "2"}}`,
		`{"data": {"a": null, "b": "1"}}`, `{"data": {"a": 1}}`}, false},
	"leases": {"/apis/coordination.k8s.io/v1", true, `{"spec": {"holderIdentity": "x"}}`,
		[]string{`{"spec": {"holderIdentity": "y", "leaseTransitions": 2}}`,
			`{"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}`}, false},
	"serviceaccounts": {"/api/v1", true, `{}`, []string{`{"automountServiceAccountToken": false}`},
		false},
	"namespaces": {"/api/v1", false, `{}`, []string{`{"spec": {"finalizers": []}}`}, true},
	"events": {"/api/v1", true, `{"involvedObject": {"namespace": "$NS", "name": "a", "kind": "Foo"},
		"reason": "R", "message": "m", "type": "Normal", "count": 1}`,
		[]string{`{"count": 2, "message": "n"}`, `{"series": null}`}, false},
	"deployments": {"/apis/apps/v1", true, `{"spec": {"selector": {"matchLabels": {"app": "a"}},
		"template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [
		{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]}}}}`,
		[]string{`{"spec": {"replicas": 2}}`, `{"spec": {"replicas": null}}`,
			`{"spec": {"paused": true}}`, `{"spec": {"template": {"spec": {"containers": [
			{"name": "web", "image": "web"}]}}}}`, `{"status": {"replicas": 3}}`,
			`{"spec": {"replicas": "x"}}`}, true},
	"foos": {"/apis/samplecontroller.k8s.io/v1alpha1", true, `{"kind": "Foo", "spec": {"deploymentName": "a"},
		"apiVersion": "samplecontroller.k8s.io/v1alpha1"}`, []string{`{"spec": {"replicas": 2}}`, `{"spec": {"replicas": null}}`,
		`{"spec": {"replicas": -1}}`, `{"spec": {"deploymentName": "A_"}}`,
		`{"spec": {"deploymentName": null}}`, `{"spec": {"unknown": 1}}`, `{"spec": {"replicas": "x"}}`,
		`{"status": {"replicas": 2, "observedGeneration": 1}}`, `{"status": {"replicas": -2}}`,
		`{"status": {"conditions": [{"type": "Ready", "status": "Maybe", "reason": "R",
			"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`,
		`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R",
			"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`}, true},
}

func (st step) path() string {
	r := resources[st.Resource]
	path := r.prefix
	if r.namespaced {
		path += "/namespaces/$NS"
	}
	path += "/" + st.Resource
	if st.Name != "" && st.Method != http.MethodPost {
		path += "/" + st.objectName()
	}
	if st.Subresource != "" {
		path += "/" + st.Subresource
	}
	if st.Query != "" {
		path += "?" + st.Query
	}
	return path
}

// objectName returns the object's name in the API: Namespaces have unique ones.
func (st step) objectName() string {
	if st.Resource == "namespaces" {
		return "$NS-" + st.Name
	}
	return st.Name
}

// common are edits of the metadata.
var common = []string{`{"metadata": {"labels": {"app": "a"}}}`, `{"metadata": {"labels": {"app": "b"}}}`,
	`{"metadata": {"labels": null}}`, `{"metadata": {"annotations": {"x": "y"}}}`,
	`{"metadata": {"finalizers": ["example.com/a"]}}`, `{"metadata": {"finalizers": null}}`,
	`{"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}`,
	`{"metadata": {"resourceVersion": null}}`, `{"metadata": {"uid": null}}`,
	`{"metadata": {"uid": "00000000-0000-0000-0000-00000000000f"}}`,
	`{"metadata": {"resourceVersion": "$RV"}}`, `{"metadata": {"labels": {"-x-": "a"}}}`,
	`{"metadata": {"generation": 7}}`, `{"metadata": {"ownerReferences": [{"apiVersion": "v1",
	"kind": "ConfigMap", "name": "a", "uid": "1", "controller": true}]}}`,
	`{"metadata": {"ownerReferences": [{"name": "a"}]}}`, `{"metadata": {"name": "other"}}`, `{}`, `{"kind": null}`}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func maybe(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }
