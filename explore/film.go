package explore

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/sample-controller/explore/apiserver"
)

// Shot is one thing that has happened in a case.
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
	Initial  bool // the event tells what there was when the watch began
	Code     int  // of the answer; 0 if there is none
	Injected bool // the answer is not that of the API server
}

// WriteFilm, if it is set, writes what has happened into a file, so that one can look at it. A
// package that can do this sets it. The flag -explore.film needs it.
var WriteFilm func(file, title, about string, shots []Shot) error

// shoot adds to the film of the case. If nobody wants to see that, steps and faults are enough.
func (w *World) shoot(s Shot) {
	if *film == "" && s.What != "step" && s.What != "fault" {
		return
	}
	w.filming.Lock()
	defer w.filming.Unlock()
	s.At = time.Now()
	w.film = append(w.film, s)
}

// reel puts what a process logs, and what the API server stores, into the film.
type reel struct{ world *World }

func (r reel) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		r.world.shoot(Shot{What: "log", Text: strings.TrimSuffix(line, "\n")})
	}
	return len(text), nil
}

func (reel) Serve(
	_ context.Context, _ *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	return do()
}

func (r reel) Event(out *apiserver.Watch, e watch.Event) {
	r.world.shoot(Shot{What: "stored", Request: out.Request, Type: e.Type,
		Object: e.Object.(*unstructured.Unstructured)})
}

// logger returns the logger of a process.
func (w *World) logger() klog.Logger {
	if *film == "" {
		return klog.Logger{}
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(5),
		textlogger.Output(reel{w})))
}

// answered is about the answer to a request.
func answered(r *apiserver.Request, response *apiserver.Response, err error, injected bool) Shot {
	s := Shot{What: "answered", Request: r, Injected: injected && err != nil}
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		s.Code, s.Text = int(status.Status().Code), string(status.Status().Reason)
	case err != nil:
		s.Text = err.Error()
	default:
		s.Code, s.Object = response.Code, response.Object
	}
	return s
}

// look puts what becomes of the objects that a process begins to watch into the film.
func (w *World) look(r *apiserver.Request) {
	if *film == "" || r.Verb != "watch" {
		return
	}
	w.mu.Lock()
	seen := w.seen[r.Path]
	w.seen[r.Path] = true
	w.mu.Unlock()
	if seen {
		return
	}
	request, err := http.NewRequest(http.MethodGet,
		"http://apiserver.invalid"+r.Path+"?watch=true&timeoutSeconds=100000000", nil)
	if err == nil {
		//nolint:bodyclose // it is that of the watch, which goes on until the case ends
		_, err = w.server.Client(reel{w}).RoundTrip(request) // nobody reads the answer
	}
	if err != nil {
		w.mistake("%v", err)
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
