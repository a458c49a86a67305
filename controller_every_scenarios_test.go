package main

import (
	"os"
	"regexp"
	"testing"
)

// scenario is what users and the cluster do, in order. Each one ends with two more steps: the
// garbage collector works, and what is there rolls out.
type scenario struct {
	name  string
	shows []string // situations in docs/behaviour.md
	steps []step
}

// do returns a step with Foo a and Deployment x.
func do(action string) step { return step{action: action, foo: "a", name: "x", replicas: 1, times: 1} }

func (s step) b() step             { s.foo = "b"; return s }
func (s step) y() step             { s.name = "y"; return s }
func (s step) to(count int32) step { s.replicas = count; return s }

var (
	create  = do("create a Foo")
	rollOut = do("roll out")
	collect = do("collect garbage")
	rename  = do("rename a Foo")
)

var scenarios = []scenario{
	{"create", []string{"a new Foo", "the Deployment changes"}, []step{create, rollOut}},
	{"scale", []string{"the Foo is scaled, by `kubectl scale` too"},
		[]step{create, rollOut, do("scale a Foo").to(3)}},
	{"absent replicas", []string{"`spec.replicas` is absent, or null",
		"`spec.replicas` is taken off a Foo that had it"},
		[]step{create.to(-1), do("scale a Foo").to(3), do("scale a Foo").to(-1)}},
	{"repair", []string{"somebody changes a field that the controller owns (image, count, ...)"},
		[]step{create, rollOut, do("change a Deployment")}},
	{"other fields", []string{"somebody writes other fields: labels, annotations, `kubectl rollout " +
		"restart`, sidecars"},
		[]step{create, do("write other fields of a Deployment"), do("scale a Foo").to(3)}},
	{"deleted", []string{"the Deployment is deleted"},
		[]step{create, rollOut, do("delete a Deployment")}},
	{"rename", []string{"`spec.deploymentName` changes"}, []step{create, rollOut, rename.y(), rollOut}},
	{"rename and back", []string{"the Foo gets a new name, and the watches are behind"},
		[]step{create, rollOut, rename.y(), rename, rollOut}},
	{"rename twice", nil, []step{create, rollOut, rename.y(), rollOut, rename, rollOut}},
	{"rename and delete", nil, []step{create, rollOut, rename.y(), do("delete a Foo"), collect}},
	{"delete", []string{"the Foo is deleted"}, []step{create, rollOut, do("delete a Foo"), collect}},
	{"delete and create", nil, []step{create, rollOut, do("delete a Foo"), create, collect}},
	{"unseen deletion", []string{"the Foo is deleted, and its watch is behind that of Deployments"},
		[]step{create, rollOut, do("hold the watch of Foos"), do("delete a Foo"), collect,
			do("let the watches go")}},
	{"unseen successor", nil,
		[]step{create, rollOut, do("hold the watch of Foos"), do("delete a Foo"), create, collect,
			do("let the watches go")}},
	{"held", []string{"the Foo is deleted, and somebody's finalizer holds it"},
		[]step{create, rollOut, do("delete a Foo that is held"), do("scale a Foo").to(3),
			do("delete a Deployment"), do("let a Foo go that is held")}},
	{"taken", []string{"a Deployment of that name exists and is not this Foo's",
		"that Deployment goes"},
		[]step{do("create a foreign Deployment"), create, do("delete a Deployment"), rollOut}},
	{"taken and labelled", nil,
		[]step{do("create a foreign Deployment with the label"), create, do("delete a Deployment")}},
	{"two Foos", []string{"two Foos name one Deployment"},
		[]step{create, create.b(), rollOut, do("delete a Foo"), collect, rollOut}},
	{"two Foos that swap", nil,
		[]step{create, create.b().y(), rollOut, rename.y(), rename.b(), do("delete a Foo"), collect}},
	{"released", []string{"the owner reference is taken off"},
		[]step{create, rollOut, do("release a Deployment"), do("delete a Deployment")}},
	{"terminating", []string{"the Deployment is being deleted"},
		[]step{create, rollOut, do("delete a Deployment in the foreground"),
			do("let a Deployment go")}},
	{"label", []string{"the label `app.kubernetes.io/managed-by` is taken off"},
		[]step{create, rollOut, do("take the label off a Deployment")}},
	{"refused", []string{"the API server refuses the Deployment (invalid, forbidden by admission or " +
		"RBAC)"},
		[]step{do("refuse Deployments"), create, do("accept Deployments"), do("refuse Deployments"),
			do("scale a Foo").to(3), do("accept Deployments")}},
	{"failing", []string{"a request fails"}, []step{do("fail writes"), create, do("lose responses"),
		do("scale a Foo").to(3)}},
	{"conflict", []string{"somebody else wrote the Deployment in between"},
		[]step{create, do("let writes conflict"), do("scale a Foo").to(3)}},
	{"behind", []string{"the watch lags behind the controller's own write"},
		[]step{do("hold the watch of Deployments"), create, do("scale a Foo").to(3),
			do("let the watches go")}},
	{"missed", []string{"the watch breaks and misses a deletion"},
		[]step{create, rollOut, do("lose the watch of Deployments"), do("delete a Deployment"),
			do("break the watch of Deployments")}},
	{"never seen", nil, []step{do("delete a Deployment that no watch showed"),
		do("break the watch of Deployments")}},
	{"namespace", []string{"the namespace is being deleted"},
		[]step{create, rollOut, do("delete the namespace"), do("delete a Deployment")}},
	{"paused", []string{"the Deployment is paused"},
		[]step{create, do("pause a Deployment"), do("scale a Foo").to(3)}},
	{"restart", []string{"the controller restarts", "nothing changes"},
		[]step{create, rollOut, do("restart")}},
}

// leftOut has the situations without a scenario, and why.
var leftOut = map[string]string{
	"`kubectl scale` or an autoscaler sets the count, and a manifest without `replicas` is applied " +
		"again": "the API server decides",
	"the Foo goes while its status is written":                 "it is the 404 and the 409 of TestEveryError",
	"Pods cannot be created, or the rollout makes no progress": "only the words in the status differ",
	"no cluster, no CustomResourceDefinition, no permission to list or watch": "it is the 403 and " +
		"the 404 of TestEveryError, and the cut connection",
	"a Deployment of another namespace names the Foo as its owner": "a scenario has one namespace",
	"SIGTERM":           "nothing is disturbed; SIGKILL is TestEveryCrash",
	"the Lease is lost": "a process in a bubble has no Lease",
}

func TestEverySituationHasItsScenario(t *testing.T) {
	page, err := os.ReadFile("docs/behaviour.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	rows := regexp.MustCompile(`(?m)^\| (.+?) \|`).FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		there[row[1]] = row[1] != "situation"
	}
	shown := map[string]bool{}
	for situation := range leftOut {
		shown[situation] = true
	}
	for _, s := range scenarios {
		for _, situation := range s.shows {
			shown[situation] = true
		}
		for _, step := range s.steps {
			if actions[step.action] == nil {
				t.Errorf("%s: there is no action %q", s.name, step.action)
			}
		}
	}
	for situation, is := range there {
		if is && !shown[situation] {
			t.Errorf("docs/behaviour.md says %q, which has no scenario and is not left out", situation)
		}
	}
	for situation := range shown {
		// A fork does without rows that link to what it does not have.
		if !there[situation] && leftOut[situation] == "" {
			t.Errorf("docs/behaviour.md does not say %q, which a scenario shows", situation)
		}
	}
}
