package soak

import (
	"bytes"
	"encoding/xml"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the figures of the last run into the page")

// run returns the measurements of an hour: one each 5s, and a moment of quiet each 5 minutes. What
// grows is added to values that go up and down.
func run(grow func(s *Measurement, minutes float64)) (measurements []Measurement) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n float64) float64 { return random.Float64() * n }
	for i := range 12 * 60 {
		s := Measurement{
			Seconds: float64(5 * i), Resident: 60 + noise(6), Heap: 9 + noise(2),
			Goroutines: 90 + noise(40), Connections: 6 + noise(20), Queue: noise(10),
		}
		if i%60 == 59 {
			s.Settled, s.Queue = i/60+1, 0
			s.Goroutines, s.Connections = 88+2*float64(random.IntN(3)), 5+float64(random.IntN(3))
		}
		minutes := s.Seconds / 60
		if minutes < 15 { // caches and pools fill
			s.Resident, s.Heap = s.Resident-15+minutes, s.Heap-3+minutes/5
		}
		grow(&s, minutes)
		measurements = append(measurements, s)
	}
	return measurements
}

func TestGrowth(t *testing.T) {
	for name, test := range map[string]struct {
		grow func(s *Measurement, minutes float64)
		want []string // the beginnings of the sentences
	}{
		"noise":      {func(*Measurement, float64) {}, nil},
		"warming up": {func(s *Measurement, minutes float64) { s.Resident += min(minutes, 15) }, nil},
		"a goroutine for each API server, of which two minutes see one": {
			func(s *Measurement, minutes float64) { s.Goroutines += float64(int(minutes / 2)) },
			[]string{"goroutines: "}},
		"a MiB each minute": {func(s *Measurement, minutes float64) {
			s.Resident += minutes
			s.Heap += minutes
		}, []string{"resident memory: ", "live heap: "}},
		"a connection each round": {func(s *Measurement, minutes float64) {
			s.Connections += float64(int(minutes / 5))
		}, []string{"open connections: "}},
		"work that never ends": {func(s *Measurement, minutes float64) {
			if minutes > 57 {
				s.Queue++
			}
		}, []string{"queue depth: 1 after round 12"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Growth(run(test.grow))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("got %q, want a sentence that begins with %q", got[i], test.want[i])
				}
			}
		})
	}
}

func TestShortRunIsNotJudged(t *testing.T) {
	measurements := run(func(*Measurement, float64) {})[:3*60]
	if grown, err := Growth(measurements); err == nil {
		t.Errorf("three rounds are judged: %q, want an error", grown)
	}
}

func TestResultsAreWrittenAndShown(t *testing.T) {
	written := &Results{
		Date: "2026-01-02", Processors: 8, Go: "go1.26",
		Measurements: run(func(*Measurement, float64) {}),
		Done:         map[string]int{"Foos created": 1234}, Found: map[string]int{"Foos lost": 0},
		Kills: []float64{90, 600},
	}
	folder := t.TempDir()
	if err := written.Write(folder); err != nil {
		t.Fatal(err)
	}
	r, err := read(folder)
	if err != nil || !reflect.DeepEqual(r, written) {
		t.Fatalf("what is read is not what was written: %v", err)
	}
	got, err := r.fill("a\n\n<!-- soak: how -->\nold\n<!-- end of soak -->\n\nb\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a\n\n<!-- soak: how -->\n", "Run on 2026-01-02 for 60 minutes, on 8 processors, with go1.26:",
		"| queue depth | 0 | 0 | ", "| Foos created | 1,234 |\n| Foos lost | 0 |",
		"/results/soak.svg)", "<!-- end of soak -->\n\nb\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if _, err := r.fill("a page without the marks"); err == nil {
		t.Error("a page without the marks is no error")
	}
	picture := struct {
		Panels []struct{} `xml:"g"`
	}{}
	if err := xml.Unmarshal(r.draw(), &picture); err != nil || len(picture.Panels) != len(panels) {
		t.Errorf("the picture has %d panels, want %d (%v)", len(picture.Panels), len(panels), err)
	}
}

func TestPageShowsTheRun(t *testing.T) {
	r, err := read(results)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		t.Skipf("there is no %s in %s; 'make soak' makes it in an hour", file, results)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := r.fill(string(text))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.Write(results); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("the figures in %s are not those of %s; %s", page, file, howToUpdate)
	}
	drawn, err := os.ReadFile(filepath.Join(results, plot))
	if err != nil || !bytes.Equal(drawn, r.draw()) {
		t.Errorf("%s is not what the results give (%v); %s", plot, err, howToUpdate)
	}
	if grown, err := Growth(r.Measurements); err != nil || len(grown) > 0 {
		t.Errorf("in this run, something grew: %q (%v)", grown, err)
	}
}

const howToUpdate = "'go -C test test ./internal/soak -update' updates it"
