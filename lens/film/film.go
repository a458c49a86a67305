// Package film makes recordings for the lens of what has happened in a case of package explore. A
// test that imports it has the flag -explore.film.
package film

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/testing/wire"
	"example.com/sample-controller/lens/model"
)

func init() { explore.WriteFilm = write }

// write writes a recording, and a page that shows all recordings in its folder.
func write(file, title, about string, shots []explore.Shot) error {
	r, err := Record(title, about, shots)
	if err != nil {
		return err
	}
	r.Seen = nil // the page needs only the steps
	folder := filepath.Dir(file)
	if err = os.MkdirAll(folder, 0o755); err == nil {
		err = r.Write(file)
	}
	if err == nil {
		err = writePage(folder)
	}
	return err
}

// Record makes a recording of what has happened.
func Record(title, about string, shots []explore.Shot) (*model.Recording, error) {
	t := translator{requests: map[*apiserver.Request]int{}, events: map[event]int{}}
	r := &model.Recording{Title: title, About: about, Start: shots[0].At}
	t.see(shots[0].At, model.Seen{Server: &model.Server{State: "up", Host: "in memory"}})
	for _, shot := range shots {
		t.pass(shot.At)
		if !shot.At.After(t.last) { // effects stand behind their causes
			shot.At = t.last.Add(100 * time.Microsecond)
		}
		t.see(shot.At, t.seen(shot))
	}
	t.pass(t.last.Add(time.Minute))
	for _, seen := range t.all {
		text, err := json.Marshal(seen)
		if err != nil {
			return nil, err
		}
		r.Seen = append(r.Seen, text)
	}
	var err error
	_, r.Steps, err = r.Again()
	return r, err
}

// writePage writes the page of a folder with recordings. It is that of the lens.
func writePage(folder string) error {
	_, here, _, _ := runtime.Caller(0)
	web := filepath.Join(filepath.Dir(here), "../web")
	page, err := os.ReadFile(filepath.Join(web, "index.html"))
	if err != nil {
		return err
	}
	text := strings.NewReplacer(`data-steps="steps"`, `data-recordings=""`,
		`"web/`, `"file://`+filepath.ToSlash(web)+`/`).Replace(string(page))
	text += "<script src=\"index.js\"></script>\n"
	return os.WriteFile(filepath.Join(folder, "index.html"), []byte(text), 0o644)
}

// translator makes what the lens could have seen of what has happened.
type translator struct {
	all      []model.Seen
	last     time.Time
	requests map[*apiserver.Request]int // their numbers
	events   map[event]int
}

// event is one that has arrived.
type event struct {
	watch  *apiserver.Request
	object *unstructured.Unstructured
	is     watch.EventType
}

func (t *translator) see(at time.Time, seen model.Seen) {
	seen.At, t.last = at, at
	t.all = append(t.all, seen)
}

// pass lets time pass: the model of the lens has no clock. After some seconds, nothing changes.
func (t *translator) pass(until time.Time) {
	for _, after := range []time.Duration{100 * time.Millisecond, time.Second / 2, 3 * time.Second,
		6 * time.Second} {
		if at := t.last.Add(after); at.Before(until) {
			t.all = append(t.all, model.Seen{At: at})
		}
	}
}

// clock is the time in a line of a log.
var clock = regexp.MustCompile(`^([IWEF]\d{4} )\d\d:\d\d:\d\d\.\d{6}`)

func (t *translator) seen(s explore.Shot) model.Seen {
	switch s.What {
	case "started", "ended":
		return model.Seen{Program: &model.Program{Running: s.What == "started", Note: s.Text,
			Command: "controller"}}
	case "step":
		return model.Seen{User: &model.User{Command: s.Text}}
	case "log":
		return model.Seen{Log: clock.ReplaceAllString(s.Text, "${1}"+s.At.Format("15:04:05.000000"))}
	case "fault":
		return model.Seen{Note: "Here, " + s.Text + "."}
	case "wrong":
		return model.Seen{Wrong: s.Text}
	case "stored":
		return model.Seen{Stored: &model.Stored{Type: string(s.Type), Object: objectOf(s)}}
	}
	return model.Seen{Wire: t.wire(s)}
}

// kinds are the events of the wire that Shots tell of.
var kinds = map[string]wire.Kind{
	"requested": wire.RequestArrived, "passed": wire.RequestPassed, "answered": wire.Answered,
	"arrived": wire.EventArrived, "shown": wire.EventPassed, "closed": wire.WatchClosed,
}

func (t *translator) wire(s explore.Shot) *wire.Event {
	r := s.Request
	if t.requests[r] == 0 {
		t.requests[r] = len(t.requests) + 1
	}
	e := &wire.Event{
		Kind: kinds[s.What], At: s.At, Request: t.requests[r], Verb: r.Verb,
		Version: r.Resource.Version, Resource: r.Resource.GroupResource().String(),
		Namespace: r.Namespace, Name: r.Name, Subresource: r.Subresource, Type: string(s.Type),
		Initial: s.Initial, Reason: s.Text, Injected: s.Injected || s.What == "closed",
	}
	if r.Resource.Resource == "" {
		e.Verb, e.Path = "get", r.Path
	}
	var status apierrors.APIStatus
	switch {
	case errors.As(s.Err, &status):
		e.Code, e.Reason = int(status.Status().Code), string(status.Status().Reason)
	case s.Err != nil:
		e.Reason = s.Err.Error()
	case s.Answer != nil:
		e.Code, s.Object = s.Answer.Code, s.Answer.Object
	}
	if r.Verb != "list" && s.Object != nil {
		e.Object = objectOf(s)
	}
	if s.Type != "" {
		key := event{r, s.Object, s.Type}
		if t.events[key] == 0 {
			t.events[key] = len(t.events) + 1
		}
		e.Number = t.events[key]
	}
	return e
}

// objectOf returns what the lens needs to know of the object of a Shot.
func objectOf(s explore.Shot) *wire.Object {
	return wire.ObjectOf(s.Request.Resource.GroupResource().String(), s.Object.DeepCopy())
}
