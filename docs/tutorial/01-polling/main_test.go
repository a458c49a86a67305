package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/docs/internal/lab"
)

// start runs the program and returns its output.
func start(l *lab.Lab) *strings.Builder {
	out := &strings.Builder{}
	l.Start(func(ctx context.Context) { _ = poll(ctx, l.Kube, out) })
	wait(pollInterval / 2) // so the test acts between two polls
	return out
}

// wait lets time pass, which is virtual.
func wait(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

func TestChangesAreReportedAtTheNextPoll(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		out := start(l)
		l.CreateDeployment("web", 1)
		if out.String() != "" {
			t.Errorf("before the next poll: printed %q, want nothing", out)
		}
		wait(pollInterval)
		l.ChangeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
		wait(pollInterval)
		l.DeleteDeployment("web")
		wait(pollInterval)

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
		wait(time.Minute)

		if out.String() != "" {
			t.Errorf("printed %q, want nothing", out)
		}
	})
}

func TestAnIdleHourCostsManyRequests(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		wait(time.Hour)

		if got := l.Requests("list", "deployments"); got < 720 {
			t.Errorf("lists in an hour: got %d, want 720 or more", got)
		}
	})
}
