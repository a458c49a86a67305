package apiserver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
)

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
	scale      bool
}

var resources = map[string]resource{
	"configmaps": {"/api/v1", true, `{"data": {"a": "1"}}`, []string{`{"data": {"a": "2"}}`,
		`{"data": {"a": null, "b": "1"}}`, `{"data": {"a": 1}}`}, false, false},
	"leases": {"/apis/coordination.k8s.io/v1", true, `{"spec": {"holderIdentity": "x"}}`,
		[]string{`{"spec": {"holderIdentity": "y", "leaseTransitions": 2}}`,
			`{"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}`}, false, false},
	"serviceaccounts": {"/api/v1", true, `{}`, []string{`{"automountServiceAccountToken": false}`},
		false, false},
	"namespaces": {"/api/v1", false, `{}`, []string{`{"spec": {"finalizers": []}}`}, true, false},
	"events": {"/api/v1", true, `{"involvedObject": {"namespace": "$NS", "name": "a", "kind": "Foo"},
		"reason": "R", "message": "m", "type": "Normal", "count": 1}`,
		[]string{`{"count": 2, "message": "n"}`, `{"series": null}`}, false, false},
	"deployments": {"/apis/apps/v1", true, `{"spec": {"selector": {"matchLabels": {"app": "a"}},
		"template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [
		{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]}]}}}}`,
		[]string{`{"spec": {"replicas": 2}}`, `{"spec": {"replicas": null}}`,
			`{"spec": {"paused": true}}`, `{"spec": {"template": {"spec": {"containers": [
			{"name": "web", "image": "web"}]}}}}`, `{"status": {"replicas": 3}}`,
			`{"spec": {"replicas": "x"}}`}, true, true},
	"foos": {"/apis/samplecontroller.k8s.io/v1alpha1", true, `{"kind": "Foo", "spec": {"deploymentName": "a"},
		"apiVersion": "samplecontroller.k8s.io/v1alpha1"}`, []string{`{"spec": {"replicas": 2}}`, `{"spec": {"replicas": null}}`,
		`{"spec": {"replicas": -1}}`, `{"spec": {"deploymentName": "A_"}}`,
		`{"spec": {"deploymentName": null}}`, `{"spec": {"unknown": 1}}`, `{"spec": {"replicas": "x"}}`,
		`{"status": {"replicas": 2, "observedGeneration": 1}}`, `{"status": {"replicas": -2}}`,
		`{"status": {"conditions": [{"type": "Ready", "status": "Maybe", "reason": "R",
			"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`,
		`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R",
			"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`}, true, true},
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
