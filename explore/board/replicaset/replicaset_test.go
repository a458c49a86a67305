// Package replicaset explores Kubernetes' controller of ReplicaSets. It does without explore/board/kinds, so
// that little is compiled when it runs with each change.
package replicaset

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/board"
)

func TestReplicaSet(t *testing.T) {
	const rs = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 2,
		selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: web, image: web}]}}}}`
	board.Explore(t, "k8s.io/kubernetes", explore.Controller{
		Run: board.Run(func(ctx context.Context, c kubernetes.Interface, f informers.SharedInformerFactory) (
			board.Runner, error,
		) {
			return replicaset.NewReplicaSetController(ctx, f.Apps().V1().ReplicaSets(), f.Core().V1().Pods(),
				c, 500), nil
		}),
		Scenarios: []explore.Scenario{
			{Name: "scale", Steps: []explore.Step{explore.Create(rs),
				explore.Patch("replicasets.apps/a", "spec: {replicas: 3}"),
				explore.Patch("replicasets.apps/a", "spec: {replicas: 1}")}},
			{Name: "delete", Steps: []explore.Step{explore.Create(rs), explore.Delete("replicasets.apps/a")}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			pods := explore.List[corev1.Pod](now, "pods")
			for _, rs := range explore.List[appsv1.ReplicaSet](now, "replicasets.apps") {
				if n := int32(len(pods)); n != *rs.Spec.Replicas || n != rs.Status.Replicas {
					wrong = append(wrong, fmt.Sprintf("%d Pods, but %d are asked for", n, *rs.Spec.Replicas))
				}
			}
			return wrong
		},
	})
}
