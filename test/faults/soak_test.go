package faults

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
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
		s.quiet = append(s.quiet, must.Get(measure(s.program, s.address))(t))
		t.Logf("round %d ended after %v", round, time.Since(begin).Round(time.Second))
	}
}

// newSoaking starts the controllers, and waits until they work.
func newSoaking(t *testing.T) *soaking {
	s := &soaking{t: t, steady: newHistory(t, 0), upgraded: newHistory(t, 1)}
	s.server, s.upgrade = s.steady.random("API server"), s.upgraded.random("upgrades")

	h := s.steady
	s.address = must.Get(process.FreeAddress())(t)
	s.program = h.startOnce(h.user, "--metrics-bind-address="+s.address, "--profiling")
	for range 2 {
		s.replicas = append(s.replicas, s.upgraded.supervise(electionFlags...))
	}
	for _, h := range s.histories() {
		h.users.newNames = true
		h.repeat(h.users.create("first", "first"))
		h.repeat(h.right) // the controller has filled its caches, so that nothing must end it
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
	must.Do(s.t, controlPlane.Hurry())
	select {
	case <-s.program.Exited:
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
	h.repeat(func() error {
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

// measurement is what a controller takes up when it is quiet: a value for each of figures.
type measurement [5]float64

// figures are the numbers of a measurement. At the end of a run, each may be larger than before, by
// that share of it and by that much more. A process of Go takes and returns memory in pieces. A
// connection that is idle stays open for 90s: without TLS, client-go keeps up to two of them. Go
// has two goroutines for each.
var figures = [len(measurement{})]struct {
	name        string
	share, more float64
}{
	{"MiB of resident memory", 0.05, 4},
	{"MiB of live heap", 0.1, 2},
	{"goroutines", 0, 4},
	{"open connections", 0, 2},
	{"keys in the queue", 0, 0},
}

// measure returns what the process takes up that serves its metrics at address. It collects garbage
// first: otherwise, the live heap is that of the last collection, which found what was in use then.
func measure(p *process.Process, address string) (m measurement, err error) {
	if _, err := process.Get("http://" + address + "/debug/pprof/heap?gc=1"); err != nil {
		return m, fmt.Errorf("collecting garbage: %w", err)
	}
	served, err := process.ReadMetrics(address)
	if err != nil {
		return m, err
	}
	connections, err := sockets(p.PID())
	const mib = 1 << 20
	return measurement{
		served["process_resident_memory_bytes"] / mib, served["go_gc_heap_live_bytes"] / mib,
		served["go_goroutines"], float64(connections), served["workqueue_depth"],
	}, err
}

// sockets returns how many sockets a process has open.
func sockets(pid int) (n int, err error) {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(folder)
	if err != nil {
		return 0, fmt.Errorf("counting connections, which needs Linux: %w", err)
	}
	for _, file := range files {
		target, _ := os.Readlink(filepath.Join(folder, file.Name())) // "" if it was closed meanwhile
		if strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n, nil
}

// minRounds is how many measurements growth needs: one for each quarter.
const minRounds = 4

// growth returns what has grown, and a table of all figures. It compares the last quarter of the
// measurements with the second one: in the first quarter, caches and pools fill. Keys that are
// queued although it is quiet count as growth, too.
func growth(quiet []measurement) (grown []string, table string) {
	n := len(quiet)
	if n < minRounds {
		return []string{fmt.Sprintf("too short to judge: %d rounds, want %d", n, minRounds)}, ""
	}
	table = "| when it was quiet | second quarter | last quarter |\n|---|---|---|\n"
	for i, f := range figures {
		before, after := median(quiet[n/4:n/2], i), median(quiet[n-n/4:], i)
		table += fmt.Sprintf("| %s | %.1f | %.1f |\n", f.name, before, after)
		if limit := before*(1+f.share) + f.more; after > limit {
			grown = append(grown, fmt.Sprintf("%s: %.1f in the last quarter, %.1f in the second, "+
				"want at most %.1f", f.name, after, before, limit))
		}
	}
	for round, m := range quiet {
		if queued := m[len(m)-1]; queued > 0 {
			grown = append(grown, fmt.Sprintf("keys in the queue: %g after round %d, when it was quiet",
				queued, round+1))
		}
	}
	return grown, table
}

func median(measurements []measurement, figure int) float64 {
	var values []float64
	for _, m := range measurements {
		values = append(values, m[figure])
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
