package faults

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/suite/process"
	"example.com/sample-controller/test/internal/metrics"
	"example.com/sample-controller/test/internal/soak"
)

// measureEvery is the time between two measurements.
const measureEvery = 5 * time.Second

// meter notes what a controller takes up.
type meter struct {
	t       *testing.T
	process *process.Process
	address string // of its metrics
	begin   time.Time

	mu       sync.Mutex
	measured []soak.Measurement
}

// start measures again and again until stop is called, or until the controller ends, which fails
// the test.
func (s *meter) start() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; ctx.Err() == nil; sleep(ctx, measureEvery) {
			if err := s.measure(0); err != nil {
				s.t.Error(err)
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// sleep sleeps for that long, but no longer than ctx.
func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

func (s *meter) seconds() float64 { return rounded(time.Since(s.begin).Seconds()) }

// measure notes a measurement. settled is the number of the round after which it is quiet, or 0.
func (s *meter) measure(settled int) error {
	s.mu.Lock() // so that there is one connection for this, and not two
	defer s.mu.Unlock()
	served, err := metrics.Read(s.address)
	if err == nil {
		var connections int
		connections, err = sockets(s.process.PID())
		const mib = 1 << 20
		s.measured = append(s.measured, soak.Measurement{
			Seconds: s.seconds(), Settled: settled,
			Resident:    rounded(served["process_resident_memory_bytes"] / mib),
			Heap:        rounded(served["go_gc_heap_live_bytes"] / mib),
			Goroutines:  served["go_goroutines"],
			Connections: float64(connections),
			Queue:       served["workqueue_depth"],
		})
	}
	select {
	case <-s.process.Exited:
		total.count(unexplained)
		return fmt.Errorf("the controller that is measured ended: %s", s.process.LastLine())
	default:
		return err
	}
}

func rounded(value float64) float64 { return math.Round(10*value) / 10 }

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
