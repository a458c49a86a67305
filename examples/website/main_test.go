package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8smetrics "k8s.io/component-base/metrics"

	"example.com/sample-controller/internal/testing/fakes"
)

func TestOwnFlags(t *testing.T) {
	const want = "--resync must be positive, not 0s; --help lists all flags"
	if _, err := parseFlags([]string{"--resync=0"}, io.Discard); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
	var help strings.Builder
	_, err := parseFlags([]string{"--help"}, &help)
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-registry URL\n") ||
		!strings.Contains(help.String(), "-leader-elect\n") {
		t.Errorf("--help: got error %v, and\n%s", err, help.String())
	}
}

func TestFailedSyncsAreCountedByReason(t *testing.T) {
	registry := k8smetrics.NewKubeRegistry()
	registry.MustRegister(syncErrors.CounterVec)
	before := fakes.Gather(t, registry)
	bubble(t, func(_ *testing.T, h *harness) {
		h.Fail("create", "configmaps", 2, apierrors.NewServiceUnavailable("injected"))
		h.start()
		h.createWebsite(newWebsite("web"))
		h.wait(time.Minute)
		h.rollOut("web")
		h.registry.fail(errDown)
		h.changeWebsite("web", moveWebsite)
		h.stop()
	})
	counted := map[string]float64{}
	for name, value := range fakes.Gather(t, registry) {
		if delta := value - before[name]; delta > 0 {
			counted[name] = delta
		}
	}
	const refused = `website_controller_sync_errors_total{reason="ServiceUnavailable"}`
	const noAnswer = `website_controller_sync_errors_total{reason="NoAnswer"}`
	if len(counted) != 2 || counted[refused] != 2 || counted[noAnswer] < 2 {
		t.Errorf("counted: got %v, want %s 2, %s 2 or more", counted, refused, noAnswer)
	}
}
