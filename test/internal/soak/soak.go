// Package soak says what a controller takes up while it runs for hours, judges whether that grows,
// and draws it. TestSoak in test/faults measures it.
package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Measurement is what a process takes up at a moment.
type Measurement struct {
	Seconds float64 // since the run began
	// Settled is 0 or, if it was quiet, the number of the round that had ended.
	Settled     int     `json:",omitempty"`
	Resident    float64 // memory, in MiB
	Heap        float64 // what the last garbage collection found to be in use, in MiB
	Goroutines  float64
	Connections float64 // open sockets
	Queue       float64 // keys that wait for a worker
}

// figure is one number of a measurement. At the end of a run, it may be larger than before, by that
// share of it and by that much more.
type figure struct {
	name        string
	unit        string // with a space before it, or ""
	of          func(Measurement) float64
	share, more float64
}

// The figures. A process of Go takes and returns memory in pieces. A connection that is idle stays
// open for 90s: without TLS, client-go keeps up to two of them. Go has two goroutines for each.
var figures = []figure{
	{"resident memory", " MiB", func(m Measurement) float64 { return m.Resident }, 0.05, 4},
	{"live heap", " MiB", func(m Measurement) float64 { return m.Heap }, 0.1, 2},
	{"goroutines", "", func(m Measurement) float64 { return m.Goroutines }, 0, 4},
	{"open connections", "", func(m Measurement) float64 { return m.Connections }, 0, 2},
	{"queue depth", "", func(m Measurement) float64 { return m.Queue }, 0, 0},
}

// MinRounds is how many moments of quiet Growth needs: one for each quarter.
const MinRounds = 4

// Growth returns what has grown in a run, as sentences. It compares only moments of quiet: the last
// quarter of them with the second one. In the first quarter, caches and pools fill. Keys that are
// queued although it is quiet count as growth, too.
func Growth(measurements []Measurement) (grown []string, err error) {
	quiet := settled(measurements)
	if len(quiet) < MinRounds {
		return nil, fmt.Errorf("the run was too short to judge: it was quiet %d times, want %d",
			len(quiet), MinRounds)
	}
	for _, f := range figures {
		before, after := f.quarters(quiet)
		if limit := before*(1+f.share) + f.more; after > limit {
			grown = append(grown, fmt.Sprintf(
				"%s: %s in the last quarter, %s in the second, want at most %s",
				f.name, f.text(after), f.text(before), f.text(limit)))
		}
	}
	for _, m := range quiet {
		if m.Queue > 0 {
			grown = append(grown, fmt.Sprintf(
				"queue depth: %g after round %d, when it was quiet", m.Queue, m.Settled))
		}
	}
	return grown, nil
}

// settled returns the measurements of the moments of quiet.
func settled(measurements []Measurement) (quiet []Measurement) {
	for _, m := range measurements {
		if m.Settled > 0 {
			quiet = append(quiet, m)
		}
	}
	return quiet
}

// quarters returns the medians of the second and of the last quarter.
func (f figure) quarters(settled []Measurement) (second, last float64) {
	n := len(settled)
	return f.median(settled[n/4 : n/2]), f.median(settled[n-n/4:])
}

func (f figure) median(measurements []Measurement) float64 {
	values := make([]float64, len(measurements))
	for i, measurement := range measurements {
		values[i] = f.of(measurement)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// text returns a value with its unit.
func (f figure) text(value float64) string { return fmt.Sprint(math.Round(10*value)/10, f.unit) }

// most returns the largest value.
func (f figure) most(measurements []Measurement) float64 {
	return f.of(slices.MaxFunc(measurements, func(a, b Measurement) int {
		return int(f.of(a)*1000) - int(f.of(b)*1000)
	}))
}

// Results are what was measured and counted in a run.
type Results struct {
	Date         string
	Processors   int
	Go           string
	Seed         uint64
	Done         map[string]int
	Found        map[string]int // what was wrong
	Kills        []float64      // when the API server was killed, in seconds
	Measurements []Measurement
}

// minutes returns how long the run took.
func (r *Results) minutes() float64 { return r.Measurements[len(r.Measurements)-1].Seconds / 60 }

// file and plot are the names of the files with the results and the picture.
const (
	file = "soak.json"
	plot = "soak.svg"
)

// thin keeps one measurement a minute, those of the moments of quiet, and the largest ones.
func (r *Results) thin() {
	all, last := r.Measurements, -1.0
	r.Measurements = slices.DeleteFunc(slices.Clone(all), func(m Measurement) bool {
		minute := math.Floor(m.Seconds / 60)
		keep := minute > last || m.Settled > 0 || m == all[len(all)-1] ||
			slices.ContainsFunc(figures, func(f figure) bool { return f.of(m) == f.most(all) })
		last = minute
		return !keep
	})
}

var settledEntry = regexp.MustCompile(`"Settled":[^}]*},`)

// Write writes the results, without most of the measurements, and a picture of them to a folder.
func (r *Results) Write(folder string) error {
	if len(r.Measurements) == 0 {
		return errors.New("there are no measurements to write")
	}
	r.thin()
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = settledEntry.ReplaceAll(text, []byte("$0\n")) // a line for each round
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, file), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, plot), r.draw(), 0o644)
}

// read reads results from a folder. If there are none, it returns nil.
func read(folder string) (*Results, error) {
	text, err := os.ReadFile(filepath.Join(folder, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(r.Measurements) == 0 {
		return nil, fmt.Errorf("%s has no measurements; 'make soak' makes them", file)
	}
	return r, nil
}
