// Package model makes a picture of a controller from what is seen of it: what goes over the wire,
// what it logs, and what the API server stores.
package model

import (
	"time"

	"example.com/sample-controller/lens/wire"
)

// Seen is one thing that the lens has seen. At most one field besides At is set; if none is, time
// has passed: a Model should see that several times a second. A recording stores what was seen: a
// Model that sees the same again makes the same steps.
type Seen struct {
	At      time.Time   `json:"at"`
	Wire    *wire.Event `json:"wire,omitempty"`
	Log     string      `json:"log,omitempty"` // a line of the program
	Stored  *Stored     `json:"stored,omitempty"`
	Program *Program    `json:"program,omitempty"`
	Server  *Server     `json:"server,omitempty"`
	Gate    *Gate       `json:"gate,omitempty"` // Waiting is left to the Model
	User    *User       `json:"user,omitempty"`
}

// Stored is a change of what the API server stores, as an informer of the lens shows it.
type Stored struct {
	Type   string       `json:"type"` // ADDED, MODIFIED, DELETED
	Object *wire.Object `json:"object"`
	// Initial: the object was there when the lens began to look.
	Initial bool `json:"initial,omitempty"`
}

// Program is about the process of the program: it was started, or it has ended.
type Program struct {
	Command string `json:"command"`
	Running bool   `json:"running"`
	Note    string `json:"note,omitempty"` // how it ended
}

// User is about a command of the user, which begins.
type User struct {
	Command string `json:"command"`
}

// Step is a change of the picture. A picture is a set of entities; each has an ID, which begins
// with what it is, and all that there is to draw of it.
type Step struct {
	// At is when it happened, since the lens started.
	At time.Duration `json:"at"` // nanoseconds
	// Set holds the new state of each entity that is new or has changed, whole.
	Set map[string]Entity `json:"set,omitempty"`
	// Drop holds the IDs of the entities that are gone.
	Drop []string `json:"drop,omitempty"`
}

// Entity is one of the types below.
type Entity any

// ID: "process". There is one.
type Process struct {
	Command  string `json:"command"`
	State    string `json:"state"` // starting, running, exited
	Note     string `json:"note,omitempty"`
	Starts   int    `json:"starts"`
	Primary  string `json:"primary,omitempty"` // the resource whose keys are in the queue
	HasLog   bool   `json:"hasLog"`            // it logs its queue and its syncs; else the wire alone tells
	Finished int    `json:"finished"`          // syncs so far
}

// ID: "server". There is one.
type Server struct {
	State string `json:"state"` // up, down
	Host  string `json:"host"`
}

// ID: "gate". There is one: it holds back what passes the proxy.
type Gate struct {
	Mode    string `json:"mode"` // open, slow, paused
	Delay   string `json:"delay,omitempty"`
	Waiting int    `json:"waiting"` // requests and watch events that are held; set as time passes
}

// ID: "object/RESOURCE/NAMESPACE/NAME". An object in the API server, in the program's cache, or in
// both.
type Object struct {
	Resource        string `json:"resource"`
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion,omitempty"` // in the API server; empty if it is not there
	Summary         string `json:"summary,omitempty"`
	Deleting        bool   `json:"deleting,omitempty"`
	Owner           string `json:"owner,omitempty"`  // ID of its controller's entity
	Cached          string `json:"cached,omitempty"` // resourceVersion in the cache; empty if it is not there
	CachedSummary   string `json:"cachedSummary,omitempty"`
}

// ID: "watch/RESOURCE".
type Watch struct {
	Resource string `json:"resource"`
	State    string `json:"state"`          // listing, open, closed
	Note     string `json:"note,omitempty"` // why it is closed, what it waits for
	Behind   int    `json:"behind"`         // events that are on their way to the program
}

// ID: "flight/NUMBER". A watch event on its way to the program. It is dropped some time after it
// has arrived.
type Flight struct {
	Resource string `json:"resource"`
	Type     string `json:"type"`
	Object   string `json:"object"` // ID
	State    string `json:"state"`  // held, passed (the proxy), handled (by a handler)
}

// ID: "key/NAMESPACE/NAME". A key that the queue knows. When its sync has finished, it is dropped.
type Key struct {
	Key      string        `json:"key"`
	State    string        `json:"state"`             // waiting, processing, delayed
	Dirty    bool          `json:"dirty,omitempty"`   // added while it is processed: it will be synced again
	Merged   int           `json:"merged,omitempty"`  // how often it was added while it was waiting already
	Because  string        `json:"because,omitempty"` // why it was added last
	Since    time.Duration `json:"since"`
	Until    time.Duration `json:"until,omitempty"` // when a delayed key comes back
	Failures int           `json:"failures,omitempty"`
	Position int           `json:"position,omitempty"` // grows with each key that begins to wait
}

// ID: "worker/NUMBER".
type Worker struct {
	Key     string        `json:"key,omitempty"` // empty: it waits for one
	Since   time.Duration `json:"since"`
	Request string        `json:"request,omitempty"` // ID, while it waits for an answer
}

// ID: "request/NUMBER". It is dropped some time after its answer.
type Request struct {
	Verb     string `json:"verb"`
	What     string `json:"what"`             // "foos/status example-foo", "deployments example-foo", "events"
	Object   string `json:"object,omitempty"` // ID
	Key      string `json:"key,omitempty"`    // of the sync that it belongs to, if known
	State    string `json:"state"`            // held, going, answered
	Code     int    `json:"code,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Injected bool   `json:"injected,omitempty"`
	Held     bool   `json:"held,omitempty"` // by the lens, until the program no longer waited
}

// ID: "span/NUMBER". A bar of the time line.
type Span struct {
	Key    string        `json:"key"`  // whose lane it is in
	What   string        `json:"what"` // user, request, watch, queue, delay, sync
	Label  string        `json:"label"`
	Begin  time.Duration `json:"begin"`
	End    time.Duration `json:"end,omitempty"`    // 0: not ended
	Causes []string      `json:"causes,omitempty"` // IDs of spans, which may be gone
	Place  string        `json:"place,omitempty"`  // of the code that was at work: see the page
	Failed bool          `json:"failed,omitempty"`
}

// ID: "note/NUMBER". A sentence about something that has happened, for the list of what happens,
// which is sorted by At: what is told later may have happened before.
type Note struct {
	At   time.Duration `json:"at"`
	Key  string        `json:"key,omitempty"`
	Text string        `json:"text"`
	// Lesson is the name of a thing that one should recognise: duplicate, dirty, backoff, stale,
	// conflict, timeout, expired, noop, taken, deleted, cut, held. The page explains it. Most
	// have none.
	Lesson string `json:"lesson,omitempty"`
}
