package model

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// After an error, a key is retried after 5ms, 10ms, 20ms, ... 30s, 30s: see controller.go.
	minRetryDelay = 5 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// key is a key that the queue knows. As in a workqueue, a delay may run while the key waits, and
// while a worker has it. If a handler adds it while a worker has it, it is dirty.
type key struct {
	Key
	id, name      string
	waiting       bool
	worker        *worker       // that processes it, or nil
	until         time.Duration // when it is added again; 0: never
	queue, delay  string        // IDs of the spans of its time in the queue, and of its delay
	failed, again bool          // what has become of the sync
}

// ofKey are the messages that name a kind. The others are about the kind that these have named. A
// controller that is to be seen writes them word for word: tests of the root hold those of the root,
// TestLogTellsTheWayOfAFoo and TestLogTellsHowSyncsFail.
var ofKey = regexp.MustCompile(`^(Queueing|Started syncing|Finished syncing) (\S+)( again)?$`)

// seeRecord applies a record of the log.
func (m *Model) seeRecord(r record) {
	message, kind := r.message, m.kind
	if match := ofKey.FindStringSubmatch(message); match != nil {
		message, kind = match[1]+match[3], match[2]
	}
	k := m.keyOf(r, kind)
	switch {
	case message == "Starting the workers":
		count, _ := strconv.Atoi(r.values["count"])
		for len(m.workers) < min(count, maxWorkers) {
			m.addWorker()
		}
		m.running()
		m.note("", "", "%d workers begin to take keys from the queue.", count)
	case message == "Stopped the workers":
		m.stopQueue()
		m.note("", "", "The workers have stopped. Keys that still waited are dropped.")
	case k == nil:
		if r.failed {
			m.note("", "", "The program logs an error: %s", r.message)
		}
	case message == "Queueing":
		cause := ""
		if f := m.flights.values[r.values["object"]+"@"+r.values["resourceVersion"]]; f != nil {
			cause = m.handled(f, k.name)
		}
		m.add(k, r.values["because"], cause)
	case message == "Queueing again":
		m.addAgain(k, r)
	case message == "Started syncing":
		m.started(k)
	case message == "Finished syncing" && k.worker != nil:
		m.finished(k)
	case message == "Syncing failed, will retry", message == "Retrying after a conflict":
		m.failed(k, r)
	default:
		m.showKey(k)
	}
}

// keyOf returns the key of a record about a key of that kind. It returns nil if there is none, or
// if it is of another queue.
func (m *Model) keyOf(r record, kind string) *key {
	name := ""
	for field, value := range r.values {
		if strings.EqualFold(field, kind) {
			name = max(name, value)
		}
	}
	if m.kind == "" && name != "" {
		m.kind = kind
		m.findPrimary()
	}
	if name == "" || kind == "" || !strings.EqualFold(kind, m.kind) {
		return nil
	}
	if !m.process.HasLog {
		m.process.HasLog, m.process.Note = true, ""
		m.show("process", &m.process)
	}
	if m.keys[name] == nil {
		m.keys[name] = &key{Key: Key{Key: name}, id: "key/" + name, name: name}
	}
	return m.keys[name]
}

// add does what queue.Add does: a key waits only once, and is not given to two workers.
func (m *Model) add(k *key, because, cause string) {
	k.Because = because
	switch {
	case k.waiting:
		k.Merged++
		m.cause(k.queue, cause)
		m.note(k.name, "duplicate", "%s is in the queue already, and one sync is enough: %s.",
			k.name, because)
	case k.Dirty:
		m.cause(k.queue, cause)
		m.note(k.name, "dirty", "%s is being synced now, and one more sync is enough: %s.",
			k.name, because)
	case k.worker != nil:
		k.Dirty = true
		k.queue = m.begin("queue", k.name, because, "queue", cause)
		m.note(k.name, "dirty", "%s is being synced now, so it will be synced again: %s.",
			k.name, because)
	default:
		k.queue = m.begin("queue", k.name, because, "queue", cause)
		m.wait(k)
		m.note(k.name, "", "%s goes into the queue: %s.", k.name, because)
	}
	m.showKey(k)
}

// wait puts k at the end of the queue.
func (m *Model) wait(k *key) {
	m.numbers["turn"]++
	k.waiting, k.Dirty, k.Merged, k.Position = true, false, 0, m.numbers["turn"]
}

// addAgain applies the line before queue.AddAfter, or before queue.Add in a timer.
func (m *Model) addAgain(k *key, r record) {
	k.again = true
	because, lesson := r.values["because"], ""
	after, err := time.ParseDuration(r.values["after"])
	if err != nil {
		m.add(k, because, m.syncs.values[k.name])
		return
	}
	if strings.Contains(because, "cache") {
		lesson = "stale"
		if m.gate.Mode == "paused" {
			because += ", because you hold it back"
		}
	}
	m.note(k.name, lesson, "%s comes back in %v: %s.", k.name, after, because)
	m.delayKey(k, after, because)
}

// started applies the line after queue.Get. A key that does not wait is taken as it is: another
// worker may have written its line first, or it was delayed for a shorter time than the Model
// knows.
func (m *Model) started(k *key) {
	cause := k.queue
	if !k.waiting && !k.Dirty && k.until != 0 {
		cause, k.until = k.delay, 0
	}
	m.end(cause, false)
	if k.worker == nil {
		k.worker = m.freeWorker()
	}
	*k = key{Key: k.Key, id: k.id, name: k.name, worker: k.worker, until: k.until, delay: k.delay}
	k.Dirty = false
	k.worker.Worker = Worker{Key: k.name, Since: m.at}
	m.show(k.worker.id, &k.worker.Worker)
	m.end(m.syncs.values[k.name], false)
	label := fmt.Sprintf("sync by worker %d", k.worker.number)
	m.syncs.set(k.name, m.begin("sync", k.name, label, "sync", cause))
	m.adopt(k)
	m.showKey(k)
	m.note(k.name, "", "Worker %d starts to sync %s.", k.worker.number, k.name)
}

// finished applies the line before queue.Done. A dirty key waits again.
func (m *Model) finished(k *key) {
	sync := m.syncs.values[k.name]
	if !k.failed && !k.again && m.isIdle(k) {
		m.note(k.name, "noop", "Worker %d has synced %s and had nothing to write.",
			k.worker.number, k.name)
	} else {
		m.note(k.name, "", "Worker %d has finished with %s.", k.worker.number, k.name)
	}
	k.worker.Worker = Worker{Since: m.at}
	m.show(k.worker.id, &k.worker.Worker)
	k.worker = nil
	m.end(sync, k.failed)
	m.process.Finished++
	m.show("process", &m.process)
	if !k.failed {
		k.Failures = 0
	}
	if k.Dirty {
		m.wait(k)
	}
	m.showKey(k)
}

// failed applies the line before queue.AddRateLimited. It may come before that of finished or
// after.
func (m *Model) failed(k *key, r record) {
	if retries, err := strconv.Atoi(r.values["retries"]); err == nil {
		k.Failures = retries
	}
	delay := min(minRetryDelay<<min(max(0, k.Failures), 13), maxRetryDelay) // 5ms·2^13 is more
	k.Failures++
	k.failed = true
	sync := m.syncs.values[k.name]
	if span := m.span(sync); span != nil {
		span.Failed = true
		m.show(sync, span)
	}
	m.note(k.name, "backoff", "The sync of %s has failed: %d in a row. It is tried again in %v.",
		k.name, k.Failures, delay)
	m.delayKey(k, delay, "failed: "+r.values["err"])
}

// delayKey does what queue.AddAfter does: if the key is delayed already, the earlier time counts.
func (m *Model) delayKey(k *key, delay time.Duration, because string) {
	if until := m.at + delay; k.until == 0 || until < k.until {
		m.end(k.delay, false)
		k.until = until
		k.delay = m.begin("delay", k.name, because, "worker", m.syncs.values[k.name])
		m.after(until, func() {
			if k.until == until {
				k.until = 0
				m.end(k.delay, false)
				m.add(k, "the delay is over", k.delay)
			}
		})
	}
	m.showKey(k)
}

// showKey shows the state of k, or forgets k if the queue does not know it any more.
func (m *Model) showKey(k *key) {
	before := k.State
	k.Until = 0
	switch {
	case k.worker != nil:
		k.State = "processing"
	case k.waiting:
		k.State = "waiting"
	case k.until != 0:
		k.State, k.Until = "delayed", k.until
	default:
		delete(m.keys, k.name)
		m.drop(k.id)
		return
	}
	if k.State != before {
		k.Since = m.at
	}
	m.show(k.id, &k.Key)
}
