package main

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/apiserver"
)

func TestExplore(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, c *rest.Config) error { return run(ctx, c, options) },
		Scenarios: []explore.Scenario{{Name: "report", EndVaries: true, Steps: []explore.Step{
			explore.Create(`{apiVersion: v1, kind: ConfigMap, data: {query: "1"},
				metadata: {name: a, labels: {example.com/report: "true"}}}`),
			explore.Patch("configmaps/a", `data: {query: "2"}`),
		}}},
		Eventually: problems,
	})
}

// problems returns what is wrong in the end.
func problems(now explore.State) (problems []string) {
	jobs := map[string]int{} // by query
	for _, job := range explore.List[batchv1.Job](now, "jobs") {
		jobs[job.Spec.Template.Spec.Containers[0].Env[0].Value]++
	}
	for query, number := range jobs {
		if number > 1 {
			problems = append(problems, fmt.Sprintf("query %s has %d Jobs", query, number))
		}
	}
	report := explore.Get[corev1.ConfigMap](now, "configmaps", "a")
	if report != nil && jobs[report.Data["query"]] == 0 {
		problems = append(problems, "the query of a has no Job")
	}
	return problems
}

// options has no servers, for there is no network in a bubble.
var options = ctrl.Options{
	Metrics: server.Options{BindAddress: "0"},
	// Many Managers run in this program, one after the other.
	Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	// The cache holds a mutex while a mapper asks the API server.
	MapperProvider: apiserver.Mapper,
}
