package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// metricsSubsystem begins the names of the metrics that only this controller has, as in
// job_controller_job_syncs_total of Kubernetes itself.
const metricsSubsystem = "foo_controller"

var syncErrors = metrics.NewSyncErrors(metricsSubsystem, "Foo")

// fooReasons are the only reasons of Foos that have a series of their own.
var fooReasons = []string{
	reasonAvailable, reasonProgressing, reasonPaused, reasonTerminating, reasonNameTaken,
	reasonRejected, reasonFooTerminating, reasonNotKept, reasonContested,
	// These are reasons of the Deployment controller, which readyCondition passes on.
	"FailedCreate", "FailedDelete", "ProgressDeadlineExceeded", "ReplicaSetCreateError",
}

// registerMetrics makes the program serve the metrics that only this controller has. It may be
// called only once.
func registerMetrics(foos listers.FooLister) {
	syncErrors.Register()
	metrics.RegisterReadiness(metrics.Objects[*v1alpha1.Foo]{
		Subsystem:  metricsSubsystem,
		Plural:     "Foos",
		List:       foos.List,
		Conditions: func(foo *v1alpha1.Foo) []metav1.Condition { return foo.Status.Conditions },
		Reasons:    fooReasons,
	})
}
