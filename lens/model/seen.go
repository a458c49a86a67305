package model

import (
	"time"

	"example.com/sample-controller/internal/testing/wire"
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
	Note    string      `json:"note,omitempty"`  // of a film: what goes wrong on purpose
	Wrong   string      `json:"wrong,omitempty"` // and what is wrong in the end
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
