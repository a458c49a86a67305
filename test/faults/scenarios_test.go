package faults

import (
	"os"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scenario is what users and the cluster do, in order.
type scenario struct {
	name  string
	quick bool // it runs without -every, too
	steps []step
}

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
)

// scenarios are those of the root's folder, with real controllers of Deployments and a real garbage
// collector, which work by themselves. Where these have to be slower than the controller, something
// holds them up: a finalizer, or a policy that refuses Pods.
var scenarios = []scenario{
	{"create", false, []step{create("a", "x")}},
	{"scale", true, []step{create("a", "x"), scale("a", 2)}},
	{"absent replicas", false,
		[]step{createWith("a", "x", absent), scale("a", 2), scale("a", absent)}},
	{"repair", false, []step{create("a", "x"), spoil("x")}},
	{"other fields", false, []step{create("a", "x"), annotate("x"), scale("a", 2)}},
	{"deleted", false, []step{create("a", "x"), deleteDeployment("x", background)}},
	{"rename", true, []step{create("a", "x"), rename("a", "y")}},
	{"rename and back", false,
		[]step{create("a", "x"), stopRollouts(), rename("a", "y"), rename("a", "x")}},
	{"rename twice", false, []step{create("a", "x"), rename("a", "y"), rename("a", "x")}},
	{"rename and delete", false,
		[]step{create("a", "x"), stopRollouts(), rename("a", "y"), deleteFoo("a")}},
	{"delete", false, []step{create("a", "x"), deleteFoo("a")}},
	{"delete and create", false,
		[]step{create("a", "x"), hold("x"), deleteFoo("a"), create("a", "x"), letGo("x")}},
	{"unseen deletion", false,
		[]step{create("a", "x"), holdWatch(foosResource),
			deleteFoo("a").endingWith(both(allRight, hasAsked("a"))), letWatchGo(foosResource)}},
	{"unseen successor", false,
		[]step{create("a", "x"), hold("x"), holdWatch(foosResource), deleteFoo("a"),
			create("a", "x").endingWith(atOnce), letGo("x").endingWith(hasAsked("a")),
			letWatchGo(foosResource)}},
	{"held", false,
		[]step{create("a", "x"), holdFoo("a"), deleteHeldFoo("a"), scale("a", 2),
			deleteDeployment("x", background), letFooGo("a")}},
	{"taken", false,
		[]step{createForeign("x", nil), create("a", "x"), deleteDeployment("x", background)}},
	{"taken and labelled", false,
		[]step{createForeign("x", map[string]string{managedByLabel: "sample-controller"}),
			create("a", "x"), deleteDeployment("x", background)}},
	{"two Foos", false, []step{create("a", "x"), create("b", "x"), deleteFoo("a")}},
	{"two Foos that swap", false,
		[]step{create("a", "x"), create("b", "y"), rename("a", "y"), rename("b", "x"), deleteFoo("a")}},
	{"released", false,
		[]step{create("a", "x"), release("x"), deleteDeployment("x", background)}},
	{"terminating", false,
		[]step{create("a", "x"), hold("x"), deleteDeployment("x", foreground), letGo("x")}},
	{"label", false, []step{create("a", "x"), takeLabelOff("x")}},
	{"refused", false,
		[]step{setRefused(true), create("a", "x"), setRefused(false), setRefused(true), scale("a", 2),
			setRefused(false)}},
	{"behind", false,
		[]step{holdWatch(deploymentsResource), create("a", "x").endingWith(exists("x")),
			scale("a", 2).endingWith(atOnce), letWatchGo(deploymentsResource)}},
	{"namespace", false, []step{create("a", "x"), deleteNamespace()}},
	{"paused", false, []step{create("a", "x"), pause("x"), scale("a", 2)}},
	{"restart", false, []step{create("a", "x"), restart()}},
}

// leftOut has the scenarios of the root's folder that are not here, and why.
var leftOut = map[string]string{
	"failing":    "a crash loses each answer; TestRequestsFail... have the errors",
	"conflict":   "another writer would have to come between a read and a write of the controller",
	"missed":     "TestDeletionsThatNoWatchShowedAreNoticed has it",
	"never seen": "TestDeletionsThatNoWatchShowedAreNoticed has it",
}

func TestScenariosAreThoseOfVirtualTime(t *testing.T) {
	text, err := os.ReadFile(root + "explore_scenarios_test.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, name := range regexp.MustCompile(`(?m)^\t\{Name: "(.+?)",`).FindAllSubmatch(text, -1) {
		there[string(name[1])] = true
	}
	here := map[string]bool{}
	for name := range leftOut {
		here[name] = true
	}
	for _, s := range scenarios {
		if here[s.name] {
			t.Errorf("scenario %q is twice here, or left out as well", s.name)
		}
		here[s.name] = true
	}
	for name := range there {
		if !here[name] {
			t.Errorf("scenario %q of the root's folder is neither here nor left out", name)
		}
	}
	for name := range here {
		if !there[name] {
			t.Errorf("there is no scenario %q in the root's folder", name)
		}
	}
}
