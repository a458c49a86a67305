package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

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

func TestServerIsDownAndUpAgain(t *testing.T) {
	states := make(chan string, 100)
	l := newLens("")
	page := l.open()
	go func() {
		for step := range page {
			for _, state := range []string{"up", "down"} {
				if strings.Contains(string(step), `"server":{"state":"`+state+`"`) {
					states <- state
				}
			}
		}
	}()
	t.Cleanup(func() { l.close(page) })

	// While it is down, it closes each connection.
	down := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case is := <-down:
			down <- is
			if is {
				panic(http.ErrAbortHandler)
			}
		default:
		}
		http.Error(w, "I am busy", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.NegotiatedSerializer = scheme.Codecs
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	go l.askServer(t.Context(), client, server.URL)
	expect := func(want string) {
		t.Helper()
		if got := receive(t, states); got != want {
			t.Errorf("the server is %s, want %s", got, want)
		}
	}
	expect("up") // although it answers 500
	down <- true
	expect("down")
	<-down
	expect("up")
}
