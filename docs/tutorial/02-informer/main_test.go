package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/docs/internal/lab"
)

// start runs the program and returns its output.
func start(l *lab.Lab) *strings.Builder {
	out := &strings.Builder{}
	l.Start(func(ctx context.Context) { _ = inform(ctx, l.Kube, out) })
	return out
}

func TestEveryChangeIsReportedAtOnce(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 1)
		out := start(l)
		l.ChangeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
		l.DeleteDeployment("web")
		l.CreateDeployment("web", 2)

		want := "default/web was added: 1 replicas\n" +
			"watching 1 Deployments with 1 replicas\n" +
			"default/web was changed: 3 replicas\n" +
			"default/web was deleted\n" +
			"default/web was added: 2 replicas\n"
		if out.String() != want {
			t.Errorf("printed %q, want %q", out, want)
		}
	})
}

func TestAnIdleHourCostsAFewWatches(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		start(l)
		time.Sleep(time.Hour)

		if got := l.Requests("watch", "deployments"); got < 6 || got > 13 {
			t.Errorf("watches in an hour: got %d, want one each 5 to 10 minutes", got)
		}
		if got := l.Requests("list", "*") + l.Requests("get", "*") + l.Requests("*", "*"); got != 0 {
			t.Errorf("other requests in an hour: got %d, want 0", got)
		}
	})
}

// brokenPipe is an output whose first write fails.
type brokenPipe struct {
	strings.Builder
	calls int
}

func (p *brokenPipe) Write(b []byte) (int, error) {
	p.calls++
	if p.calls == 1 {
		return 0, errors.New("broken pipe")
	}
	return p.Builder.Write(b)
}

func TestWhatAHandlerFailsToDoIsNotDoneLater(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateDeployment("web", 1)
		out := &brokenPipe{}
		l.Start(func(ctx context.Context) { _ = inform(ctx, l.Kube, out) })
		time.Sleep(time.Hour)

		if strings.Contains(out.String(), "was added") {
			t.Errorf("printed %q, want no second call of the handler", out.String())
		}
	})
}
