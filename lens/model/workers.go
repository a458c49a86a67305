package model

import (
	"fmt"
	"slices"
	"time"
)

const (
	// patience is how long a key may wait while a worker is free.
	patience = 2 * time.Second
	// maxWorkers limits what a line may make the Model draw.
	maxWorkers = 100
)

type worker struct {
	Worker
	id     string
	number int
}

// freeWorker returns the free worker with the lowest number.
func (m *Model) freeWorker() *worker {
	for _, w := range m.workers {
		if w.Key == "" {
			return w
		}
	}
	return m.addWorker()
}

func (m *Model) addWorker() *worker {
	id := fmt.Sprintf("worker/%d", len(m.workers)+1)
	w := &worker{Worker: Worker{Since: m.at}, id: id, number: len(m.workers) + 1}
	m.workers = append(m.workers, w)
	m.show(w.id, &w.Worker)
	return w
}

// dropLost drops keys that wait although a worker has been free for long: they are not in the
// queue. That is rare. The Model may count a delay that the queue has merged with another one.
func (m *Model) dropLost() {
	if !slices.ContainsFunc(m.workers, func(w *worker) bool {
		return w.Key == "" && m.now-w.Since >= patience
	}) {
		return
	}
	for _, k := range m.keys {
		if k.waiting && m.now-k.Since >= patience {
			k.waiting = false
			m.end(k.queue, true)
			m.showKey(k)
		}
	}
}

// stopQueue forgets the keys and the workers.
func (m *Model) stopQueue() {
	for _, k := range m.keys {
		m.end(k.queue, true)
		m.end(k.delay, true)
		m.end(m.syncs.values[k.name], true)
		k.waiting, k.worker, k.until = false, nil, 0
		m.showKey(k)
	}
	for _, w := range m.workers {
		m.drop(w.id)
	}
	m.workers = nil
}
