package explore

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/sample-controller/explore/apiserver"
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

// Shot is one thing that has happened in a case. Only WriteFilm gets it.
type Shot struct {
	At time.Time
	// What is "started" or "ended" (a process), "step" (of a user), "log" (a line), "fault", "wrong",
	// "stored" (an object); "requested", "passed" (to the API server) or "answered" (a request);
	// "arrived" (from the API server) or "shown" (an event of a watch); or "closed" (a watch).
	What     string
	Text     string
	Request  *apiserver.Request // what the Shot is about, or the watch of the event
	Type     watch.EventType
	Object   *unstructured.Unstructured
	Initial  bool                // the event tells what there was when the watch began
	Answer   *apiserver.Response // or Err
	Err      error
	Injected bool // the answer is not that of the API server
}

// WriteFilm, if it is set, writes what has happened into a file. A package that can do this sets
// it; a test only imports that. The flag -explore.film needs it.
var WriteFilm func(file, title, about string, shots []Shot) error

// shoot adds to the film of the case. If nobody wants to see that, steps and faults are enough.
func (w *World) shoot(s Shot) {
	if !w.filmed && s.What != "step" && s.What != "fault" {
		return
	}
	w.filming.Lock()
	defer w.filming.Unlock()
	s.At = time.Now()
	w.film = append(w.film, s)
}

// reel puts what a process logs into the film.
type reel struct{ world *World }

func (r reel) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		r.world.shoot(Shot{What: "log", Text: strings.TrimSuffix(line, "\n")})
	}
	return len(text), nil
}

// logger returns the logger of a process.
func (w *World) logger() klog.Logger {
	if !w.filmed {
		return klog.Logger{}
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(5),
		textlogger.Output(reel{w})))
}

// stored puts what the API server stores into the film.
func (w *World) stored(r *apiserver.Request, write apiserver.Write) {
	w.mu.Lock()
	if w.insist != nil {
		w.insist(r)
	}
	w.mu.Unlock()
	if resource := r.Resource.Resource; !isSideshow(resource) && resource != "namespaces" {
		w.shoot(Shot{What: "stored", Request: r, Type: write.Type, Object: write.Event})
	}
}

// writeFilms writes the film of a case that has failed, and that of the undisturbed run. It returns
// where.
func writeFilms(name string, calm, r *result, wrong []string) string {
	if WriteFilm == nil {
		return "none, because no package is imported that can write one"
	}
	shots := slices.Clone(r.film)
	for _, what := range wrong {
		shots = append(shots, Shot{At: shots[len(shots)-1].At, What: "wrong", Text: what})
	}
	name = strings.NewReplacer("/", ".", " ", "-").Replace(name)
	file := filepath.Join(*film, name[max(0, len(name)-200):]) // longer names are not possible
	err := WriteFilm(file+".js", name, strings.Join(wrong, "; "), shots)
	if calm != nil && err == nil {
		shots = slices.Clone(calm.film)
		for _, s := range r.film {
			if s.What == "fault" {
				s.Text = "in the other film, " + s.Text
				shots = append(shots, s)
			}
		}
		slices.SortStableFunc(shots, func(a, b Shot) int { return a.At.Compare(b.At) })
		err = WriteFilm(file+".undisturbed.js", "undisturbed: "+name, "", shots)
	}
	if err != nil {
		return err.Error()
	}
	return file + ".js, and beside it that of the undisturbed run"
}
