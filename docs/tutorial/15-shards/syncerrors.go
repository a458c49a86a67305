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

// metricsSubsystem begins the names of the metrics that only this controller has, as in
// job_controller_job_syncs_total of Kubernetes itself.
const metricsSubsystem = "foo_controller"

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
