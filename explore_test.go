package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var update = flag.Bool("update", false, "with -explore.every: write the table of errors into the page")

// TestExplore tries every fault at every place. What the controller does about each error must be
// what the table in docs/reliability.md says.
func TestExplore(t *testing.T) {
	if testing.Short() {
		t.Skip("all faults together take a quarter of a minute")
	}
	report := explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, config *rest.Config) error {
			o, err := parseFlags([]string{"--workers=2", "--leader-elect-resource-namespace=default",
				"--metrics-bind-address=0", "--health-probe-bind-address=0"}, nil)
			if err != nil {
				return err
			}
			p, err := newProcess(ctx, config, o, nil)
			if err != nil {
				return err
			}
			return p.run(ctx)
		},
		CRDs:       []string{"artifacts/examples/crd.yaml"},
		Scenarios:  scenarios,
		Moves:      moves,
		Always:     unaskedFor,
		Eventually: problems,
		Delay:      blockedRetryDelay + 5e9,
		Timeout:    syncTimeout,
	})
	compareErrors(t, report.Outcomes)
}

// unaskedFor returns why the newest state does not ask for a write, or "".
func unaskedFor(write explore.Write, now explore.State) string {
	old, desired := explore.As[appsv1.Deployment](write.Old), explore.As[appsv1.Deployment](write.New)
	switch {
	case write.Resource != "deployments":
		return ""
	case old == nil:
		return unaskedCreation(desired, ownerOf(desired, now))
	case write.Verb == "delete":
		return unaskedDeletion(old, now)
	}
	owner := ownerOf(desired, now)
	switch {
	case owner == nil || !metav1.IsControlledBy(old, owner):
		return "it belongs to no Foo, or to another one"
	case !maps.Equal(old.Annotations, desired.Annotations):
		return "it undoes what others wrote"
	case unknown(write.New) < unknown(write.Old):
		return "it erases what this version does not know"
	}
	return ""
}

// unknown counts the fields that this version of k8s.io/api does not know.
func unknown(u *unstructured.Unstructured) int {
	return strings.Count(fmt.Sprint(u.Object), "ofTomorrow")
}

func unaskedCreation(deployment *appsv1.Deployment, owner *v1alpha1.Foo) string {
	switch {
	case owner == nil:
		return "the Foo is gone"
	case owner.DeletionTimestamp != nil:
		return "the Foo is being deleted"
	case owner.Spec.DeploymentName != deployment.Name:
		return "the Foo has another name for it"
	}
	return ""
}

func unaskedDeletion(deployment *appsv1.Deployment, now explore.State) string {
	owner := ownerOf(deployment, now)
	if owner == nil {
		return "it belongs to no Foo"
	}
	if owner.Spec.DeploymentName == deployment.Name {
		return "its Foo asks for it"
	}
	successor := deploymentOf(owner, now)
	if successor == nil || !metav1.IsControlledBy(successor, owner) || !isAvailable(successor) {
		return "the one that replaces it is not available"
	}
	return ""
}

// isAvailable says of a Deployment what RollOut makes true.
func isAvailable(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation &&
		d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
}

// ownerOf returns the existing Foo that controls a Deployment, or nil.
func ownerOf(deployment *appsv1.Deployment, now explore.State) *v1alpha1.Foo {
	for _, foo := range explore.List[v1alpha1.Foo](now, "foos") {
		if metav1.IsControlledBy(deployment, foo) {
			return foo
		}
	}
	return nil
}

func deploymentOf(foo *v1alpha1.Foo, now explore.State) *appsv1.Deployment {
	return explore.Get[appsv1.Deployment](now, "deployments.apps", foo.Spec.DeploymentName)
}

// problems returns what is wrong when everything is quiet: with each Foo, and with Deployments of
// former names.
func problems(now explore.State) (problems []string) {
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	for _, foo := range explore.List[v1alpha1.Foo](now, "foos") {
		check(foo, deploymentOf(foo, now), report)
	}
	for _, deployment := range explore.List[appsv1.Deployment](now, "deployments.apps") {
		owner := ownerOf(deployment, now)
		if owner == nil || owner.DeletionTimestamp != nil || deployment.DeletionTimestamp != nil ||
			owner.Spec.DeploymentName == deployment.Name {
			continue
		}
		// A Deployment of a former name stays while the Foo cannot have the new name. Without the
		// label, which nothing restores on it, it stays until the Foo is deleted.
		successor := deploymentOf(owner, now)
		if successor != nil && metav1.IsControlledBy(successor, owner) &&
			successor.DeletionTimestamp == nil &&
			deployment.Labels[managedByLabel] != "" {
			report("Deployment %s is left over from Foo %s", deployment.Name, owner.Name)
		}
	}
	return problems
}

// check reports what is wrong with a Foo. Its Deployment may be nil.
func check(foo *v1alpha1.Foo, d *appsv1.Deployment, report func(string, ...any)) {
	held := foo.DeletionTimestamp != nil
	want, replicas := "False DeploymentNameTaken", foo.Status.Replicas
	switch {
	case held && (d == nil || !metav1.IsControlledBy(d, foo) || d.Labels[managedByLabel] == ""):
		want, replicas = "False FooTerminating", 0
	case d == nil:
		report("Foo %s has no Deployment", foo.Name)
		return
	case metav1.IsControlledBy(d, foo) && d.DeletionTimestamp != nil:
		want, replicas = "False DeploymentTerminating", d.Status.Replicas
	case metav1.IsControlledBy(d, foo):
		want, replicas = "True Available", d.Status.Replicas
		asked := *d.Spec.Replicas == *foo.Spec.Replicas &&
			d.Spec.Template.Spec.Containers[0].Image == containerImage
		if !asked && held {
			want = "False FooTerminating"
		} else if !asked {
			report("Foo %s: its Deployment is not what it asks for", foo.Name)
		}
	}
	if got := ready(foo); got != want {
		report("Foo %s: Ready: got %q, want %q", foo.Name, got, want)
	}
	if foo.Status.Replicas != replicas || foo.Status.ObservedGeneration != foo.Generation {
		report("Foo %s: got %d replicas and observedGeneration %d, want %d and %d", foo.Name,
			foo.Status.Replicas, foo.Status.ObservedGeneration, replicas, foo.Generation)
	}
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
	has := maps.Clone(leftOut)
	for name, situations := range shown {
		if !slices.ContainsFunc(scenarios, func(s explore.Scenario) bool { return s.Name == name }) {
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

// columns are the kinds of requests, as the table of errors names them.
var columns = []struct{ name, kinds string }{
	{"discovery", "get-apis-samplecontroller.k8s.io-v1alpha1"},
	{"list", "list-foos list-deployments"},
	{"watch", "watch-foos watch-deployments"},
	{"get Foo", "get-foos"},
	{"get Deployment", "get-deployments"},
	{"create", "create-deployments"},
	{"patch", "patch-deployments"},
	{"delete", "delete-deployments"},
	{"status", "update-foos-status"},
	{"Event", "create-events"},
}

// did says in a word what the controller did about an error.
func did(o explore.Outcome) string {
	switch {
	case o.Ends:
		return "ends"
	case o.Request.Kind == "create-events":
		return "ignored"
	case o.Problems && o.Repaired && apierrors.IsNotFound(o.Answer.Err):
		return "believed"
	case o.Request.Kind != "update-foos-status" && slices.Contains(o.Waits, blockedRetryDelay):
		return "reported"
	case len(o.Waits) > 0 && o.Waits[0] < blockedRetryDelay:
		return "retried"
	case o.Answer.Happens, apierrors.IsAlreadyExists(o.Answer.Err):
		return "done"
	case apierrors.IsNotFound(o.Answer.Err):
		return "believed"
	}
	return "unclear"
}

var errorTable = regexp.MustCompile(
	`(?s)(<!-- errors: go test . -run TestExplore -explore.every -update -->\n).*?(<!-- end of errors -->)`)

// compareErrors compares what was found with the table in the page.
func compareErrors(t *testing.T, outcomes []explore.Outcome) {
	t.Helper()
	found := map[[2]string][]string{} // by answer and column
	for _, o := range outcomes {
		for _, c := range columns {
			if !slices.Contains(strings.Fields(c.kinds), o.Request.Kind) {
				continue
			}
			at, word := [2]string{o.Answer.Name, c.name}, did(o)
			if (o.ForGood || word == "believed") && !slices.Contains(found[at], word) {
				found[at] = append(found[at], word)
				slices.Sort(found[at])
			}
		}
	}
	const path = "docs/reliability.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		changed := errorTable.ReplaceAll(page, []byte("${1}"+writeErrors(found)+"${2}"))
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	said := readErrors(string(errorTable.Find(page)))
	for at, words := range found {
		for _, word := range words {
			if !strings.Contains(said[at], word) {
				t.Errorf("%s, %s: got %s, but %s says %q", at[0], at[1], word, path, said[at])
			}
		}
	}
}

// writeErrors returns the table. Rows that say the same are one.
func writeErrors(found map[[2]string][]string) string {
	var rows []string // the cells of each row, without its first
	names := map[string][]string{}
	for _, a := range explore.Answers {
		row := ""
		for _, c := range columns {
			row += " " + strings.Join(found[[2]string{a.Name, c.name}], ", ") + " |"
		}
		if names[row] == nil {
			rows = append(rows, row)
		}
		names[row] = append(names[row], a.Name)
	}
	head, line := "| answer |", "|---|"
	for _, c := range columns {
		head, line = head+" "+c.name+" |", line+"---|"
	}
	text := head + "\n" + line + "\n"
	for _, row := range rows {
		text += "| " + strings.Join(names[row], "; ") + " |" + row + "\n"
	}
	return text
}

// readErrors returns what the cells of the table say, by answer and column.
func readErrors(table string) map[[2]string]string {
	said := map[[2]string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != len(columns)+3 {
			continue
		}
		for answer := range strings.SplitSeq(cells[1], ";") {
			for i, c := range columns {
				said[[2]string{strings.TrimSpace(answer), c.name}] = cells[i+2]
			}
		}
	}
	return said
}
