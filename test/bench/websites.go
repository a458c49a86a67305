package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	website "example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/testing/suite/audit"
	"example.com/sample-controller/test/internal/cluster"
)

// eventsPerWebsite is one for each child that is created.
const eventsPerWebsite = 3

// installWebsites installs their CustomResourceDefinition, and waits until they are served.
func (b *bench) installWebsites(ctx context.Context) error {
	output, err := exec.Command(filepath.Join(root, ".local/bin/kubectl"),
		"--kubeconfig", b.cluster.Kubeconfig(), "--cache-dir", filepath.Join(b.cluster.Dir, "cache"),
		"apply", "--server-side", "-f", filepath.Join(root, "examples/website/artifacts/crd.yaml"),
	).CombinedOutput()
	if err != nil {
		return fmt.Errorf("installing the CustomResourceDefinition of Websites: %w\n%s", err, output)
	}
	return cluster.WaitUntil(time.Minute, 100*time.Millisecond, func() error {
		_, err := b.sites.List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// websitePhases does a burst of Websites. The registry is in this process, and answers at once.
func (r *run) websitePhases(ctx context.Context) error {
	requests, err := r.burst(ctx)
	if err != nil {
		return err
	}
	const perWebsite = "burst/requests to the registry per Website"
	r.figures[perWebsite] = float64(r.registered.Load()) / float64(r.n)
	r.recordWebsites(requests)

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
	_, err := r.sites.Create(ctx, &website.Website{
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
	list, err := r.sites.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
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
	begin := firstCreate(requests, loadUser, "websites")
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
