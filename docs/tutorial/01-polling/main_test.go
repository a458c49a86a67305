package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/docs/internal/lab"
)

// output is what the program prints; it may be read while the program runs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs the program and returns its output.
func start(l *lab.Lab) *output {
	out := &output{}
	l.Start(func(ctx context.Context) { _ = poll(ctx, l.Kube, out) })
	time.Sleep(pollInterval / 2) // so the test acts between two polls
	return out
}

func TestChangesAreReportedAtTheNextPoll(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		out := start(l)
		l.CreateDeployment("web", 1)
		if out.String() != "" {
			t.Errorf("before the next poll: printed %q, want nothing", out)
		}
		time.Sleep(pollInterval)
		l.ChangeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
		time.Sleep(pollInterval)
		l.DeleteDeployment("web")
		time.Sleep(pollInterval)

		want := "default/web was added: 1 replicas\n" +
			"default/web was changed: 3 replicas\n" +
			"default/web was deleted\n"
		if out.String() != want {
			t.Errorf("printed %q, want %q", out, want)
		}
	})
}

func TestWhatHappensBetweenTwoPollsIsNotNoticed(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		out := start(l)
		l.CreateDeployment("web", 1)
		l.DeleteDeployment("web")
		time.Sleep(time.Minute)

		if out.String() != "" {
			t.Errorf("printed %q, want nothing", out)
		}
	})
}

func TestAnIdleHourCostsManyRequests(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		time.Sleep(time.Hour)

		if got := l.Requests("list", "deployments"); got < 720 {
			t.Errorf("lists in an hour: got %d, want 720 or more", got)
		}
	})
}
