package faults

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/sample-controller/internal/suite/audit"
)

// history is what happens in one namespace.
type history struct {
	space
	user  string // the controller's
	begin audit.Mark
	proxy *proxy
	users *users
	round int
}

// newHistory returns a history that has not begun.
func newHistory(t *testing.T, round int) *history {
	t.Helper()
	h := &history{space: newSpace(t), round: round}
	h.user = h.namespace
	h.begin = now(t)
	h.proxy = startProxy(t, h.random("network"))
	h.users = &users{
		h: h, random: h.random("users"), names: map[string]string{}, deleted: map[int]int{},
	}
	total.count("histories")
	return h
}

// random returns the source of the random choices of one party in this history.
func (h *history) random(party string) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprint(hash, h.t.Name(), h.round, party)
	return rand.New(rand.NewPCG(*seed, hash.Sum64()))
}

// disturb calls disturbance again and again while work runs. The pauses are random: 0.5 to 1.5
// times every.
func (h *history) disturb(
	every time.Duration, work func() error, disturbance func(*rand.Rand) error,
) {
	h.t.Helper()
	random := h.random("disturbances")
	worked := make(chan error, 1)
	go func() { worked <- work() }()
	for {
		pause := every/2 + time.Duration(random.Int64N(int64(every)))
		select {
		case err := <-worked:
			if err != nil {
				h.t.Fatal(err)
			}
			return
		case <-time.After(pause):
			if err := disturbance(random); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// lastWave changes all Foos while requests fail, but nothing is killed any more: a controller that
// starts again syncs every Foo, which would hide that it had given one up.
func (h *history) lastWave() {
	h.t.Helper()
	if err := h.users.scaleAll(); err != nil {
		h.t.Fatal(err)
	}
	time.Sleep(time.Second) // requests fail for this long
}

// settle waits until everything is as it must be, and checks that it stays so.
func (h *history) settle() {
	h.t.Helper()
	h.proxy.inject(false)
	begin := time.Now()
	var problems []problem
	err := waitUntil(func() (err error) {
		if problems, err = h.problems(h.users.expected()); err == nil && len(problems) > 0 {
			err = fmt.Errorf("%d problems, the first of them: %v", len(problems), problems[0])
		}
		return err
	})
	for _, problem := range problems {
		total.count(problem.kind)
		h.t.Error(problem)
	}
	if err != nil {
		if err := controlPlane.Check(); err != nil {
			h.t.Fatal(err) // the control plane failed, not the controller
		}
		h.t.Fatalf("still wrong %v after the last fault: %v\nthe control plane works: look at the "+
			"controller; if this machine is slow or busy, try again with -patience %v",
			*patience, err, 4**patience)
	}
	h.t.Logf("settled %v after the last fault", time.Since(begin).Round(time.Millisecond))
	total.add("Foos checked", len(h.users.names))

	h.awaitEvents()
	last := now(h.t)
	time.Sleep(*quiet) // nothing may be written in this time
	if late := h.requests(last, h.user, isWrite); len(late) > 0 {
		total.add(lateWrites, len(late))
		h.t.Errorf("the controller made %d writes in %v of quiet, want none: %v", len(late), *quiet, late)
	}
}

// awaitEvents waits until no Event is written for a moment: Events come after all other writes.
func (h *history) awaitEvents() {
	h.t.Helper()
	err := waitUntil(func() error {
		begin := now(h.t)
		time.Sleep(2 * time.Second) // the moment
		events := h.requests(begin, h.user, func(r audit.Request) bool {
			return r.ObjectRef.Resource == "events"
		})
		if len(events) > 0 {
			return fmt.Errorf("%d Events were written in the last two seconds", len(events))
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// checkNeedless fails the test if the controller created or deleted more Deployments than the users
// gave reason for.
func (h *history) checkNeedless() {
	h.t.Helper()
	created := h.requests(h.begin, h.user, isCreation)
	deleted := h.requests(h.begin, h.user, isDeletion)
	total.add("Deployments created by the controller", len(created))
	total.add("Deployments deleted by the controller", len(deleted))
	if n := len(created) - h.users.reasonsToCreate; n > 0 {
		total.add(needless, n)
		h.t.Errorf("the controller created %d Deployments, but had reason for %d",
			len(created), h.users.reasonsToCreate)
	}
	if n := len(deleted) - h.users.reasonsToDelete; n > 0 {
		total.add(needless, n)
		h.t.Errorf("the controller deleted %d Deployments, but had reason for %d",
			len(deleted), h.users.reasonsToDelete)
	}
}
