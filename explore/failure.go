package explore

import (
	"flag"
	"fmt"
	"os"
	"regexp"
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
}

// faults returns how many faults came about.
func (r *result) faults() (n int) {
	for _, s := range r.film {
		if s.What == "fault" {
			n++
		}
	}
	return n
}

// fail fails the test if something is wrong. It says what and where, and how to run the case alone.
func (x *explorer) fail(t *testing.T, calm, r *result) {
	t.Helper()
	wrong := r.wrong()
	if x.found != nil {
		for _, problem := range wrong {
			x.found(Finding{t.Name(), r.faults() > 0, problem})
		}
		return
	}
	if len(wrong) == 0 {
		return
	}
	text := r.story() + "\nBut then, this was wrong:\n     " + strings.Join(wrong, "\n     ") +
		"\nTo run this case alone:\n     " + alone(t.Name())
	if *film != "" {
		text += "\nIts film: " + writeFilms(t.Name(), calm, r, wrong)
	}
	t.Error(text)
}

// story says which steps there were, and what went wrong on purpose.
func (r *result) story() string {
	var faults string
	var steps []string
	for _, s := range r.film {
		switch last := len(steps) - 1; {
		case s.What == "step":
			steps = append(steps, fmt.Sprintf("\n     %d. %s", last+2, s.Text))
		case s.What == "fault":
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
