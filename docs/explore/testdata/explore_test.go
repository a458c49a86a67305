package main

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/manager"
)

func TestExplore(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, c *rest.Config) error { return run(ctx, c, manager.Options()) },
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
