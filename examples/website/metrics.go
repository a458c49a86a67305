package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/metrics"
)

// metricsSubsystem begins the names of the metrics that only this controller has, as in
// job_controller_job_syncs_total of Kubernetes itself.
const metricsSubsystem = "website_controller"

var syncErrors = metrics.NewSyncErrors(metricsSubsystem, "Website")

// websiteReasons and those of the children are the only reasons that have a series of their own.
var websiteReasons = []string{
	meaning.ReasonAvailable, meaning.ReasonProgressing, meaning.ReasonRolloutFailed,
	meaning.ReasonWebsiteTerminating,
}

// registerMetrics makes the program serve the metrics that only this controller has. It may be
// called only once.
func registerMetrics(c *Controller) {
	syncErrors.Register()
	metrics.RegisterReadiness(metrics.Objects[*v1alpha1.Website]{
		Subsystem:  metricsSubsystem,
		Plural:     "Websites",
		List:       c.websites.List,
		Conditions: func(w *v1alpha1.Website) []metav1.Condition { return w.Status.Conditions },
		Reasons:    append(c.children.NotReadyReasons(), websiteReasons...),
	})
}
