package metrics

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"example.com/sample-controller/internal/patch"
)

// reasonNotObserved is the reason of objects whose newest spec no status is about.
const reasonNotObserved = "NotObserved"

// Objects says whose readiness is measured.
type Objects[T metav1.Object] struct {
	Subsystem string // begins the names of the metrics
	Plural    string // "Foos" for example
	// List returns the objects in the cache.
	List func(labels.Selector) ([]T, error)
	// Conditions returns the conditions of an object. The type of one of them is Ready.
	Conditions func(T) []metav1.Condition
	// Reasons are the only reasons of Ready that have a series of their own: see syncErrorReasons.
	// The first one is that of an object that is Ready.
	Reasons []string
}

// RegisterReadiness makes the program serve how many of the objects are Ready, and since when the
// others have not been. It may be called only once.
func RegisterReadiness[T metav1.Object](objects Objects[T]) {
	legacyregistry.CustomMustRegister(newCollector(objects))
}

// collector counts the objects in the cache, whenever somebody reads the metrics. Standbys have
// caches, too, so all replicas report the same objects.
type collector[T metav1.Object] struct {
	k8smetrics.BaseStableCollector
	Objects[T]
	count, notReadySince *k8smetrics.Desc
}

func newCollector[T metav1.Object](o Objects[T]) *collector[T] {
	return &collector[T]{
		Objects: o,
		count: k8smetrics.NewDesc(
			k8smetrics.BuildFQName("", o.Subsystem, strings.ToLower(o.Plural)),
			"Number of "+o.Plural+" in the cache, by the status and the reason of their condition Ready.",
			[]string{"ready", "reason"}, nil, k8smetrics.ALPHA, ""),
		notReadySince: k8smetrics.NewDesc(
			k8smetrics.BuildFQName("", o.Subsystem, "not_ready_since_timestamp_seconds"),
			"Unix time since when one of the "+o.Plural+" in the cache has not been Ready: the earliest, "+
				"by reason.",
			[]string{"reason"}, nil, k8smetrics.ALPHA, ""),
	}
}

// DescribeWithStability implements StableCollector.
func (c *collector[T]) DescribeWithStability(descs chan<- *k8smetrics.Desc) {
	descs <- c.count
	descs <- c.notReadySince
}

// CollectWithStability implements StableCollector.
func (c *collector[T]) CollectWithStability(collected chan<- k8smetrics.Metric) {
	objects, err := c.List(labels.Everything())
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("listing the %s for the metrics: %w", c.Plural, err))
		return
	}
	counts := map[readiness]int{{metav1.ConditionTrue, c.Reasons[0]}: 0} // without objects, too
	oldest := map[string]time.Time{}
	for _, object := range objects {
		ready, since := c.readinessOf(object)
		counts[ready]++
		if before, ok := oldest[ready.reason]; !since.IsZero() && (!ok || since.Before(before)) {
			oldest[ready.reason] = since
		}
	}
	for ready, count := range counts {
		collected <- k8smetrics.NewLazyConstMetric(
			c.count, k8smetrics.GaugeValue, float64(count), string(ready.status), ready.reason)
	}
	for reason, since := range oldest {
		collected <- k8smetrics.NewLazyConstMetric(
			c.notReadySince, k8smetrics.GaugeValue, float64(since.Unix()), reason)
	}
}

// readiness is what the metrics say of an object.
type readiness struct {
	status metav1.ConditionStatus
	reason string
}

// readinessOf returns what the metrics say of object, and since when it has not been Ready. That
// time is zero if it is Ready, or was so before the last change of its spec.
func (c *collector[T]) readinessOf(object T) (ready readiness, since time.Time) {
	condition := meta.FindStatusCondition(c.Conditions(object), "Ready")
	switch {
	case condition == nil:
		return readiness{metav1.ConditionUnknown, reasonNotObserved}, object.GetCreationTimestamp().Time
	case condition.Status != metav1.ConditionTrue:
		since = condition.LastTransitionTime.Time
	case condition.ObservedGeneration < object.GetGeneration():
		return readiness{metav1.ConditionUnknown, reasonNotObserved}, since
	}
	reason := condition.Reason
	if !slices.Contains(c.Reasons, reason) {
		reason = reasonOther
	}
	return readiness{condition.Status, reason}, since
}

const (
	errorNoAnswer = "NoAnswer"
	reasonOther   = "Other"
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

// SyncErrors counts the syncs that have failed, by the reason of the error.
type SyncErrors struct{ *k8smetrics.CounterVec }

// NewSyncErrors returns the counter for a kind. The name of the counter begins with the subsystem.
func NewSyncErrors(subsystem, kind string) SyncErrors {
	return SyncErrors{k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "sync_errors_total",
		Help:           "Number of syncs of a " + kind + " that failed, by the reason of the error.",
		StabilityLevel: k8smetrics.ALPHA,
	}, []string{"reason"})}
}

// Register makes the program serve the counter. It may be called only once.
func (s SyncErrors) Register() {
	legacyregistry.MustRegister(s.CounterVec)
	// A rate needs a value from before the first error.
	for _, reason := range syncErrorReasons {
		s.WithLabelValues(string(reason))
	}
	s.WithLabelValues(errorNoAnswer)
	s.WithLabelValues(reasonOther)
}

// Count counts the error of a sync, if there is one.
func (s SyncErrors) Count(err error) {
	if err != nil {
		s.WithLabelValues(syncErrorReason(err)).Inc()
	}
}

// syncErrorReason returns the reason that the API server gave, if it gave one that is known.
func syncErrorReason(err error) string {
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonConflict && patch.IsRefusal(err) {
		reason = metav1.StatusReasonForbidden // a webhook may refuse with any reason; a conflict raises no alert
	}
	var noAnswer net.Error // a connection that was refused, for example, or the end of a timeout
	switch {
	case slices.Contains(syncErrorReasons, reason):
		return string(reason)
	case errors.As(err, &noAnswer):
		return errorNoAnswer
	}
	return reasonOther
}
