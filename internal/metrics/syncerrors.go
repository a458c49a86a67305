package metrics

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

// NewSyncErrors returns the counter for a kind, whose name begins with the subsystem.
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

// syncErrorReason returns the reason that the API server gave, if it gave one.
func syncErrorReason(err error) string {
	reason := apierrors.ReasonForError(err)
	var noAnswer net.Error // a connection that was refused, for example, or the end of a timeout
	switch {
	case slices.Contains(syncErrorReasons, reason):
		return string(reason)
	case errors.As(err, &noAnswer):
		return errorNoAnswer
	}
	return reasonOther
}
