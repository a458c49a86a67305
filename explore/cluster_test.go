package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore/apiserver"
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

// TestCollectGarbage shows what is left of an object with these owners, and of their owners.
func TestCollectGarbage(t *testing.T) {
	const configMap, namespace = "{apiVersion: v1, kind: ConfigMap, metadata: {", "{apiVersion: v1, kind: Namespace, metadata: {"
	for name, test := range map[string]struct {
		object  string
		blocks  []bool // for each owner
		foreign bool   // the owners are in another namespace
		delete  metav1.DeletionPropagation
		want    []int // how many owners and objects are left, and references to owners
	}{
		"an owner goes":                           {configMap, []bool{true}, false, "Background", []int{0, 0, 0}},
		"the object has another owner":            {configMap, []bool{true, true}, false, "Background", []int{1, 1, 1}},
		"in the foreground":                       {configMap, []bool{true}, false, "Foreground", []int{0, 0, 0}},
		"in the foreground, with another owner":   {configMap, []bool{true, true}, false, "Foreground", []int{1, 1, 1}},
		"the object has a finalizer":              {configMap + "finalizers: [a/b], ", []bool{true}, false, "Foreground", []int{1, 1, 1}},
		"the object has one, and does not block":  {configMap + "finalizers: [a/b], ", []bool{false}, false, "Foreground", []int{0, 1, 1}},
		"the owner lives in another namespace":    {configMap, []bool{true}, true, "", []int{1, 0, 0}},
		"the object has no namespace, but owners": {namespace, []bool{true}, false, "Background", []int{0, 1, 1}},
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(&Controller{Actors: []Actor{}}, nil)
			kube := kubernetes.NewForConfigOrDie(w.Config()).CoreV1()
			in, references := Namespace, ""
			if test.foreign {
				in = "other"
				Create(namespace + "name: other}}").Do(w)
			}
			for i, blocks := range test.blocks {
				secret, err := kube.Secrets(in).Create(t.Context(), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("owner-", i)}}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				references += fmt.Sprintf("{apiVersion: v1, kind: Secret, name: %s, uid: %s, blockOwnerDeletion: %t}, ",
					secret.Name, secret.UID, blocks)
			}
			Create(test.object + "name: owned, ownerReferences: [" + references + "]}}").Do(w)
			if test.delete != "" {
				_ = kube.Secrets(in).Delete(t.Context(), "owner-0", metav1.DeleteOptions{PropagationPolicy: &test.delete})
			}
			w.collectGarbage()
			owned := slices.DeleteFunc(w.objects(), func(o *object) bool { return o.GetName() != "owned" })
			got := []int{len(w.State().all("secrets")), len(owned), 0}
			for _, o := range owned {
				got[2] = len(o.GetOwnerReferences())
			}
			if !slices.Equal(got, test.want) || len(w.mistakes) > 0 {
				t.Errorf("%s: got %v, want %v (%v)", name, got, test.want, w.mistakes)
			}
		})
	}
}

// TestOldListsAreOld shows that only what an informer lists is old: what is read without a
// resourceVersion is what is stored.
func TestOldListsAreOld(t *testing.T) {
	w := &World{lines: map[string]*line{"pods": {past: 1}}}
	for version, want := range map[string]int64{"0": 1, "": 0} {
		r := &apiserver.Request{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods")}
		r.List.ResourceVersion = version
		if w.lag(r); r.AsOf != want {
			t.Errorf("resourceVersion %q: got a list as of %d, want %d", version, r.AsOf, want)
		}
	}
}

// TestRunThatDoesNotEndIsTold shows what becomes of a controller that ignores its context.
func TestRunThatDoesNotEndIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, "Run has not returned") {
				t.Errorf("got %q, want that Run has not returned", got)
			}
		}()
		w := newWorld(&Controller{Run: func(context.Context, *rest.Config) error { select {} }}, nil)
		w.start()
		w.stop()
	})
}

func TestProcessThatAStepKillsIsAwayDuringTheNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(&Controller{Run: func(ctx context.Context, _ *rest.Config) error {
			<-ctx.Done()
			return nil
		}}, nil)
		w.start()
		expect := func(want int) {
			if got := w.process.number; got != want {
				t.Errorf("got process %d, want %d", got, want)
			}
		}
		played(Step{"kill", func(w *World) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.end(w.process, 0)
		}}).Do(w)
		expect(1)
		played(Step{"next", func(*World) { expect(1) }}).Do(w)
		expect(2)
		w.stop()
	})
}
