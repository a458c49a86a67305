package main

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// reasonNotObserved is the reason of Foos whose newest spec no status is about.
const reasonNotObserved = "NotObserved"

// fooReasons are the only reasons of Foos that have a series of their own: see syncErrorReasons.
var fooReasons = []string{
	reasonAvailable, reasonProgressing, reasonPaused, reasonTerminating, reasonNameTaken,
	reasonRejected, reasonFooTerminating,
	// These are reasons of the Deployment controller, which readyCondition passes on.
	"FailedCreate", "FailedDelete", "ProgressDeadlineExceeded", "ReplicaSetCreateError",
}

var (
	foosDesc = k8smetrics.NewDesc(
		k8smetrics.BuildFQName("", metricsSubsystem, "foos"),
		"Number of Foos in the cache, by the status and the reason of their condition Ready.",
		[]string{"ready", "reason"}, nil, k8smetrics.ALPHA, "")
	notReadySinceDesc = k8smetrics.NewDesc(
		k8smetrics.BuildFQName("", metricsSubsystem, "not_ready_since_timestamp_seconds"),
		"Unix time since when a Foo in the cache has not been Ready: the earliest, by reason.",
		[]string{"reason"}, nil, k8smetrics.ALPHA, "")
)

// registerMetrics makes the program serve the metrics that only this controller has. It may be
// called only once.
func registerMetrics(foos listers.FooLister) {
	registerSyncErrors()
	legacyregistry.CustomMustRegister(&fooCollector{foos: foos})
}

// fooCollector counts the Foos in the cache, whenever somebody reads the metrics. Standbys have
// caches, too, so all replicas report the same Foos.
type fooCollector struct {
	k8smetrics.BaseStableCollector
	foos listers.FooLister
}

// DescribeWithStability implements StableCollector.
func (c *fooCollector) DescribeWithStability(descs chan<- *k8smetrics.Desc) {
	descs <- foosDesc
	descs <- notReadySinceDesc
}

// CollectWithStability implements StableCollector.
func (c *fooCollector) CollectWithStability(collected chan<- k8smetrics.Metric) {
	foos, err := c.foos.List(labels.Everything())
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("listing the Foos for the metrics: %w", err))
		return
	}
	counts := map[readiness]int{{metav1.ConditionTrue, reasonAvailable}: 0} // without Foos, too
	oldest := map[string]time.Time{}
	for _, foo := range foos {
		ready, since := readinessOf(foo)
		counts[ready]++
		if before, ok := oldest[ready.reason]; !since.IsZero() && (!ok || since.Before(before)) {
			oldest[ready.reason] = since
		}
	}
	for ready, count := range counts {
		collected <- k8smetrics.NewLazyConstMetric(
			foosDesc, k8smetrics.GaugeValue, float64(count), string(ready.status), ready.reason)
	}
	for reason, since := range oldest {
		collected <- k8smetrics.NewLazyConstMetric(
			notReadySinceDesc, k8smetrics.GaugeValue, float64(since.Unix()), reason)
	}
}

// readiness is what the metrics say of a Foo.
type readiness struct {
	status metav1.ConditionStatus
	reason string
}

// readinessOf returns what the metrics say of foo, and since when it has not been Ready. That time
// is zero if it is Ready, or was so before the last change of its spec.
func readinessOf(foo *v1alpha1.Foo) (ready readiness, since time.Time) {
	condition := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case condition == nil:
		return readiness{metav1.ConditionUnknown, reasonNotObserved}, foo.CreationTimestamp.Time
	case condition.Status != metav1.ConditionTrue:
		since = condition.LastTransitionTime.Time
	case condition.ObservedGeneration < foo.Generation:
		return readiness{metav1.ConditionUnknown, reasonNotObserved}, since
	}
	reason := condition.Reason
	if !slices.Contains(fooReasons, reason) {
		reason = reasonOther
	}
	return readiness{condition.Status, reason}, since
}
