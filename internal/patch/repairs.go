package patch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// A repair that does not last is repeated after 5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms,
	// 1.28s, 2.56s, 5.12s, 10.24s, 20.48s, 40.96s, 1m, 1m, ...: 23 times in the first ten minutes. A
	// repair that lasts for maxRepairDelay ends that.
	minRepairDelay = 5 * time.Millisecond
	maxRepairDelay = time.Minute
	// contestedDelay is the delay from which on somebody should know.
	contestedDelay = time.Second
	// notKeptDelay is how long a repair waits if the API server has not kept what was sent before. No
	// event tells that a policy is gone.
	notKeptDelay = 10 * time.Minute
)

// Repairs remembers the repairs of objects that a controller owns. Without it, a controller repairs
// without end what admission or another program sets back each time. The keys are those of the
// owners.
type Repairs struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]*repairs
}

// repairs is what is known about the object of one owner.
type repairs struct {
	generation int64 // of the owner: if it asks for something else, all begins anew
	tries      int   // repairs since the last one that has lasted
	at         time.Time
	undone     time.Time // when the object was seen to differ again; zero until then
	seen       string    // what the object had in place of what it should have
	notKept    string    // what the last answer had in place of what was sent
	report     string    // what others were told of a contest
	isNew      bool      // the report is of the time since the last repair
}

// Outcome is what has come of the last repairs of an object.
type Outcome int

const (
	// Repaired says that nothing is known against another repair, or that it will be tried soon.
	Repaired Outcome = iota
	// NotKept says that the API server has stored something else than what was sent last: admission
	// has changed it.
	NotKept
	// Contested says that another writer has undone several repairs, each within a minute.
	Contested
)

// NewRepairs returns an empty memory.
func NewRepairs() *Repairs { return &Repairs{byKey: map[cache.ObjectName]*repairs{}} }

// Delay returns how long the repair of observed has to wait, and why. If it is 0, the controller may
// repair at once, and then calls Sent.
func (r *Repairs) Delay(
	key cache.ObjectName, owner metav1.Object, observed, desired Object,
) (time.Duration, Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.of(key, owner)
	known.seen = difference(observed, desired)
	if known.notKept != "" && known.notKept == known.seen {
		return max(0, time.Until(known.at.Add(notKeptDelay))), NotKept
	}
	if known.undone.IsZero() {
		if known.undone = time.Now(); known.undone.Sub(known.at) >= maxRepairDelay {
			known.tries = 0 // the last repair has lasted
		}
	}
	outcome := Repaired
	if known.isContested() {
		outcome = Contested
	}
	return max(0, time.Until(known.at.Add(known.delay()))), outcome
}

// Created notes a creation and its answer. desired is what the answer should be.
func (r *Repairs) Created(key cache.ObjectName, owner metav1.Object, answer, desired Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := difference(answer, desired); left != "" {
		known := r.of(key, owner)
		known.at, known.notKept = time.Now(), left
	}
}

// Sent notes a repair that the API server has accepted, and its answer. desired is what the answer
// should be. Sent reports whether the repair has changed anything of what differed. If not, there may
// be no event: the controller has to look at the owner again.
func (r *Repairs) Sent(
	key cache.ObjectName, owner metav1.Object, answer, desired Object,
) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.of(key, owner)
	known.at, known.undone, known.isNew = time.Now(), time.Time{}, false
	known.notKept = difference(answer, desired)
	if changed = known.notKept != known.seen; changed {
		known.tries++
	}
	return changed
}

// Held notes that the object is as it should be. If others were told of a contest, it returns for how
// long the object has to stay so until that is over, and what they were told.
func (r *Repairs) Held(key cache.ObjectName, owner metav1.Object) (time.Duration, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byKey[key]
	if known == nil {
		return 0, ""
	}
	known = r.of(key, owner)
	known.notKept, known.undone = "", time.Time{}
	rest := time.Until(known.at.Add(maxRepairDelay))
	if rest <= 0 {
		delete(r.byKey, key)
		return 0, ""
	}
	if known.report == "" {
		return 0, ""
	}
	return rest, known.report
}

// Report returns what find returns: what to tell others of a contest. Until the next repair of the
// object, it returns the same again. Delay comes first.
func (r *Repairs) Report(key cache.ObjectName, find func() (string, error)) (string, error) {
	r.mu.Lock()
	known := r.byKey[key]
	report, isNew := known.report, known.isNew
	r.mu.Unlock()
	if isNew {
		return report, nil
	}
	report, err := find() // without the lock: it may take long
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known.report, known.isNew = report, true
	return report, nil
}

// Clear forgets an owner.
func (r *Repairs) Clear(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}

// of returns what is known about the object of an owner. r.mu must be held.
func (r *Repairs) of(key cache.ObjectName, owner metav1.Object) *repairs {
	known := r.byKey[key]
	if known == nil || known.generation != owner.GetGeneration() {
		known = &repairs{generation: owner.GetGeneration()}
		r.byKey[key] = known
	}
	return known
}

func (r *repairs) delay() time.Duration {
	delay := time.Duration(0)
	for i := range r.tries {
		if delay = minRepairDelay << i; delay >= maxRepairDelay {
			return maxRepairDelay
		}
	}
	return delay
}

func (r *repairs) isContested() bool { return r.delay() >= contestedDelay }

// difference returns what observed has in place of what desired has, or "".
func difference(observed, desired Object) string {
	if equality.Semantic.DeepEqual(observed, desired) {
		return ""
	}
	observed = observed.DeepCopyObject().(Object)
	observed.SetUID("")
	observed.SetResourceVersion("") // which changes with the status, too
	_, patch, err := Between(desired, observed)
	if err != nil {
		return err.Error()
	}
	return string(patch)
}
