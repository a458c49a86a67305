// Package kubernetes explores controllers of Kubernetes' own.
package kubernetes

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/statefulset"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/board"
	_ "example.com/sample-controller/explore/board/kinds"
)

const module = "k8s.io/kubernetes"

type (
	client  = kubernetes.Interface
	factory = informers.SharedInformerFactory
)

const podTemplate = `{metadata: {labels: {app: a}}, spec: {containers: [{name: web, image: web}]}}`

func TestDeployment(t *testing.T) {
	const d = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2,
		selector: {matchLabels: {app: a}}, template: ` + podTemplate + `}}`
	board.Explore(t, module, explore.Controller{
		Run: board.Run(func(ctx context.Context, c client, f factory) (board.Runner, error) {
			return deployment.NewDeploymentController(ctx, f.Apps().V1().Deployments(),
				f.Apps().V1().ReplicaSets(), f.Core().V1().Pods(), c)
		}),
		Actors: []explore.Actor{}, // it writes the status itself
		Scenarios: []explore.Scenario{
			{Name: "scale", EndVaries: true, Steps: []explore.Step{explore.Create(d),
				explore.Patch("deployments.apps/a", "spec: {replicas: 3}")}},
			{Name: "roll out", EndVaries: true, Steps: []explore.Step{explore.Create(d),
				explore.Patch("deployments.apps/a", `spec: {template: {metadata: {labels: {v: "2"}}}}`)}},
			{Name: "delete", Steps: []explore.Step{explore.Create(d), explore.Delete("deployments.apps/a")}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			for _, d := range explore.List[appsv1.Deployment](now, "deployments.apps") {
				replicas, version := map[string]int32{}, d.Spec.Template.Labels["v"]
				for _, rs := range explore.List[appsv1.ReplicaSet](now, "replicasets.apps") {
					replicas[rs.Spec.Template.Labels["v"]] += *rs.Spec.Replicas
				}
				if replicas[version] == 0 || len(replicas) == 1 && replicas[version] != *d.Spec.Replicas {
					wrong = append(wrong, "the ReplicaSets are not what the Deployment asks for")
				}
			}
			return wrong
		},
	}, known[t.Name()]...)
}

func TestStatefulSet(t *testing.T) {
	const sts = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 2,
		serviceName: a, selector: {matchLabels: {app: a}}, template: ` + podTemplate + `}}`
	board.Explore(t, module, explore.Controller{
		Run: board.Run(func(ctx context.Context, c client, f factory) (board.Runner, error) {
			core, apps := f.Core().V1(), f.Apps().V1()
			return statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(),
				core.PersistentVolumeClaims(), apps.ControllerRevisions(), c), nil
		}),
		Actors: []explore.Actor{}, // it writes the status itself
		Scenarios: []explore.Scenario{
			{Name: "scale", Steps: []explore.Step{explore.Create(sts),
				explore.Patch("statefulsets.apps/a", "spec: {replicas: 1}")}},
			{Name: "roll out", EndVaries: true, Steps: []explore.Step{explore.Create(sts),
				explore.Patch("statefulsets.apps/a", `spec: {template: {metadata: {labels: {v: "2"}}}}`)}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			pods := explore.List[corev1.Pod](now, "pods")
			for _, sts := range explore.List[appsv1.StatefulSet](now, "statefulsets.apps") {
				if len(pods) == 0 || sts.Status.Replicas != int32(len(pods)) {
					wrong = append(wrong, fmt.Sprintf("%d Pods, but the status says %d", len(pods), sts.Status.Replicas))
				}
			}
			return wrong
		},
	}, known[t.Name()]...)
}

func TestJob(t *testing.T) {
	const j = `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 2,
		parallelism: 2, manualSelector: true, selector: {matchLabels: {app: a}},
		template: {metadata: {labels: {app: a}}, spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`
	board.Explore(t, module, explore.Controller{
		Run: board.Run(func(ctx context.Context, c client, f factory) (board.Runner, error) {
			scheduling := f.Scheduling().V1beta1()
			return job.NewController(ctx, c, f.Core().V1().Pods(), f.Batch().V1().Jobs(),
				scheduling.Workloads(), scheduling.PodGroups())
		}),
		Scenarios: []explore.Scenario{
			{Name: "suspend", EndVaries: true, Steps: []explore.Step{explore.Create(j),
				explore.Patch("jobs.batch/a", "spec: {suspend: true}"),
				explore.Patch("jobs.batch/a", "spec: {suspend: false}")}},
			{Name: "delete", Steps: []explore.Step{explore.Create(j), explore.Delete("jobs.batch/a")}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			pods, j := explore.List[corev1.Pod](now, "pods"), explore.Get[batchv1.Job](now, "jobs.batch", "a")
			if j != nil && (*j.Spec.Suspend != (len(pods) == 0) || j.Status.Active != int32(len(pods))) {
				wrong = append(wrong, fmt.Sprintf("%d Pods, but %d are active", len(pods), j.Status.Active))
			}
			return wrong
		},
	}, known[t.Name()]...)
}

func TestCronJob(t *testing.T) {
	// The clock begins at the turn of the year 2000. The schedule is for half past, once a year.
	const cj = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "30 0 1 1 *",
		jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}`
	board.Explore(t, module, explore.Controller{
		Run: board.Run(func(ctx context.Context, c client, f factory) (board.Runner, error) {
			return cronjob.NewControllerV2(ctx, f.Batch().V1().Jobs(), f.Batch().V1().CronJobs(), c)
		}),
		Delay: 40 * time.Minute, // between two steps, there is a Job
		Scenarios: []explore.Scenario{
			{Name: "run", Steps: []explore.Step{explore.Create(cj)}},
			{Name: "suspend", EndVaries: true, Steps: []explore.Step{explore.Create(cj),
				explore.Patch("cronjobs.batch/a", "spec: {suspend: true}")}},
			{Name: "delete", Steps: []explore.Step{explore.Create(cj), explore.Delete("cronjobs.batch/a")}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			jobs, cj := explore.List[batchv1.Job](now, "jobs.batch"), explore.Get[batchv1.CronJob](now, "cronjobs.batch", "a")
			if cj != nil && len(cj.Status.Active) != len(jobs) {
				wrong = append(wrong, fmt.Sprintf("%d Jobs, but %d are active", len(jobs), len(cj.Status.Active)))
			}
			return wrong
		},
	}, known[t.Name()]...)
}

func TestEndpointSlice(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a},
		clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ports: [{port: 80}]}}`
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: a}},
		spec: {nodeName: node, containers: [{name: web, image: web}]}}`
	board.Explore(t, module, explore.Controller{
		Run: board.Run(func(ctx context.Context, c client, f factory) (board.Runner, error) {
			core := f.Core().V1()
			return endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
				f.Discovery().V1().EndpointSlices(), 100, c, time.Second), nil
		}),
		Scenarios: []explore.Scenario{
			{Name: "pod", Steps: []explore.Step{
				explore.Create(`{apiVersion: v1, kind: Node, metadata: {name: node}}`),
				explore.Create(service), explore.Create(pod),
				explore.Patch("pods/a/status", `status: {phase: Running, podIP: 10.1.1.1,
					podIPs: [{ip: 10.1.1.1}], conditions: [{type: Ready, status: "True"}]}`),
				explore.Delete("pods/a")}},
		},
	}, known[t.Name()]...)
}

var known = map[string][]board.Known{
	"TestDeployment": {{
		Where: "/Error/.*/for-good$", What: "not what the Deployment asks for|^\\(a restart",
		Verdict: "true", Why: "deployment_controller.go, handleErr: after maxRetries (15, about three minutes), " +
			"a Deployment is not tried again until an event comes",
	}},
	"TestCronJob": {{
		Where: "/suspend/", What: "1 Jobs, but 0 are active",
		Verdict: "true", Why: "cronjob_controllerv2.go, syncCronJob: a Job that status.active lacks gets an Event " +
			"(UnexpectedJob), but comes into the list only if its hour is scheduled again",
	}},
	"TestEndpointSlice": {{
		What:    "last-change-trigger-time a time, but unset",
		Verdict: "meant", Why: "endpointslice's trigger time tracker: the annotation says which change the process has seen, " +
			"for a measurement",
	}},
}
