package patch

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Repairs remembers the repairs of objects that a controller owns, and what the API server has
// refused. Without it, a controller repairs without end what admission or another program sets back
// each time. The keys are those of the owners.
type Repairs struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]*repairs
}

// repairs is what is known about the object of one owner.
type repairs struct {
	uid        types.UID // of the owner
	generation int64     // of the owner: if it asks for something else, all begins anew
	tries      int       // repairs since the last one that has lasted
	at         time.Time
	unsure     bool      // the last write ended with an error that does not say whether it was done
	undone     time.Time // when the object was seen to differ again; zero until then
	seen       string    // what the object had in place of what it should have
	notKept    string    // what the last answer had in place of what was sent
	contest    Judgment  // the last one whose outcome was Contested
	isNew      bool      // the contest is of the time since the last repair
	refused    error     // the last write that the API server has refused
	refusedAt  time.Time
	refusedUID types.UID // of the object; empty if it was a Create
}

// Outcome says what a controller does about an object.
type Outcome int

const (
	// Kept: nothing. The object is as it should be.
	Kept Outcome = iota
	// Repair: it repairs the object now, and then calls Sent.
	Repair
	// Delayed: it repairs the object soon. Nobody has to know.
	Delayed
	// NotKept: it tells people that the API server has stored something else than what was sent
	// last, mostly because admission has changed it.
	NotKept
	// Contested: it tells people that another writer has undone several repairs, each within a
	// minute. It is over when the object has been as it should be for a minute.
	Contested
)

// Judgment is what Repairs say about an object.
type Judgment struct {
	Outcome Outcome
	After   time.Duration // when to look at the object again; 0 if an event will tell
	Fields  string        // the names of the fields that differ, if NotKept or Contested
	Writers string        // who has written these fields, if Contested
}

// NewRepairs returns an empty memory.
func NewRepairs() *Repairs { return &Repairs{byKey: map[cache.ObjectName]*repairs{}} }

// Judge says what to do about the observed object, which should be as desired. If another writer sets
// back the repairs, Judge calls live once after each repair, to know who that is. live reads the
// object from the API server, with the managedFields that informers drop.
func (r *Repairs) Judge(
	key cache.ObjectName, owner metav1.Object, observed, desired Object, live func() (Object, error),
) (Judgment, error) {
	if equality.Semantic.DeepEqual(observed, desired) {
		return r.kept(key, owner), nil
	}
	r.mu.Lock()
	known := r.of(key, owner)
	judgment := known.judge(observed, desired)
	writers, isNew := known.contest.Writers, known.isNew
	r.mu.Unlock()
	if judgment.Outcome != NotKept && judgment.Outcome != Contested {
		return judgment, nil
	}
	fields := Fields(observed, desired)
	judgment.Fields = Names(fields)
	if judgment.Outcome == NotKept {
		return judgment, nil
	}
	if !isNew { // without the lock: the request may take long
		writers = somebody
		if object, err := live(); err == nil {
			writers = Writers(object, fields)
		} else if !apierrors.IsNotFound(err) {
			return Judgment{}, fmt.Errorf("asking who sets back the repairs: %w", err)
		}
	}
	judgment.Writers = writers
	r.mu.Lock()
	defer r.mu.Unlock()
	known.contest, known.isNew = judgment, true
	return judgment, nil
}

// judge judges an object that differs, but says nothing about the fields.
func (r *repairs) judge(observed, desired Object) Judgment {
	r.seen = difference(observed, desired)
	outcome, after := Delayed, time.Duration(0)
	if r.notKept != "" && r.notKept == r.seen {
		outcome, after = NotKept, time.Until(r.at.Add(notKeptDelay))
	} else {
		if r.undone.IsZero() {
			if r.undone = time.Now(); r.undone.Sub(r.at) >= maxRepairDelay {
				r.tries, r.contest = 0, Judgment{} // the last repair has lasted
			}
		}
		if r.delay() >= contestedDelay {
			outcome = Contested
		}
		after = time.Until(r.at.Add(r.delay()))
	}
	if after <= 0 {
		return Judgment{Outcome: Repair}
	}
	return Judgment{Outcome: outcome, After: after}
}

// kept notes that the object is as it should be.
func (r *Repairs) kept(key cache.ObjectName, owner metav1.Object) Judgment {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[key] == nil {
		return Judgment{}
	}
	known := r.of(key, owner)
	if known.unsure { // it was a repair
		known.tries, known.at, known.unsure, known.isNew = known.tries+1, time.Now(), false, false
	}
	known.notKept, known.undone = "", time.Time{}
	judgment := known.contest
	judgment.After = time.Until(known.at.Add(maxRepairDelay))
	if judgment.After <= 0 {
		delete(r.byKey, key)
	}
	if judgment.After <= 0 || judgment.Outcome != Contested {
		return Judgment{}
	}
	return judgment
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

// Try calls write, which creates the object of owner (then uid is empty) or changes the object with that
// UID. If the API server has refused this write within the last retryAfter, Try only returns that error:
// a refusal may have new words each time, which change the status, and so bring the key back at once.
func Try[T Object](
	r *Repairs, owner metav1.Object, uid types.UID, retryAfter time.Duration,
	write func() (T, error),
) (written T, err error) {
	r.mu.Lock()
	known := r.of(cache.MetaObjectToName(owner), owner)
	last := *known
	r.mu.Unlock()
	if last.refused != nil && last.refusedUID == uid && time.Since(last.refusedAt) < retryAfter {
		return written, last.refused
	}
	written, err = write()
	r.mu.Lock()
	defer r.mu.Unlock()
	if isKnown := known.notKept != "" && known.notKept == known.seen; IsRefusal(err) {
		known.refused, known.refusedAt, known.refusedUID = err, time.Now(), uid
	} else if known.unsure = err != nil && !apierrors.IsConflict(err); known.unsure && isKnown {
		known.at = time.Now() // the next try comes after notKeptDelay: nobody waits for it
	}
	return written, err
}

// IsRefusal reports whether the API server would refuse the same write again: the object is invalid,
// or admission, a quota or RBAC is against it. A namespace that is terminating is no refusal.
func IsRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	// A webhook may answer with any code, such as 404. The API server puts these words before its own.
	return strings.HasPrefix(status.ErrStatus.Message, "admission webhook ") ||
		apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) // a policy may answer with that, too
}

// IsGone reports whether the object of a write is not there. A webhook's 404 does not say that.
func IsGone(err error) bool { return apierrors.IsNotFound(err) && !IsRefusal(err) }

// Clear forgets an owner.
func (r *Repairs) Clear(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}

// of returns what is known about the object of an owner. r.mu must be held.
func (r *Repairs) of(key cache.ObjectName, owner metav1.Object) *repairs {
	known := r.byKey[key]
	if known == nil || known.uid != owner.GetUID() || known.generation != owner.GetGeneration() {
		known = &repairs{uid: owner.GetUID(), generation: owner.GetGeneration()}
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
