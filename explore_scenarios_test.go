package main

import (
	"fmt"

	"example.com/sample-controller/explore"
)

// foo returns a step that creates a Foo. Without replicas, they are absent.
func foo(name, deployment string, replicas ...int) explore.Step {
	count := ""
	if len(replicas) > 0 {
		count = fmt.Sprintf("replicas: %d", replicas[0])
	}
	return explore.Create(fmt.Sprintf(`
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata:
  name: %s
spec:
  deploymentName: %q
  %s`, name, deployment, count))
}

// foreign returns a step that creates a Deployment that belongs to nobody.
func foreign(labels string) explore.Step {
	return explore.Create(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: x
  labels: %s
spec:
  replicas: 1
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: other, image: other}]}`, labels))
}

func scale(replicas string) explore.Step {
	return explore.Patch("foos/a", "spec: {replicas: "+replicas+"}")
}

func rename(foo, deployment string) explore.Step {
	return explore.Patch("foos/"+foo, fmt.Sprintf("spec: {deploymentName: %q}", deployment))
}

func change(patch string) explore.Step { return explore.Patch("deployments.apps/x", patch) }

// What users do in several scenarios.
var (
	create           = foo("a", "x", 1)
	deleteFoo        = explore.Delete("foos/a")
	deleteDeployment = explore.Delete("deployments.apps/x")
	rollOut          = explore.RollOut
	collect          = explore.CollectGarbage
	holdFoos         = explore.HoldWatch("foos")
	letGo            = explore.LetWatchesGo
	refuse           = explore.Refuse("deployments")
	accept           = explore.Accept("deployments")
	loseDeployments  = explore.LoseWatch("deployments")
	breakDeployments = explore.BreakWatch("deployments")
)

// scenarios are what users and the cluster do, with Foos a and b and Deployments x and y. There are
// few names, so that they collide.
var scenarios = []explore.Scenario{
	{Name: "create", Steps: steps(create, rollOut), Begins: 2},
	{Name: "scale", Steps: steps(create, rollOut, scale("3"))},
	{Name: "absent replicas", Steps: steps(foo("a", "x"), scale("3"), scale("null"))},
	{Name: "repair", Steps: steps(create, rollOut, change(`
spec: {replicas: 7, template: {spec: {containers: [{name: web, image: "evil:1"}]}}}`))},
	{Name: "other fields", Steps: steps(create, change(`
metadata: {annotations: {example.com/team: blue}}
spec: {ofTomorrow: 1, template: {spec: {containers: [{name: web, image: "old:1", ofTomorrow: 1}]}}}`),
		scale("3"))},
	{Name: "deleted", Steps: steps(create, rollOut, deleteDeployment)},
	{Name: "rename", Steps: steps(create, rollOut, rename("a", "y"), rollOut), Begins: 3},
	{Name: "rename and back",
		Steps: steps(create, rollOut, rename("a", "y"), rename("a", "x"), rollOut)},
	{Name: "rename twice",
		Steps: steps(create, rollOut, rename("a", "y"), rollOut, rename("a", "x"), rollOut)},
	{Name: "rename and delete",
		Steps: steps(create, rollOut, rename("a", "y"), deleteFoo, collect)},
	{Name: "delete", Steps: steps(create, rollOut, deleteFoo, collect)},
	{Name: "delete and create", Steps: steps(create, rollOut, deleteFoo, create, collect)},
	{Name: "unseen deletion",
		Steps: steps(create, rollOut, holdFoos, deleteFoo, collect, letGo)},
	{Name: "unseen successor",
		Steps: steps(create, rollOut, holdFoos, deleteFoo, create, collect, letGo)},
	{Name: "held", Steps: steps(create, rollOut,
		explore.Together("delete foos/a, which is held",
			explore.Patch("foos/a", "metadata: {finalizers: [example.com/held]}"), deleteFoo),
		scale("3"), deleteDeployment, explore.Patch("foos/a", "metadata: {finalizers: null}"))},
	{Name: "taken", Steps: steps(foreign("{}"), create, deleteDeployment, rollOut), Begins: 2},
	{Name: "taken and labelled", Steps: steps(
		foreign("{app.kubernetes.io/managed-by: sample-controller}"), create, deleteDeployment)},
	{Name: "two Foos", AnyEnd: true, Begins: 3,
		Steps: steps(create, foo("b", "x", 1), rollOut, deleteFoo, collect, rollOut)},
	{Name: "two Foos that swap", AnyEnd: true, Steps: steps(create, foo("b", "y", 1), rollOut,
		rename("a", "y"), rename("b", "x"), deleteFoo, collect)},
	{Name: "released", Steps: steps(create, rollOut,
		change("metadata: {ownerReferences: null}"), deleteDeployment)},
	{Name: "terminating", Steps: steps(create, rollOut,
		explore.Together("delete deployments/x, which is held",
			change("metadata: {finalizers: [example.com/held]}"), deleteDeployment),
		change("metadata: {finalizers: null}"))},
	{Name: "label", Steps: steps(create, rollOut, change("metadata: {labels: null}"))},
	{Name: "refused", Steps: steps(refuse, create, accept, refuse, scale("3"), accept)},
	{Name: "failing",
		Steps: steps(explore.FailWrites(1), create, explore.LoseAnswers(1), scale("3"))},
	{Name: "conflict", Steps: steps(create, explore.Conflict(1), scale("3"))},
	{Name: "behind",
		Steps: steps(explore.HoldWatch("deployments"), create, scale("3"), letGo)},
	{Name: "missed",
		Steps: steps(create, rollOut, loseDeployments, deleteDeployment, breakDeployments)},
	{Name: "never seen", Steps: steps(explore.Together(
		"delete deployments/x, which no watch showed", loseDeployments, deleteDeployment, create,
		explore.Pause, deleteDeployment), breakDeployments)},
	{Name: "namespace",
		Steps: steps(create, rollOut, explore.Delete("namespaces/"+explore.Namespace), deleteDeployment)},
	{Name: "paused", Steps: steps(create, change("spec: {paused: true}"), scale("3"))},
	{Name: "restart", Steps: steps(create, rollOut, explore.Restart)},
}

// moves are what histories have besides these steps.
var moves = []explore.Step{
	foo("a", "y", 1), explore.Delete("foos/b"), explore.Delete("deployments.apps/y"),
	explore.LoseWatch("foos"), explore.BreakWatch("foos"),
	explore.FailWrites(5), explore.LoseAnswers(5), explore.Conflict(5),
}

func steps(steps ...explore.Step) []explore.Step { return steps }

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
