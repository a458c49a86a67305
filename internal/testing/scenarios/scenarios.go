// Package scenarios describes what happens to Foos, and says what must come of it: to the package
// explore, in virtual time, and to tests on a real API server.
package scenarios

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// Mirror is a step after which admission lets all images come from a mirror.
var Mirror = explore.Mutate("deployments.apps", "images come from a mirror",
	func(o *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			c := c.(map[string]any)
			c["image"] = mirror + strings.TrimPrefix(c["image"].(string), mirror)
		}
		_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
	})

func change(patch string) explore.Step { return explore.Patch("deployments.apps/x", patch) }

// evil is what others write into a Deployment.
const evil = `spec: {replicas: 7, template: {spec: {containers: [{name: web, image: "` + EvilImage + `"}]}}}`

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
	loseDeployments  = explore.LoseEvents("deployments")
	expireWatch      = explore.ExpireWatch("deployments")
)

// All is what users and the cluster do, with Foos a and b and Deployments x and y. There are
// few names, so that they collide.
var All = []explore.Scenario{
	{Name: "create", Steps: steps(create, rollOut), Begins: 2},
	{Name: "scale", Steps: steps(create, rollOut, scale("3"))},
	{Name: "absent replicas", Steps: steps(foo("a", "x"), scale("3"), scale("null"))},
	{Name: "repair", Steps: steps(create, rollOut, change(evil))},
	{Name: "other fields", Steps: steps(create, change(`
metadata: {annotations: {example.com/team: blue}}
spec: {ofTomorrow: 1, template: {spec: {containers: [{name: web, image: "`+EvilImage+`",
  ofTomorrow: 1}]}}}`), scale("3"))},
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
	{Name: "unseen deletion", Steps: steps(create, rollOut, holdFoos, deleteFoo, collect, letGo)},
	{Name: "unseen successor",
		Steps: steps(create, rollOut, holdFoos, deleteFoo, create, collect, letGo)},
	{Name: "held", Steps: steps(create, rollOut,
		explore.Together("delete foos/a, which is held",
			explore.Patch("foos/a", "metadata: {finalizers: [example.com/held]}"), deleteFoo),
		scale("3"), deleteDeployment, explore.Patch("foos/a", "metadata: {finalizers: null}"))},
	{Name: "taken", Steps: steps(foreign("{}"), create, deleteDeployment, rollOut), Begins: 2},
	{Name: "taken and labelled", Steps: steps(
		foreign("{app.kubernetes.io/managed-by: sample-controller}"), create, deleteDeployment)},
	{Name: "two Foos", EndVaries: true, Begins: 3,
		Steps: steps(create, foo("b", "x", 1), rollOut, deleteFoo, collect, rollOut)},
	{Name: "two Foos that swap", EndVaries: true, Steps: steps(create, foo("b", "y", 1), rollOut,
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
		Steps: steps(explore.AnswerWrites(1, "500"), create, explore.AnswerWrites(1, "timeout after"), scale("3"))},
	{Name: "conflict", Steps: steps(create, explore.AnswerWrites(1, "409 Conflict"), scale("3"))},
	{Name: "behind", Steps: steps(explore.HoldWatch("deployments"), create, scale("3"), letGo)},
	{Name: "missed",
		Steps: steps(create, rollOut, loseDeployments, deleteDeployment, expireWatch)},
	{Name: "never seen", Steps: steps(explore.Together(
		"delete deployments/x, which no watch showed", loseDeployments, deleteDeployment, create,
		explore.Pause, deleteDeployment), expireWatch)},
	{Name: "namespace",
		Steps: steps(create, rollOut, explore.Delete("namespaces/"+explore.Namespace), deleteDeployment)},
	{Name: "paused", Steps: steps(create, change("spec: {paused: true}"), scale("3"))},
	{Name: "mirror", Steps: steps(Mirror, create, rollOut, scale("3"), rollOut, rename("a", "y"), rollOut)},
	{Name: "war", Steps: steps(create, rollOut,
		explore.Insist("deployments.apps/x", evil), explore.Relent)},
	{Name: "restart", Steps: steps(create, rollOut, explore.Restart)},
}

// Moves are what histories have besides these steps.
var Moves = []explore.Step{
	foo("a", "y", 1), explore.Delete("foos/b"), explore.Delete("deployments.apps/y"),
	explore.LoseEvents("foos"), explore.ExpireWatch("foos"),
	explore.AnswerWrites(5, "500"), explore.AnswerWrites(5, "timeout after"),
	explore.AnswerWrites(5, "409 Conflict"),
}

func steps(steps ...explore.Step) []explore.Step { return steps }
