package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// metricsSubsystem begins the names of the metrics that only this controller has, as in
// job_controller_job_syncs_total of Kubernetes itself.
const metricsSubsystem = "foo_controller"

const (
	errorNoAnswer = "NoAnswer"
	reasonOther   = "Other"
	// reasonNotObserved is the reason of Foos whose newest spec no status is about.
	reasonNotObserved = "NotObserved"
)

// syncErrorReasons are the only reasons of errors that have a series of their own. Metrics must not
// have a label that can have any number of values: each value is a series that Prometheus keeps,
// and some reasons come from other programs.
var syncErrorReasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonBadRequest, metav1.StatusReasonConflict,
	metav1.StatusReasonForbidden, metav1.StatusReasonInternalError, metav1.StatusReasonInvalid,
	metav1.StatusReasonNotFound, metav1.StatusReasonServerTimeout,
	metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTimeout,
	metav1.StatusReasonTooManyRequests, metav1.StatusReasonUnauthorized,
}

var syncErrors = k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
	Subsystem:      metricsSubsystem,
	Name:           "sync_errors_total",
	Help:           "Number of syncs of a Foo that failed, by the reason of the error.",
	StabilityLevel: k8smetrics.ALPHA,
}, []string{"reason"})

// registerSyncErrors makes the program serve how many syncs have failed. It may be called only
// once.
func registerSyncErrors() {
	legacyregistry.MustRegister(syncErrors)
	// A rate needs a value from before the first error.
	for _, reason := range syncErrorReasons {
		syncErrors.WithLabelValues(string(reason))
	}
	syncErrors.WithLabelValues(errorNoAnswer)
	syncErrors.WithLabelValues(reasonOther)
}

// countSyncError counts the error of a sync, if there is one.
func countSyncError(err error) {
	if err != nil {
		syncErrors.WithLabelValues(syncErrorReason(err)).Inc()
	}
}

// syncErrorReason returns the reason that the API server gave, if it gave one.
func syncErrorReason(err error) string {
	reason := apierrors.ReasonForError(err)
	var noAnswer net.Error // a connection that was refused, for example, or the end of syncTimeout
	switch {
	case slices.Contains(syncErrorReasons, reason):
		return string(reason)
	case errors.As(err, &noAnswer):
		return errorNoAnswer
	}
	return reasonOther
}

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
