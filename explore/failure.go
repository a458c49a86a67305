package explore

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Finding is what is wrong in a case.
type Finding struct {
	Case    string // the name of its test: "TestExplore/Crash/scale/update-deployments-x-1/before"
	OnFault bool   // something went wrong on purpose before
	Problem string
	Film    []Shot // of one case: see Find
}

// isDisturbed reports whether a fault came about.
func (r *result) isDisturbed() bool {
	return slices.ContainsFunc(r.film, func(s Shot) bool { return s.What == "fault" })
}

// fail fails the test if something is wrong. It says what and where, and how to run the case alone.
func (x *explorer) fail(t *testing.T, calm, r *result) {
	t.Helper()
	wrong := r.wrong()
	if x.found != nil {
		for _, problem := range wrong {
			x.found(Finding{t.Name(), r.isDisturbed(), problem, r.film})
		}
		return
	}
	if len(wrong) == 0 {
		return
	}
	filmed := ""
	if *film != "" {
		filmed = "\nIts film: " + writeFilms(t.Name(), calm, r, wrong)
	}
	story := r.story()
	what, length := wrong[0], strings.Count(story, "\n")
	g := x.failures[what]
	if g.cases++; g.cases == 1 || length < g.length {
		g.length, g.shortest = length, t.Name()
		t.Error(story + "\nBut then, this was wrong:\n     " + strings.Join(wrong, "\n     ") +
			"\nTo run this case alone:\n     " + alone(t.Name()) + filmed)
	}
	x.failures[what] = g
	t.Fail()
}

// failures are cases in which the same is wrong. Only one that is shorter than all before is told.
type failures struct {
	cases, length int
	shortest      string
}

// summarize says how many cases have failed, unless it was only one.
func (x *explorer) summarize() {
	x.t.Helper()
	n, text := 0, ""
	for _, what := range slices.Sorted(maps.Keys(x.failures)) {
		g := x.failures[what]
		n += g.cases
		text += fmt.Sprintf("\n%6d  %s\n        the shortest: %s", g.cases, what, g.shortest)
	}
	if n > 1 {
		x.t.Errorf("\nIn all, %d cases failed. What was wrong, in how many, and the shortest of them:%s",
			n, text)
	}
}

// story says which steps there were, and what went wrong on purpose.
func (r *result) story() string {
	var faults string
	var steps []string
	for _, s := range r.film {
		switch last := len(steps) - 1; s.What {
		case "step":
			steps = append(steps, fmt.Sprintf("\n     %d. %s", last+2, s.Text))
		case "fault":
			faults += fmt.Sprintf("\nOn purpose, %s.", s.Text)
			if last >= 0 {
				steps[last] = strings.Replace(steps[last], "\n     ", "\n  -> ", 1)
			}
		}
	}
	if faults == "" {
		return "\nNothing went wrong on purpose. The steps were:" + strings.Join(steps, "")
	}
	return faults + "\nIt happened at the step with the arrow:" + strings.Join(steps, "")
}

// alone returns the command that runs a case alone.
func alone(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	folder, _ := os.Getwd() // go test runs the tests of a package in its folder
	command := fmt.Sprintf("go -C %s test -run '%s'", folder,
		strings.ReplaceAll(strings.Join(parts, "/"), "'", "."))
	flag.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "explore.") && f != flag.Lookup("explore.film") {
			command += fmt.Sprintf(" -%s=%s", f.Name, f.Value)
		}
	})
	return command
}

// nameOf returns what people call an object, such as "the Deployment x of Foo a".
func nameOf(u *unstructured.Unstructured) string {
	name := fmt.Sprintf("the %s %s", u.GetKind(), u.GetName())
	if namespace := u.GetNamespace(); namespace != "" && namespace != Namespace {
		name += " in " + namespace
	}
	if owner := metav1.GetControllerOf(u); owner != nil {
		name += fmt.Sprintf(" of %s %s", owner.Kind, owner.Name)
	}
	return name
}

// sentence says what a write did, and what speaks against it.
func (w Write) sentence(reason string) string {
	did, object := "changed", w.Old
	switch {
	case w.Old == nil:
		did, object = "created", w.New
	case strings.HasPrefix(w.Verb, "delete"):
		did = "deleted"
	}
	if w.Subresource != "" {
		did = "changed in its " + w.Subresource
	}
	return fmt.Sprintf("%s was %s although %s", nameOf(object), did, reason)
}
