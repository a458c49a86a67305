package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	website "example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/examples/website/sites"
	"example.com/sample-controller/internal/suite/audit"
)

// eventsPerWebsite is one for each child that is created.
const eventsPerWebsite = 3

// websitePlan returns the runs to do, without figures. The contenders take turns. The first run
// warms up.
func (o options) websitePlan() []Result {
	plan := []Result{{Contender: this, Mode: modeWorking, Foos: min(o.websites, warmUp)}}
	order := slices.Clone(websiteContenders)
	for repetition := range o.repetitions {
		for _, c := range order {
			plan = append(plan, Result{
				Contender: c.id, Mode: modeWorking, Foos: o.websites, Repetition: repetition + 1,
			})
		}
		slices.Reverse(order) // so that none always follows the same one
	}
	return plan
}

// installWebsites installs their CustomResourceDefinition, and waits until they are served.
func (b *bench) installWebsites(ctx context.Context) error {
	output, err := exec.Command(filepath.Join(root, ".local/bin/kubectl"),
		"--kubeconfig", b.cluster.Kubeconfig(), "--cache-dir", filepath.Join(b.cluster.Dir, "cache"),
		"apply", "--server-side", "-f", filepath.Join(root, "examples/website/artifacts/crd.yaml"),
	).CombinedOutput()
	if err != nil {
		return fmt.Errorf("installing the CustomResourceDefinition of Websites: %w\n%s", err, output)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ; ; time.Sleep(100 * time.Millisecond) {
		_, err := b.websites.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// websiteBurst creates all Websites at once while the contender is at work, and records what that
// takes. The registry is in this process, and answers at once.
func (r *run) websiteBurst(ctx context.Context) error {
	var requests atomic.Int64
	known := sites.NewServer()
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		requests.Add(1)
		known.ServeHTTP(w, q)
	}))
	defer registry.Close()
	r.registry = registry.URL
	if err := r.start(ctx); err != nil {
		return err
	}
	if _, err := r.phase(ctx, "first", 1, func() error {
		return makeAll(ctx, "first", 1, 1, 0, r.makeWebsite)
	}); err != nil {
		return err
	}
	before, err := r.syncs()
	if err != nil {
		return err
	}
	requests.Store(0)
	burst, err := r.phase(ctx, "burst", r.n, func() error {
		return makeAll(ctx, "burst", r.n, makers, 0, r.makeWebsite)
	})
	if err != nil {
		return err
	}
	after, err := r.syncs()
	if err != nil {
		return err
	}
	r.figures["burst/syncs per Website"] = (after - before) / float64(r.n)
	r.figures["burst/requests to the registry per Website"] = float64(requests.Load()) / float64(r.n)
	r.recordWebsites(burst)

	// The controller has to remove the finalizers.
	if err := r.clean(ctx); err != nil {
		return err
	}
	if err := r.stop(); err != nil {
		return err
	}
	return r.awaitOthers(ctx)
}

// makeWebsite creates one Website.
func (r *run) makeWebsite(ctx context.Context, name string) error {
	_, err := r.websites.Create(ctx, &website.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       website.WebsiteSpec{Content: "<h1>" + name + "</h1>"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating Website: %w", err)
	}
	return nil
}

// websitesAreDone reports whether all Websites are Ready and Registered.
func (r *run) websitesAreDone(ctx context.Context) (bool, error) {
	list, err := r.websites.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(list.Items, func(w website.Website) bool {
		return !meta.IsStatusConditionTrue(w.Status.Conditions, website.ConditionReady) ||
			!meta.IsStatusConditionTrue(w.Status.Conditions, website.ConditionRegistered)
	}), nil
}

// recordWebsites records how long it took from the first Website to the last status, by the API
// server's clock: that status says that its Website is Ready and Registered. It also records how
// many Events were not written.
func (r *run) recordWebsites(requests []audit.Request) {
	begin := firstCreate(requests, userPrefix+"load", "websites")
	var last time.Time
	lost := eventsPerWebsite * r.n
	for _, request := range requests {
		switch {
		case request.User() != r.user || !request.Succeeded():
		case request.Creates("events"):
			lost--
		case request.ObjectRef.Subresource == "status" && request.StageTimestamp.After(last):
			last = request.StageTimestamp
		}
	}
	r.figures["burst/seconds"] = last.Sub(begin).Seconds()
	r.figures["burst/Events lost"] = float64(lost)
}

// recordPeak records the resident memory of the controller if that is more than ever before.
func (r *run) recordPeak() error {
	memory, err := r.memory()
	const peak = "memory/peak MiB"
	r.figures[peak] = max(r.figures[peak], memory/(1<<20))
	return err
}

var websiteCost = []column{
	{title: "until all are Ready and Registered", mode: modeWorking, figure: "burst/seconds",
		format: "%.1f s", relative: this},
	{title: "CPU per Website", mode: modeWorking, figure: "burst/cpu ms per Website/controller",
		format: "%.1f ms", relative: this},
	{title: "CPU per Website of API server and etcd", mode: modeWorking,
		figure: "burst/cpu ms per Website/servers", format: "%.1f ms", relative: this},
	{title: "requests per Website", mode: modeWorking, figure: "burst/requests per Website",
		format: "%.2f"},
	{title: "requests to the registry", mode: modeWorking,
		figure: "burst/requests to the registry per Website", format: "%.2f"},
	{title: "syncs per Website", mode: modeWorking, figure: "burst/syncs per Website",
		format: "%.2f"},
	{title: "peak memory", mode: modeWorking, figure: "memory/peak MiB", format: "%.0f MiB",
		relative: this},
	{title: "Events lost", mode: modeWorking, figure: "burst/Events lost", format: "%.0f"},
}

// websiteMachine says how many Websites were measured, and on what.
func (r *Results) websiteMachine() string {
	return fmt.Sprintf("Bursts of %d Websites. %s", r.largest(), r.machine())
}

func (r *Results) websiteRequests() string {
	return r.requestTable("burst/requests per Website/", this, "controller-runtime")
}

// websiteReport returns what is printed after a measurement of Websites.
func (r *Results) websiteReport() string {
	return strings.Join([]string{
		r.websiteMachine(), r.table(false, websiteCost), r.websiteRequests(),
	}, "\n")
}
