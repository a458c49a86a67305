package replicaset

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"example.com/sample-controller/explore"
)

const replicaSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 2,
	selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}},
	spec: {containers: [{name: web, image: web}]}}}}`

// TestExplore explores Kubernetes' own controller of ReplicaSets.
func TestExplore(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: run,
		Scenarios: []explore.Scenario{
			{Name: "scale", Steps: []explore.Step{explore.Create(replicaSet),
				explore.Patch("replicasets.apps/a", "spec: {replicas: 3}"),
				explore.Patch("replicasets.apps/a", "spec: {replicas: 1}")}},
			{Name: "delete", Steps: []explore.Step{explore.Create(replicaSet),
				explore.Delete("replicasets.apps/a")}},
		},
		Eventually: problems,
		Settle:     2 * time.Hour,
	})
}

func run(ctx context.Context, config *rest.Config) error {
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	apps, core := factory.Apps().V1(), factory.Core().V1()
	c := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, 500)
	factory.Start(ctx.Done())
	c.Run(ctx, 5)
	factory.Shutdown()
	return ctx.Err()
}

// problems compares the ReplicaSets with their Pods.
func problems(now explore.State) (wrong []string) {
	pods := explore.List[corev1.Pod](now, "pods")
	for _, rs := range explore.List[appsv1.ReplicaSet](now, "replicasets.apps") {
		if n := int32(len(pods)); n != *rs.Spec.Replicas || n != rs.Status.Replicas {
			wrong = append(wrong, fmt.Sprintf("%d Pods, but %d are asked for", n, *rs.Spec.Replicas))
		}
	}
	return wrong
}
