package main

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var deploymentResource = appsv1.SchemeGroupVersion.WithResource("deployments")

func TestPutFooGetsItsDeployment(t *testing.T) {
	w := newWorld(t)

	w.put("web", `{"deploymentName":"web","replicas":3}`)

	deployment := w.deploymentWhen("web", "exists", exists)
	if *deployment.Spec.Replicas != 3 {
		t.Errorf("got %d replicas, want 3", *deployment.Spec.Replicas)
	}
	if len(deployment.OwnerReferences) > 0 {
		t.Errorf("got owners %v, with which the garbage collector would delete the Deployment",
			deployment.OwnerReferences)
	}
	if key, ours := w.controller.ownerKey(deployment); !ours || key != "default.web" {
		t.Errorf("got owner %q (ours: %v), want default.web; annotations %v, labels %v", key, ours,
			deployment.Annotations, deployment.Labels)
	}
}

func TestChangedFooChangesItsDeployment(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web","replicas":3}`)
	w.deploymentWhen("web", "exists", exists)

	w.put("web", `{"deploymentName":"web","replicas":5}`)

	w.deploymentWhen("web", "has 5 replicas", hasReplicas(5))
}

func TestStatusIsWrittenToItsOwnBucket(t *testing.T) {
	w := newWorld(t)
	revision := w.put("web", `{"deploymentName":"web","replicas":2}`)
	w.deploymentWhen("web", "exists", exists)

	w.rollOut("web")

	w.reasonIs("web", revision, meaning.ReasonAvailable)
	status, _ := w.status("web")
	if status.ObservedGeneration != int64(revision) || status.AvailableReplicas != 2 {
		t.Errorf("got %+v, want 2 available replicas for revision %d", status, revision)
	}
	entry, err := w.foos.Get(t.Context(), "default.web")
	if err != nil || entry.Revision() != revision {
		t.Errorf("the Foo was written: got revision %d (error %v)", entry.Revision(), err)
	}
}

func TestFooThatIsGoneTakesAllAlong(t *testing.T) {
	tests := []struct {
		name   string
		remove func(*world) error
	}{
		{"deleted", func(w *world) error { return w.foos.Delete(w.t.Context(), "default.web") }},
		{"purged", func(w *world) error { return w.foos.Purge(w.t.Context(), "default.web") }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			revision := w.put("web", `{"deploymentName":"web"}`)
			w.deploymentWhen("web", "exists", exists)
			w.rollOut("web")
			w.reasonIs("web", revision, meaning.ReasonAvailable)

			must.Do(t, test.remove(w))

			w.deploymentGone("web")
			w.eventually("the status is gone", func() bool {
				_, revision := w.status("web")
				return revision == 0
			})
		})
	}
}

func TestRenamedFooMovesItsDeployment(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"old"}`)
	w.deploymentWhen("old", "exists", exists)
	w.rollOut("old")

	revision := w.put("web", `{"deploymentName":"new"}`)
	w.deploymentWhen("new", "exists", exists)
	w.reasonIs("web", revision, meaning.ReasonProgressing)
	w.deploymentWhen("old", "is still there", exists)
	w.rollOut("new")

	w.deploymentGone("old")
}

func TestDeletedDeploymentComesBack(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web","replicas":2}`)
	w.deploymentWhen("web", "exists", exists)

	must.Do(t, w.fake.KubeTracker.Delete(deploymentResource, namespace, "web"))

	w.deploymentWhen("web", "is back", hasReplicas(2))
}

func TestDefaultsAreForFoosWithoutReplicas(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web"}`)
	w.put("other", `{"deploymentName":"other","replicas":1}`)
	w.deploymentWhen("web", "exists", exists)
	w.deploymentWhen("other", "exists", exists)
	configMaps := w.kube.CoreV1().ConfigMaps(namespace)
	defaults := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: defaultsName, Namespace: namespace},
		Data:       map[string]string{defaultsKey: "4"},
	}
	must.Get(configMaps.Create(t.Context(), defaults, metav1.CreateOptions{}))(t)
	w.deploymentWhen("web", "has 4 replicas", hasReplicas(4))

	defaults.Data[defaultsKey] = "6"
	must.Get(configMaps.Update(t.Context(), defaults, metav1.UpdateOptions{}))(t)
	w.deploymentWhen("web", "has 6 replicas", hasReplicas(6))

	w.catchUp()
	if !hasReplicas(1)(w.deployment("other")) {
		t.Error("the defaults changed a Foo that has replicas of its own")
	}
}

func TestFooThatMakesNoSenseIsReported(t *testing.T) {
	w := newWorld(t)
	revision := must.Get(w.foos.PutString(
		t.Context(), "default.web", `{"spec":{"replicas":"two"}}`))(t)

	w.reasonIs("web", revision, reasonInvalid)
	w.put("web", `{"deploymentName":"web"}`)

	w.deploymentWhen("web", "exists", exists)
}

func TestKeyThatIsNoFooIsIgnored(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{"web", "Default.web", "default.web_1", "default..web"} {
		if validKey(key) {
			t.Errorf("%q is a valid key, want it refused", key)
		}
	}
	must.Get(w.foos.PutString(t.Context(), "no_foo", "{}"))(t)
	w.catchUp()
	if writes := w.writes(); len(writes) != 1 {
		t.Errorf("got the writes %v, want only that of catchUp", writes)
	}
}

func TestForeignDeploymentIsNotTouched(t *testing.T) {
	w := newWorld(t)
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: namespace,
		Labels: map[string]string{meaning.ManagedByLabel: controllerName},
	}}
	must.Do(t, w.fake.KubeTracker.Create(deploymentResource, foreign, namespace))
	before := w.deployment("web")

	revision := w.put("web", `{"deploymentName":"web"}`)
	w.reasonIs("web", revision, meaning.ReasonNameTaken)
	w.delete("web")
	w.catchUp()

	if after := w.deployment("web"); !reflect.DeepEqual(before, after) {
		t.Errorf("the foreign Deployment was changed: got %+v, want %+v", after, before)
	}
}

func TestDeploymentWithoutItsOwnerLabelIsReleased(t *testing.T) {
	w := newWorld(t)
	revision := w.put("web", `{"deploymentName":"web"}`)
	w.deploymentWhen("web", "exists", exists)

	w.changeDeployment("web", func(deployment *appsv1.Deployment) {
		delete(deployment.Labels, meaning.FooUIDLabel)
	})
	w.reasonIs("web", revision, meaning.ReasonNameTaken)
	w.delete("web")
	w.catchUp()

	w.deploymentWhen("web", "is left alone", exists)
}

func TestRemovedOwnerAnnotationIsPutBack(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web"}`)
	w.deploymentWhen("web", "exists", exists)

	w.changeDeployment("web", func(deployment *appsv1.Deployment) { deployment.Annotations = nil })

	w.deploymentWhen("web", "has the annotation", func(deployment *appsv1.Deployment) bool {
		return deployment.Annotations[ownerAnnotation] != ""
	})
}

func TestConflictOfRevisionsIsRetried(t *testing.T) {
	w := newWorld(t)
	revision := w.put("web", `{"deploymentName":"web"}`)
	w.deploymentWhen("web", "exists", exists)
	w.rollOut("web")
	w.reasonIs("web", revision, meaning.ReasonAvailable)
	stale, err := w.controller.foo("default.web")
	must.Do(t, err)

	// Another controller writes.
	theirs := `{"status":{"replicas":9}}`
	must.Get(w.statuses.PutString(t.Context(), "default.web", theirs))(t)
	err = w.controller.writeStatus(t.Context(), stale, v1alpha1.FooStatus{Replicas: 1})
	if !isConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if status, _ := w.status("web"); status.Replicas != 9 {
		t.Errorf("got %+v, want what the other controller wrote", status)
	}

	w.controller.Relist()
	w.reasonIs("web", revision, meaning.ReasonAvailable)
}

func TestConflictOfResourceVersionsIsRetried(t *testing.T) {
	w := newWorld(t)
	revision := w.put("web", `{"deploymentName":"web","replicas":1}`)
	w.reasonIs("web", revision, meaning.ReasonProgressing)
	refused := false
	w.fake.Kube.PrependReactor("patch", "deployments",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			if refused {
				return false, nil, nil
			}
			refused = true
			return true, nil, apierrors.NewConflict(deploymentResource.GroupResource(), "web", nil)
		})

	w.put("web", `{"deploymentName":"web","replicas":5}`)

	w.deploymentWhen("web", "has 5 replicas", hasReplicas(5))
}

func TestDeploymentMadeForAFooThatIsGoneIsDeleted(t *testing.T) {
	w := newWorld(t)
	foo := &v1alpha1.Foo{Spec: v1alpha1.FooSpec{DeploymentName: "late"}}
	foo.Namespace, foo.Name, foo.UID = namespace, "web", w.controller.uid("default.web")
	late := w.controller.desiredDeployment(meaning.NewDeployment(foo), foo)
	late.Labels[meaning.FooUIDLabel] = string(foo.UID)

	must.Do(t, w.fake.KubeTracker.Create(deploymentResource, late, namespace))

	w.deploymentGone("late")
}
