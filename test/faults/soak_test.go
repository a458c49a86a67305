package faults

import (
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/process"
)

var soakFor = flag.Duration("soak", 0,
	"how long TestSoak runs, with the rest of its last round; 0 skips it")

// soaking is a soak. It has a history with one controller, which is measured and must not end, and
// one with two replicas, which are upgraded again and again.
type soaking struct {
	t                *testing.T
	steady, upgraded *history
	program          *process.Process // the one that is measured, and where it serves its metrics
	address          string
	quiet            []measurement
	replicas         []*supervisor
	replaced         int        // replicas so far
	server, upgrade  *rand.Rand // the choices of who kills the API server, and of who upgrades
}

// TestSoak runs for as long as -soak says, in rounds. In a round, users work, requests fail, the
// API server is killed, and replicas are upgraded. Then the faults end, and everything must settle.
// Memory, goroutines, connections and the queue must not grow from round to round.
func TestSoak(t *testing.T) {
	if *soakFor == 0 {
		t.Skip("it takes an hour: 'make soak'; in a few minutes, " +
			"'go -C test/faults test -v -run TestSoak -soak 2m' tries it")
	}
	s := newSoaking(t)
	defer s.report()
	begin := time.Now()
	working := min(max(*soakFor/15, 10*time.Second), 4*time.Minute)
	for round := 1; !t.Failed() && (round <= minRounds || time.Since(begin) < *soakFor); round++ {
		s.disturb(working)
		s.settle()
		m := must.Get(measure(s.program, s.address))(t)
		s.quiet = append(s.quiet, m)
		t.Logf("round %d ended after %v", round, time.Since(begin).Round(time.Second))
	}
}

// newSoaking starts the controllers, and waits until they work.
func newSoaking(t *testing.T) *soaking {
	s := &soaking{t: t, steady: newHistory(t, 0), upgraded: newHistory(t, 1)}
	s.server, s.upgrade = s.steady.random("API server"), s.upgraded.random("upgrades")

	h := s.steady
	s.address = freeport.Address(t)
	s.program = must.Get(h.start(h.user, "--metrics-bind-address="+s.address))(t)
	t.Cleanup(func() {
		s.program.Kill()
		if t.Failed() {
			t.Logf("output of the controller that is measured:\n%s", s.program.Output())
		}
	})
	for range 2 {
		s.replicas = append(s.replicas, s.upgraded.supervise(electionFlags...))
	}
	for _, h := range s.histories() {
		h.users.newNames = true
		h.must(h.users.create("first", "first"))
		h.must(h.right) // the controller has filled its caches, so that nothing must end it
		h.nextRound()
	}
	return s
}

func (s *soaking) histories() []*history { return []*history{s.steady, s.upgraded} }

// disturb lets users work for that long, while everything fails.
func (s *soaking) disturb(working time.Duration) {
	s.t.Helper()
	ended := make(chan struct{})
	time.AfterFunc(working, func() { close(ended) })
	var wg sync.WaitGroup
	var errs [4]error
	for i, h := range s.histories() {
		h.proxy.inject(true)
		wg.Go(func() {
			errs[i] = again(ended, 100*time.Millisecond, h.users.random, func() error {
				return h.users.act(h.users.random.IntN(*foos))
			})
		})
	}
	wg.Go(func() { errs[2] = again(ended, working/2, s.server, s.killAPIServer) })
	wg.Go(func() { errs[3] = again(ended, working/8, s.upgrade, s.upgradeReplica) })
	wg.Wait()
	must.Do(s.t, errors.Join(errs[:]...))
}

func (s *soaking) killAPIServer() error {
	return restart("kube-apiserver", time.Duration(s.server.IntN(3000))*time.Millisecond)
}

// upgradeReplica puts a new process in the place of one replica, as a rolling update does it, or as
// a node does that fails.
func (s *soaking) upgradeReplica() error {
	s.replaced++
	replica := s.replicas[s.replaced%len(s.replicas)]
	if s.upgrade.IntN(4) == 0 {
		replica.kill()
		return nil
	}
	return replica.replace()
}

// settle ends the faults, waits until everything is as it must be, and checks what was done.
func (s *soaking) settle() {
	s.t.Helper()
	for _, h := range s.histories() {
		h.lastWave()
	}
	select {
	case <-s.program.Exited:
		total.count(unexplained)
		s.t.Fatalf("the controller that is measured ended: %s", s.program.LastLine())
	default:
	}
	for _, h := range s.histories() {
		h.settle()
		h.checkNeedless()
		h.nextRound()
	}
	for _, replica := range s.replicas {
		s.upgraded.checkExits(replica, noAPIServer, noFoos, lostLease)
	}
}

// nextRound begins another round: checkNeedless looks only at what is done from now on. A Foo that
// waits for a name is a reason that is left over.
func (h *history) nextRound() {
	h.t.Helper()
	h.must(func() error {
		is, err := h.look()
		if err == nil {
			h.users.reasonsToCreate, h.users.reasonsToDelete = is.pending()
		}
		return err
	})
	h.begin = now(h.t)
}

func (s *soaking) report() {
	grown, table := growth(s.quiet)
	s.t.Log(table)
	for _, what := range grown {
		s.t.Errorf("has grown: %s", what)
	}
}
