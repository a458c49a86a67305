package scenarios

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
)

// shown has the situations in docs/behaviour.md, by the scenario that shows them.
var shown = map[string][]string{
	"create": {"a new Foo", "the Deployment changes"},
	"scale":  {"the Foo is scaled, by `kubectl scale` too"},
	"absent replicas": {"`spec.replicas` is absent, or null",
		"`spec.replicas` is taken off a Foo that had it"},
	"repair": {"somebody changes a field that the controller owns (image, count, ...)"},
	"other fields": {"somebody writes other fields: labels, annotations, `kubectl rollout restart`, " +
		"sidecars"},
	"deleted":         {"the Deployment is deleted"},
	"rename":          {"`spec.deploymentName` changes"},
	"rename and back": {"the Foo gets a new name, and the watches are behind"},
	"delete":          {"the Foo is deleted"},
	"unseen deletion": {"the Foo is deleted, and its watch is behind that of Deployments"},
	"held":            {"the Foo is deleted, and somebody's finalizer holds it"},
	"taken": {"a Deployment of that name exists and is not this Foo's",
		"that Deployment goes"},
	"two Foos":    {"two Foos name one Deployment"},
	"released":    {"the owner reference is taken off"},
	"terminating": {"the Deployment is being deleted"},
	"label":       {"the label `app.kubernetes.io/managed-by` is taken off"},
	"refused": {"the API server refuses the Deployment (invalid, forbidden by admission or " +
		"RBAC)"},
	"failing":   {"a request fails"},
	"conflict":  {"somebody else wrote the Deployment in between"},
	"behind":    {"the watch lags behind the controller's own write"},
	"missed":    {"the watch breaks and misses a deletion"},
	"namespace": {"the namespace is being deleted"},
	"paused":    {"the Deployment is paused"},
	"restart":   {"the controller restarts", "nothing changes"},
}

// leftOut has the situations without a scenario, and why.
var leftOut = map[string]string{
	"`kubectl scale` or an autoscaler sets the count, and a manifest without `replicas` is applied " +
		"again": "the API server decides",
	"the Foo goes while its status is written":                 "it is the 404 and the 409 of Error",
	"Pods cannot be created, or the rollout makes no progress": "only the words in the status differ",
	"no cluster, no CustomResourceDefinition, no permission to list or watch": "it is the 403 and " +
		"the 404 of Error, and the cut connection",
	"a Deployment of another namespace names the Foo as its owner": "a scenario has one namespace",
	"SIGTERM":           "nothing is disturbed; SIGKILL is Crash",
	"the Lease is lost": "a process in a bubble has no Lease",
}

func TestEverySituationHasItsScenario(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/behaviour.md"))(t)
	there := map[string]bool{}
	rows := regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		there[row[1]] = row[1] != "situation"
	}
	has := maps.Clone(leftOut)
	for name, situations := range shown {
		if !slices.ContainsFunc(All, func(s explore.Scenario) bool { return s.Name == name }) {
			t.Errorf("there is no scenario %q", name)
		}
		for _, situation := range situations {
			has[situation] = ""
		}
	}
	for situation, is := range there {
		if _, ok := has[situation]; is && !ok {
			t.Errorf("docs/behaviour.md says %q, which has no scenario and is not left out", situation)
		}
	}
	for situation, reason := range has {
		// A fork does without rows that link to what it does not have.
		if !there[situation] && reason == "" {
			t.Errorf("docs/behaviour.md does not say %q, which a scenario shows", situation)
		}
	}
}
