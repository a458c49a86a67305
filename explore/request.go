package explore

import (
	"fmt"
	"strings"
	"time"

	"example.com/sample-controller/explore/apiserver"
)

// Request is a request of the controller, or an event that a watch shows it.
type Request struct {
	Process int
	Kind    string // "update-foos-status", or "foos-MODIFIED" for an event
	Name    string // of the object, "a", or of the reason and the object of an Event
	Nth     int    // of these in the process
	At      time.Time

	write bool // of something but Events and Leases
	verb  string
}

func (r Request) String() string {
	text := fmt.Sprintf("%s-%d", r.about(), r.Nth)
	if r.Process > 1 {
		text = fmt.Sprintf("process-%d-%s", r.Process, text)
	}
	return text
}

// about returns what several requests have in common.
func (r Request) about() string {
	if r.Name == "" {
		return r.Kind
	}
	return r.Kind + "-" + r.Name
}

// describe returns what a request is about.
func describe(r *apiserver.Request) Request {
	if r.Resource.Resource == "" {
		return Request{Kind: "get-" + strings.ReplaceAll(strings.Trim(r.Path, "/"), "/", "-")}
	}
	d := Request{Kind: r.Verb + "-" + r.Resource.Resource, Name: r.Name, verb: r.Verb}
	if r.Subresource != "" {
		d.Kind += "-" + r.Subresource
	}
	if r.Namespace != Namespace && r.Namespace != "" {
		d.Name = r.Namespace + "-" + d.Name
	}
	if r.Resource.Resource == "events" {
		d.Name = "" // Events are named by what they are about: their names differ from run to run
		if r.Body != nil {
			d.Name = eventName(r.Body.Object)
		}
	}
	d.write = !isSideshow(r.Resource.Resource) && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
	return d
}

// eventName returns the reason of an Event, and the name of the object that it is about.
func eventName(event map[string]any) string {
	for _, field := range []string{"regarding", "involvedObject"} {
		if object, ok := event[field].(map[string]any); ok {
			return fmt.Sprint(event["reason"], "-", object["name"])
		}
	}
	return ""
}

// note counts a request or an event. w.mu must be held.
func (p *process) note(r Request) Request {
	p.count[r.about()]++
	r.Process, r.Nth, r.At = p.number, p.count[r.about()], time.Now()
	return r
}
