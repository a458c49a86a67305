package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	listers "example.com/sample-controller/examples/website/pkg/generated/listers/website/v1alpha1"
	"example.com/sample-controller/internal/metrics"
)

// metricsSubsystem begins the names of the metrics that only this controller has, as in
// job_controller_job_syncs_total of Kubernetes itself.
const metricsSubsystem = "website_controller"

var syncErrors = metrics.NewSyncErrors(metricsSubsystem, "Website")

// websiteReasons are the only reasons of Websites that have a series of their own.
var websiteReasons = []string{
	meaning.ReasonAvailable, meaning.ReasonProgressing, meaning.ReasonRolloutFailed,
	meaning.ReasonWebsiteTerminating,
	// These are reasons of the package owned.
	"ConfigMapNameTaken", "ConfigMapRejected", "ConfigMapTerminating",
	"ServiceNameTaken", "ServiceRejected", "ServiceTerminating",
	"DeploymentNameTaken", "DeploymentRejected", "DeploymentTerminating",
}

// registerMetrics makes the program serve the metrics that only this controller has. It may be
// called only once.
func registerMetrics(websites listers.WebsiteLister) {
	syncErrors.Register()
	metrics.RegisterReadiness(metrics.Objects[*v1alpha1.Website]{
		Subsystem:  metricsSubsystem,
		Plural:     "Websites",
		List:       websites.List,
		Conditions: func(w *v1alpha1.Website) []metav1.Condition { return w.Status.Conditions },
		Reasons:    websiteReasons,
	})
}
