// Package foos describes to the package explore what users do with Foos, and what they want. All
// programs that keep a Deployment for each Foo are explored with it.
package foos

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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/scenarios"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var (
	create = explore.Create(`
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: {name: a}
spec: {deploymentName: x, replicas: 1}`)
	foreign = explore.Create(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: other, image: other}]}`)
	scale            = explore.Patch("foos/a", "spec: {replicas: 3}")
	rename           = explore.Patch("foos/a", "spec: {deploymentName: 'y'}")
	deleteFoo        = explore.Delete("foos/a")
	deleteDeployment = explore.Delete("deployments.apps/x")
	release          = explore.Patch("deployments.apps/x", "metadata: {ownerReferences: null}")
	spoil            = explore.Patch("deployments.apps/x", evil)
)

const evil = "spec: {replicas: 7, template: {spec: {containers: [{name: web, image: evil}]}}}"

func steps(steps ...explore.Step) []explore.Step { return steps }

var whatHappens = []explore.Scenario{
	{Name: "create", Steps: steps(create)},
	{Name: "scale", Steps: steps(create, scale)},
	{Name: "repair", Steps: steps(create, spoil)},
	{Name: "deleted", Steps: steps(create, deleteDeployment)},
	{Name: "rename", Steps: steps(create, rename)},
	{Name: "delete and create", Steps: steps(create, deleteFoo, create)},
	{Name: "taken", Steps: steps(foreign, create, deleteDeployment)},
	{Name: "released", Steps: steps(create, release, deleteDeployment)},
	{Name: "mirror", Steps: steps(scenarios.Mirror, create, scale)},
	{Name: "war", Steps: steps(create, explore.Insist("deployments.apps/x", evil), explore.Relent)},
}

// problems returns what is wrong with Foo a when everything is quiet.
func problems(now explore.State) (problems []string) {
	foo := explore.Get[v1alpha1.Foo](now, "foos", "a")
	for _, d := range explore.List[appsv1.Deployment](now, "deployments.apps") {
		foreign := d.Spec.Template.Spec.Containers[0].Image == "other"
		if !foreign && (foo == nil || d.Name != foo.Spec.DeploymentName) {
			problems = append(problems, "a Deployment is left over")
		}
	}
	if foo == nil {
		return problems
	}
	d := explore.Get[appsv1.Deployment](now, "deployments.apps", foo.Spec.DeploymentName)
	if d == nil {
		problems = append(problems, "the Foo has no Deployment")
	} else if !metav1.IsControlledBy(d, foo) {
		problems = append(problems, "the Foo does not own its Deployment")
	}
	if d != nil && (*d.Spec.Replicas != *foo.Spec.Replicas ||
		d.Spec.Template.Spec.Containers[0].Image == "evil") {
		problems = append(problems, "the Deployment is not what the Foo asks for")
	}
	ready := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		problems = append(problems, "the status says nothing")
	case ready.Status != metav1.ConditionTrue:
		problems = append(problems, fmt.Sprintf("the status says %s", ready.Reason))
	}
	return problems
}

var update = flag.Bool("update", false, "write what is found into docs/explore.md")

// Expect explores a program. What is wrong must be what docs/explore.md says, in the row that links
// to about: all of it, as far as it happens when nothing is disturbed.
func Expect(
	t *testing.T, root, about string, run func(ctx context.Context, config *rest.Config) error,
) {
	t.Helper()
	budget := "100"
	if *update {
		budget = "0" // all usual cases
	}
	must.Do(t, flag.Set("explore.budget", budget))
	findings := explore.Find(t, explore.Controller{
		Run: run, CRDs: []string{root + "/artifacts/examples/crd.yaml"}, Scenarios: whatHappens,
		Eventually: problems,
		Delay:      35 * time.Second,
		Settle:     time.Hour, // longer than client-go's longest wait after an error
	}, "")
	calm, disturbed := sortOut(findings)
	path := root + "/docs/explore.md"
	page := must.Get(os.ReadFile(path))(t)
	row := regexp.MustCompile(
		`(?m)^(\| \[.*\]\(` + regexp.QuoteMeta(about) + `\).*?) \| (.*) \| (.*) \|$`)
	said := row.FindSubmatch(page)
	if said == nil {
		t.Fatalf("%s has no row for %s", path, about)
	}
	if *update {
		page = row.ReplaceAll(page, fmt.Appendf(nil, "$1 | %s | %s |", cell(calm), cell(disturbed)))
		must.Do(t, os.WriteFile(path, page, 0o644))
		return
	}
	if got := cell(calm); got != string(said[2]) {
		t.Errorf("undisturbed: got %q, but %s says %q", got, path, said[2])
	}
	for problem := range disturbed { // it takes only a part of the cases
		if !strings.Contains(string(said[3]), problem) {
			t.Errorf("got %q, but %s says %q", problem, path, said[3])
		}
	}
}

// sortOut returns the problems of undisturbed runs, with their scenarios, and the others, with the
// kinds of disturbances.
func sortOut(findings []explore.Finding) (calm, disturbed map[string][]string) {
	calm, disturbed = map[string][]string{}, map[string][]string{}
	for i, f := range findings {
		path := strings.Split(strings.ReplaceAll(f.Case, "_", " "), "/")
		kind, scenario, problem := path[1], path[2], summary(f.Problem)
		if strings.HasPrefix(problem, "(") || // a remark
			problem == otherEnd && i > 0 && findings[i-1].Case == f.Case {
			continue // it follows from what is named already
		}
		to, at := disturbed, kind
		if !f.OnFault && kind != "History" {
			to, at = calm, scenario
		} else if known := calm[problem]; slices.Contains(known, scenario) ||
			len(known) > 0 && kind == "History" {
			continue
		}
		if !slices.Contains(to[problem], at) {
			to[problem] = append(to[problem], at)
		}
	}
	return calm, disturbed
}

const otherEnd = "the end is another one"

var summaries = []struct{ match, summary string }{
	{"but only .* if nothing goes wrong$", "more is created or deleted"},
	{"never comes to rest", "it never comes to rest"},
	{"nothing had happened", "it writes without a reason"},
	{"one request after the other", "it asks again without waiting"},
	{"belongs to somebody else", "it changes what belongs to somebody else"},
	{"^and .* more$|if nothing goes wrong$", otherEnd},
}

// summary returns a problem without what differs from case to case.
func summary(problem string) string {
	for _, s := range summaries {
		if regexp.MustCompile(s.match).MatchString(problem) &&
			!strings.HasPrefix(problem, "a Deployment") {
			return s.summary
		}
	}
	return problem
}

// cell returns what a cell of the table says.
func cell(problems map[string][]string) string {
	var all []string
	for _, problem := range slices.Sorted(maps.Keys(problems)) {
		where := strings.Join(problems[problem], ", ")
		if len(problems[problem]) == len(whatHappens) {
			where = "always"
		}
		all = append(all, fmt.Sprintf("%s (%s)", problem, where))
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, "; ")
}
