// Package jobset explores the controller of JobSets.
package jobset

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	api "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/board"
	"example.com/sample-controller/explore/board/manager"
)

func TestJobSet(t *testing.T) {
	const js = `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a}, spec: {
		network: {enableDNSHostnames: true, publishNotReadyAddresses: true}, successPolicy: {operator: All},
		replicatedJobs: [{name: r, replicas: 2, template: {spec: {completionMode: Indexed, template: {
		spec: {restartPolicy: OnFailure, containers: [{name: c, image: c}]}}}}}]}}`
	board.Explore(t, "sigs.k8s.io/jobset", explore.Controller{
		CRDs: []string{"config/components/crd/bases/*.yaml"},
		Run: manager.Run(api.AddToScheme, func(ctx context.Context, m ctrl.Manager) error {
			if err := controllers.SetupJobSetIndexes(ctx, m.GetFieldIndexer()); err != nil {
				return err
			}
			return controllers.NewJobSetReconciler(m.GetClient(), m.GetScheme(), m.GetEventRecorderFor("jobset")).
				SetupWithManager(m)
		}),
		Scenarios: []explore.Scenario{
			{Name: "suspend", EndVaries: true, Steps: []explore.Step{explore.Create(js),
				explore.Patch("jobsets.jobset.x-k8s.io/a", "spec: {suspend: true}"),
				explore.Patch("jobsets.jobset.x-k8s.io/a", "spec: {suspend: false}")}},
			{Name: "succeed", Steps: []explore.Step{explore.Create(js), finish("a-r-0", "Complete"),
				finish("a-r-1", "Complete")}},
			{Name: "restart", Steps: []explore.Step{
				explore.Create(js), explore.Patch("jobsets.jobset.x-k8s.io/a", "spec: {failurePolicy: {maxRestarts: 1}}"),
				finish("a-r-0", "Failed")}},
			{Name: "delete", Steps: []explore.Step{explore.Create(js),
				explore.Delete("jobsets.jobset.x-k8s.io/a")}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			js, jobs := explore.Get[api.JobSet](now, "jobsets.jobset.x-k8s.io", "a"), explore.List[batchv1.Job](now, "jobs.batch")
			if js != nil && len(jobs) != 2 {
				wrong = append(wrong, fmt.Sprintf("the JobSet has %d Jobs", len(jobs)))
			}
			for _, job := range jobs {
				if js != nil && ptr.Deref(js.Spec.Suspend, false) != ptr.Deref(job.Spec.Suspend, false) {
					wrong = append(wrong, "a Job does not do as the JobSet")
				}
			}
			return wrong
		},
	})
}

func finish(job, how string) explore.Step {
	return explore.Patch("jobs.batch/"+job+"/status", `status: {conditions: [{type: `+how+`, status: "True"}]}`)
}
