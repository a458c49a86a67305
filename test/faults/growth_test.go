package faults

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/suite/process"
	"example.com/sample-controller/test/internal/metrics"
)

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

// measure returns what the process takes up that serves its metrics at address.
func measure(p *process.Process, address string) (m measurement, err error) {
	served, err := metrics.Read(address)
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

func TestGrowth(t *testing.T) {
	for name, test := range map[string]struct {
		grow func(m *measurement, round float64) // added to values that go up and down
		want string                              // the beginning of the only sentence
	}{
		"noise":      {func(*measurement, float64) {}, ""},
		"warming up": {func(m *measurement, round float64) { m[0] += 15 * min(round, 3) }, ""},
		"five MiB each round": {
			func(m *measurement, round float64) { m[0] += 5 * round }, "MiB of resident memory: "},
		"a goroutine each round": {
			func(m *measurement, round float64) { m[2] += round }, "goroutines: "},
		"a connection each round": {
			func(m *measurement, round float64) { m[3] += round }, "open connections: "},
		"work that never ends": {
			func(m *measurement, round float64) { m[4] = math.Floor(round / 12) },
			"keys in the queue: 1 after round 12"},
		"too few rounds": {nil, "too short"},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		var quiet []measurement
		for round := 1.0; round <= 12 && test.grow != nil; round++ {
			m := measurement{40 + 2*random.Float64(), 9 + random.Float64(), 54 + float64(random.IntN(3)), 5}
			test.grow(&m, round)
			quiet = append(quiet, m)
		}
		got, _ := growth(quiet)
		all := strings.Join(got, ", ")
		if !strings.HasPrefix(all, test.want) || test.want == "" && all != "" {
			t.Errorf("%s: got %q, want one that begins with %q", name, got, test.want)
		}
	}
}
