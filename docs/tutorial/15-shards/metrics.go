package main

import (
	"errors"
	"net"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	errorNoAnswer = "NoAnswer"
	reasonOther   = "Other"
)

// syncErrorReasons are the only reasons that have a series of their own: metrics must not have a
// label that can have any number of values.
var syncErrorReasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonBadRequest, metav1.StatusReasonConflict,
	metav1.StatusReasonForbidden, metav1.StatusReasonInternalError, metav1.StatusReasonInvalid,
	metav1.StatusReasonNotFound, metav1.StatusReasonServerTimeout,
	metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTimeout,
	metav1.StatusReasonTooManyRequests, metav1.StatusReasonUnauthorized,
}

var syncErrors = k8smetrics.NewCounterVec(&k8smetrics.CounterOpts{
	Subsystem:      "foo_controller",
	Name:           "sync_errors_total",
	Help:           "Number of syncs of a Foo that failed, by the reason of the error.",
	StabilityLevel: k8smetrics.ALPHA,
}, []string{"reason"})

// registerMetrics makes the program serve the metric that only this controller has. (The root also
// counts Foos by readiness. Here, each shard has a cache of its own, which comes and goes.) It may
// be called only once.
func registerMetrics() {
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
