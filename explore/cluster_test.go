package explore

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestActors shows each part of a cluster at work, and that what it does is left undone without it.
func TestActors(t *testing.T) {
	const spec = "containers: [{name: c, image: c}]"
	// One's own actor fills in what another program waits for.
	ours := Actor{"issuer", time.Second, func(w *World) error {
		secrets := kubernetes.NewForConfigOrDie(w.Config()).CoreV1().Secrets(Namespace)
		secret, err := secrets.Get(context.Background(), "a", metav1.GetOptions{})
		if err != nil || len(secret.Data["token"]) == 3 {
			return err
		}
		secret.Data = map[string][]byte{"token": append(secret.Data["token"], 'x')}
		_, err = secrets.Update(context.Background(), secret, metav1.UpdateOptions{})
		return err
	}}
	steps := []Step{
		Create("{apiVersion: v1, kind: Node, metadata: {name: node}}"),
		Create(`{apiVersion: v1, kind: Pod, metadata: {name: runs}, spec: {nodeName: node, ` + spec + `}}`),
		Create(`{apiVersion: v1, kind: Pod, metadata: {name: ends}, spec: {restartPolicy: Never, ` + spec + `}}`),
		Create(`{apiVersion: v1, kind: Pod, metadata: {name: lost}, spec: {nodeName: gone, ` + spec + `}}`),
		Create(`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 3, template:
			{spec: {restartPolicy: Never, ` + spec + `}}}}`),
		Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2, selector:
			{matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {` + spec + `}}}}`),
		Do("create a Secret with a client for users", func(w *World) error {
			_, err := kubernetes.NewForConfigOrDie(w.Config()).CoreV1().Secrets(Namespace).Create(
				context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
				metav1.CreateOptions{})
			return err
		}),
	}
	isPod := func(now State, name string, phase corev1.PodPhase, ready corev1.ConditionStatus) bool {
		pod := Get[corev1.Pod](now, "pods", name)
		return pod.Status.Phase == phase && slices.ContainsFunc(pod.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == ready })
	}
	actors := []struct {
		actor  Actor
		worked func(now State) bool
	}{
		{Kubelet, func(now State) bool {
			return isPod(now, "runs", corev1.PodRunning, corev1.ConditionTrue) &&
				isPod(now, "ends", corev1.PodSucceeded, corev1.ConditionFalse)
		}},
		{PodGarbageCollector, func(now State) bool { return Get[corev1.Pod](now, "pods", "lost") == nil }},
		{Jobs, func(now State) bool {
			job := Get[batchv1.Job](now, "jobs.batch", "a")
			return job.Status.Succeeded == 3 && job.Status.Active == 0 && len(job.Status.Conditions) == 2
		}},
		{Rollouts, func(now State) bool {
			return Get[appsv1.Deployment](now, "deployments.apps", "a").Status.AvailableReplicas == 2
		}},
		{ours, func(now State) bool {
			return string(Get[corev1.Secret](now, "secrets", "a").Data["token"]) == "xxx"
		}},
	}
	for off := range len(actors) + 1 { // in the end, none
		c := &Controller{Actors: []Actor{}}
		for i, a := range actors {
			if i != off {
				c.Actors = append(c.Actors, a.actor)
			}
		}
		bubble(t, func(t *testing.T) {
			w := newWorld(c, nil)
			for _, step := range steps {
				step.Do(w)
			}
			time.Sleep(time.Minute)
			for i, a := range actors {
				if got, want := a.worked(w.State()), i != off; got != want {
					t.Errorf("without actor %d: %s has worked: %t, want %t", off, a.actor.Name, got, want)
				}
			}
			last := w.server.Revision()
			if time.Sleep(time.Hour); w.server.Revision() != last || len(w.mistakes) > 0 {
				t.Error("the actors do not come to rest, or are wrong:", w.mistakes)
			}
		})
	}
}
