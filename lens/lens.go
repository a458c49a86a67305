package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"example.com/sample-controller/lens/model"
)

const (
	// maxBehind is how many steps a page may be behind. A page that is slower has to begin again.
	maxBehind = 4096
	// maxRecording limits a recording, in bytes.
	maxRecording = 64 << 20
	// tick is how often the model is told that time has passed.
	tick = 100 * time.Millisecond
)

// lens puts together what is seen, and shows it to the pages that are open.
type lens struct {
	mu    sync.Mutex
	start time.Time
	model *model.Model
	pages map[chan []byte]bool

	// What was seen so far, and the steps that the model made of it, each as JSON.
	seen, steps [][]byte
	size        int
	cut         bool // there was more
}

func newLens(primary string) *lens {
	start := time.Now()
	return &lens{start: start, model: model.New(start, primary), pages: map[chan []byte]bool{}}
}

// see shows what has happened just now. If that is nothing, time has passed.
func (l *lens) see(seen model.Seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen.At = time.Now()
	step := l.model.See(seen)
	isEmpty := len(step.Set) == 0 && len(step.Drop) == 0
	if isEmpty && seen == (model.Seen{At: seen.At}) {
		return // nothing has changed with time
	}
	l.record(&l.seen, encode(seen))
	if isEmpty {
		return
	}
	message := encode(step)
	l.record(&l.steps, message)
	for page := range l.pages {
		select {
		case page <- message:
		default:
			l.closeLocked(page)
		}
	}
}

// open returns a channel with all that there is, and then with each step. It is closed when the
// reader is too far behind.
func (l *lens) open() chan []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := make(chan []byte, maxBehind)
	page <- encode(l.model.All())
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
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.model.All().Set
}

// record adds to the recording, unless that is full.
func (l *lens) record(to *[][]byte, entry []byte) {
	l.cut = l.cut || l.size+len(entry) > maxRecording
	if !l.cut {
		l.size += len(entry)
		*to = append(*to, entry)
	}
}

// encode returns the JSON of a value that certainly has one.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("%T has no JSON: %v", value, err))
	}
	return text
}
