package explore

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/sample-controller/explore/apiserver"
)

// Film is what has happened in a case. The flag -explore.film writes Films as JSON.
type Film struct {
	Title, About string
	Shots        []Shot
}

// Shot is one thing that has happened in a case.
type Shot struct {
	At time.Time
	// What is "started" or "ended" (a process), "step" (of a user), "log" (a line), "fault", "wrong",
	// "stored" (an object); "requested", "passed" (to the API server) or "answered" (a request);
	// "arrived" (from the API server) or "shown" (an event of a watch); or "closed" (a watch).
	What string
	Text string

	// Request is the number of the request, or of the watch of the event, from 1. The next fields
	// describe it as in apiserver.Request.
	Request                 int                         `json:",omitzero"`
	Verb, Path, Subresource string                      `json:",omitzero"`
	Resource                schema.GroupVersionResource `json:",omitzero"`
	Namespace, Name         string                      `json:",omitzero"`

	Object   *unstructured.Unstructured `json:",omitzero"`
	Event    int                        `json:",omitzero"` // its number, from 1
	Type     watch.EventType            `json:",omitzero"`
	Initial  bool                       `json:",omitzero"` // what there was when the watch began
	Code     int                        `json:",omitzero"` // of an answer
	Injected bool                       `json:",omitzero"` // the answer is not that of the API server
}

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

func (w *World) shootRequest(r *apiserver.Request, s Shot) {
	s.Request = w.numberOf(r)
	s.Verb, s.Path, s.Subresource = r.Verb, r.Path, r.Subresource
	s.Resource, s.Namespace, s.Name = r.Resource, r.Namespace, r.Name
	w.shoot(s)
}

// shootAnswer adds a Shot of what answers a request.
func (w *World) shootAnswer(r *apiserver.Request, answer *apiserver.Response, err error, injected bool) {
	s := Shot{What: "answered", Injected: injected}
	if answer != nil {
		s.Code, s.Object = answer.Code, answer.Object
	}
	if err != nil {
		s.Text = err.Error()
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		s.Code, s.Text = int(status.Status().Code), string(status.Status().Reason)
	}
	w.shootRequest(r, s)
}

func (s *stream) shoot(what string, event watch.Event) {
	object, _ := event.Object.(*unstructured.Unstructured)
	number := s.process.world.numberOf([3]any{s.Request, object, event.Type})
	s.process.world.shootRequest(s.Request, Shot{What: what, Event: number, Type: event.Type, Object: object,
		Initial: !s.begun})
}

// numberOf returns the number of a request or an event in the film.
func (w *World) numberOf(key any) int {
	w.filming.Lock()
	defer w.filming.Unlock()
	if w.filmed && w.numbers[key] == 0 {
		w.numbers[key] = len(w.numbers) + 1
	}
	return w.numbers[key]
}

const lastFew = 10 // lines of the log, and requests that a failure shows

// reel puts what a process logs into the film, and keeps the last lines.
type reel struct{ world *World }

func (r reel) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		r.world.shoot(Shot{What: "log", Text: line})
		r.world.filming.Lock()
		r.world.logs = append(r.world.logs[max(0, len(r.world.logs)-lastFew+1):], line)
		r.world.filming.Unlock()
	}
	return len(text), nil
}

func (w *World) logger() klog.Logger {
	verbosity := 0
	if w.filmed {
		verbosity = 5
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity),
		textlogger.Output(reel{w})))
}
