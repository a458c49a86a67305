package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"example.com/sample-controller/lens/model"
)

const (
	// frame is how long what is seen may wait until the pages show it, together with what follows: a
	// page that draws, and the model, take processors from the program.
	frame = 30 * time.Millisecond
	// maxBehind is how many frames a page may be behind. A page that is slower has to begin again.
	maxBehind = 1024
	// tick is how often the model is told that time has passed.
	tick = 100 * time.Millisecond
)

// lens puts together what is seen, and shows it to the pages that are open.
type lens struct {
	start time.Time

	seeing  sync.Mutex
	unshown []model.Seen // since the last frame

	mu    sync.Mutex
	model *model.Model
	pages map[chan []byte]bool

	records bool              // with -record
	seen    []json.RawMessage // what was seen so far, if the lens records
}

func newLens() *lens {
	start := time.Now()
	return &lens{start: start, model: model.New(start), pages: map[chan []byte]bool{}}
}

// see notes what has happened just now. If that is nothing, time has passed. The program may have
// to wait for see, so show does the work, a moment later.
func (l *lens) see(seen model.Seen) {
	l.seeing.Lock()
	defer l.seeing.Unlock()
	seen.At = time.Now()
	if l.unshown = append(l.unshown, seen); len(l.unshown) == 1 {
		time.AfterFunc(frame, l.show)
	}
}

// show sends the steps that follow from what was seen to the pages.
func (l *lens) show() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seeing.Lock()
	unshown := l.unshown
	l.unshown = nil
	l.seeing.Unlock()
	var messages []byte
	for _, seen := range unshown {
		if seen.Wire != nil {
			seen.Wire.Read()
		}
		if step := l.apply(seen); step != nil {
			messages = append(messages, message(step)...)
		}
	}
	if messages == nil {
		return
	}
	for page := range l.pages {
		select {
		case page <- messages:
		default:
			l.closeLocked(page)
		}
	}
}

// apply returns the step that follows from what was seen as JSON, or nil if nothing has changed.
func (l *lens) apply(seen model.Seen) []byte {
	step := l.model.See(seen)
	isEmpty := len(step.Set) == 0 && len(step.Drop) == 0
	isTime := isEmpty && seen == model.Seen{At: seen.At} // nothing was seen but that time passes
	if l.records && !isTime {
		l.seen = append(l.seen, encode(seen))
	}
	if isEmpty {
		return nil
	}
	return encode(step)
}

// message returns a step as an EventSource of a page reads it.
func message(step []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", step) }

// open returns a channel with messages of all that there is, and then of each step. It is closed
// when the reader is too far behind.
func (l *lens) open() chan []byte {
	l.show()
	l.mu.Lock()
	defer l.mu.Unlock()
	page := make(chan []byte, maxBehind)
	page <- message(encode(l.model.All()))
	l.pages[page] = true
	return page
}

// close ends what open began.
func (l *lens) close(page chan []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked(page)
}

func (l *lens) closeLocked(page chan []byte) {
	if l.pages[page] {
		delete(l.pages, page)
		close(page)
	}
}

// all returns all entities that there are now.
func (l *lens) all() map[string]model.Entity {
	l.show()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.model.All().Set
}

// encode returns the JSON of a value that certainly has one.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("%T has no JSON: %v", value, err))
	}
	return text
}
