// Package film makes recordings for the lens of what has happened in a case of package explore.
package film

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/wire"
)

// Convert makes a recording of each film in a folder that -explore.film has written, and a page that
// shows all recordings.
func Convert(folder string) error {
	films, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return err
	}
	if len(films) == 0 {
		return fmt.Errorf("there is no film in %s: -explore.film writes one for each case that fails", folder)
	}
	for _, file := range films {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var f explore.Film
		if err := json.Unmarshal(text, &f); err != nil || len(f.Shots) == 0 {
			return fmt.Errorf("%s is not a film of -explore.film (%v)", file, err)
		}
		r := record(f.Title, f.About, f.Shots)
		r.Seen = nil // the page needs only the steps
		if err := r.Write(strings.TrimSuffix(file, ".json") + ".js"); err != nil {
			return err
		}
	}
	return writePage(folder)
}

// record makes a recording of what has happened.
func record(title, about string, shots []explore.Shot) *model.Recording {
	t := translator{}
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
		text, _ := json.Marshal(seen) // never fails
		r.Seen = append(r.Seen, text)
	}
	_, r.Steps, _ = r.Again() // it reads what is written above
	return r
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
	all  []model.Seen
	last time.Time
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
	return model.Seen{Wire: wireEvent(s)}
}

// kinds are the events of the wire that Shots tell of.
var kinds = map[string]wire.Kind{
	"requested": wire.RequestArrived, "passed": wire.RequestPassed, "answered": wire.Answered,
	"arrived": wire.EventArrived, "shown": wire.EventPassed, "closed": wire.WatchClosed,
}

func wireEvent(s explore.Shot) *wire.Event {
	e := &wire.Event{
		Kind: kinds[s.What], At: s.At, Request: s.Request, Number: s.Event, Verb: s.Verb,
		Version: s.Resource.Version, Resource: s.Resource.GroupResource().String(),
		Namespace: s.Namespace, Name: s.Name, Subresource: s.Subresource, Type: string(s.Type),
		Initial: s.Initial, Code: s.Code, Reason: s.Text, Injected: s.Injected || s.What == "closed",
	}
	if s.Resource.Resource == "" {
		e.Verb = "get"
	}
	if s.Verb != "list" && s.Object != nil {
		e.Object = objectOf(s)
	}
	return e
}

// objectOf returns what the lens needs to know of the object of a Shot.
func objectOf(s explore.Shot) *wire.Object {
	return wire.ObjectOf(s.Resource.GroupResource().String(), s.Object.DeepCopy())
}
