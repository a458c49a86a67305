package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/internal/testing/must"
)

// watches makes s think that its program watches that.
func watches(s *session, paths ...string) {
	s.follow = func(watched) {}
	for _, path := range paths {
		get(s.proxy, path+"?watch=true")
	}
}

const (
	foosPath        = "/apis/samplecontroller.k8s.io/v1alpha1/foos"
	deploymentsPath = "/apis/apps/v1/deployments"
)

func TestActionsFitTheProgram(t *testing.T) {
	const everybody = "conflict error kill stop start"
	for _, test := range []struct {
		watches []string
		has     string
		hasNot  string
	}{
		{nil, "create delete-deployment " + everybody, "create-deployment hold-foos"},
		{[]string{foosPath, deploymentsPath}, "create burst delete-deployment hold-foos " +
			"hold-deployments cut-foos expire-deployments " + everybody, "create-deployment"},
		{[]string{foosPath}, "create delete-deployment cut-foos", "cut-deployments"},
		{[]string{deploymentsPath}, "create-deployment delete-deployment hold-deployments", "create"},
		{[]string{"/api/v1/pods"}, "cut-pods " + everybody, "create delete-deployment"},
	} {
		s := newTestSession(t, emptyServer)
		watches(s, test.watches...)
		var ids []string
		for _, a := range s.actions() {
			if a.ID == "" || a.Title == "" || a.Explain == "" || a.Group == "" ||
				len(a.Commands) == 0 && a.Does == "" {
				t.Errorf("an action is not complete: %+v", a)
			}
			if slices.Contains(ids, a.ID) {
				t.Errorf("there are two actions %q", a.ID)
			}
			ids = append(ids, a.ID)
		}
		for id := range strings.FieldsSeq(test.has) {
			if !slices.Contains(ids, id) {
				t.Errorf("%v: there is no %s", test.watches, id)
			}
		}
		for id := range strings.FieldsSeq(test.hasNot) {
			if slices.Contains(ids, id) {
				t.Errorf("%v: there is %s", test.watches, id)
			}
		}
	}
}

func TestScenariosConsistOfActions(t *testing.T) {
	s := newTestSession(t, emptyServer)
	watches(s, foosPath, deploymentsPath)
	ids := []string{"create-deployment"}
	for _, a := range s.actions() {
		ids = append(ids, a.ID)
	}
	all := must.Get(readScenarios())(t)
	names := map[string]bool{}
	for _, script := range all {
		if names[script.Name] || script.Title == "" || script.About == "" {
			t.Errorf("%s: it has no title, is about nothing, or is there twice", script.Name)
		}
		names[script.Name] = true
		for _, scene := range script.Scenes {
			if !slices.Contains(ids, scene.Do) {
				t.Errorf("%s: there is no action %q", script.Name, scene.Do)
			}
		}
	}
}

// fakeKubectl puts a kubectl in front of the PATH that prints its arguments and what it reads.
func fakeKubectl(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "kubectl"), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// press presses the button of the page.
func press(t *testing.T, s *session, id string) (r result) {
	t.Helper()
	w := post(s.routes(), "/actions/"+id)
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return r
}

func TestFirstActionCreatesTheNamespace(t *testing.T) {
	fakeKubectl(t, `printf "%s\n" "$*"`)
	exists := false
	s := newTestSession(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/lens" || !exists {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "lens"}}`)
	})
	const create, remove = "create namespace lens", "-n lens delete foo/example-foo"
	r := press(t, s, "delete")
	if r.Output != create+"\n"+remove+"\n" || r.Error != "" {
		t.Errorf("got %+v", r)
	}
	if !slices.Equal(r.Commands, []string{"kubectl " + create, "kubectl " + remove}) {
		t.Errorf("shown are %q", r.Commands)
	}
	if note, _ := os.ReadFile(filepath.Join(s.folder, namespaceNote)); string(note) != "lens" {
		t.Errorf("the note for the end is %q", note)
	}
	exists = true
	if r := press(t, s, "delete"); r.Output != remove+"\n" || r.Error != "" {
		t.Errorf("then got %+v", r)
	}
}

// The buttons work in the namespace of a program that watches only one.
func TestButtonsRunTheirCommands(t *testing.T) {
	for _, test := range []struct{ id, kubectl, output, failed string }{
		{"delete", `printf "%s\n" "$*"`, "-n theirs delete foo/example-foo\n", ""},
		{"foreign", `echo no >&2; exit 1`, "no\n", "exit status 1"}, // the first of two commands
		{"burst", `grep name:`, "  name: foo-1\n  name: foo-2\n  name: foo-3\n", ""},
	} {
		fakeKubectl(t, test.kubectl)
		s := newTestSession(t, emptyServer)
		watches(s, "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/theirs/foos")
		r := press(t, s, test.id)
		if len(r.Commands) != 1 || r.Output != test.output || r.Error != test.failed {
			t.Errorf("%s: got %+v", test.id, r)
		}
		if _, err := os.Stat(filepath.Join(s.folder, namespaceNote)); err == nil {
			t.Error("at the end, the namespace would be deleted")
		}
	}
}

func TestWhatTheProgramWatchesIsFollowed(t *testing.T) {
	foos := schema.GroupVersionResource{
		Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos",
	}
	for path, want := range map[string][]watched{
		foosPath + "?watch=true": {{resource: foos}},
		"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/a/foos?watch=true": {{foos, "a"}},
		"/api/v1/namespaces/a/pods?watch=true": {
			{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "a"}},
		foosPath:                                 nil,
		"/api/v1/namespaces/a/pods/b?watch=true": nil,
		"/api/v1/namespaces/a/pods?watch=true&fieldSelector=metadata.name%3Db": nil,
		"/version?watch=true": nil,
	} {
		s := newTestSession(t, emptyServer)
		var got []watched
		s.follow = func(w watched) { got = append(got, w) }
		for range 2 { // the second time, it is followed already
			get(s.proxy, path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}
