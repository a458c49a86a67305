package explore

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hit says that a fault came about.
type hit struct {
	what string // in words
	step int    // the number of the step before, from 1
	at   time.Time
}

// hit notes that a fault has come about. w.mu must be held.
func (w *World) hit(what string) {
	w.hits = append(w.hits, hit{what, len(w.steps), time.Now()})
	w.shoot(Shot{What: "fault", Text: what})
}

// fail fails the test if something is wrong. It says what and where, and how to run the case alone.
// Cases of these names beside it must run before it.
func (x *explorer) fail(t *testing.T, scenario string, r *result, sooner ...string) {
	t.Helper()
	wrong := r.wrong()
	if len(wrong) == 0 {
		return
	}
	if found != nil {
		for _, problem := range wrong {
			found(Finding{t.Name(), len(r.hits) > 0, problem})
		}
		return
	}
	var text strings.Builder
	for _, h := range r.hits {
		fmt.Fprintf(&text, "\nOn purpose, %s.", h.what)
	}
	fmt.Fprintf(&text, "\nIt happened at the step with the arrow:")
	if len(r.hits) == 0 {
		text.Reset()
		fmt.Fprint(&text, "\nNothing went wrong on purpose. The steps were:")
	}
	for i, step := range r.steps {
		mark := "  "
		for _, h := range r.hits {
			if h.step == i+1 {
				mark = "->"
			}
		}
		fmt.Fprintf(&text, "\n  %s %d. %s", mark, i+1, step)
	}
	fmt.Fprintf(&text, "\nBut then, this was wrong:\n     %s", strings.Join(wrong, "\n     "))
	fmt.Fprintf(&text, "\nTo run this case alone:\n     %s", alone(t.Name(), sooner))
	if *film != "" {
		fmt.Fprintf(&text, "\nIts film: %s", x.film(t.Name(), scenario, r, wrong))
	}
	t.Error(text.String())
}

// alone returns the command that runs a case alone.
func alone(name string, sooner []string) string {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	for _, name := range sooner {
		parts[last] += "|^" + regexp.QuoteMeta(name) + "$"
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
