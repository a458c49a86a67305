package main

import (
	"errors"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// checkHeld reports what is wrong with the status of a Foo that a finalizer holds. deployment may
// be nil.
func (w *world) checkHeld(
	foo *v1alpha1.Foo, deployment *appsv1.Deployment, report func(string, ...any),
) {
	replicas, want := int32(0), "False FooTerminating"
	// Without the label, the controller does not see the Deployment.
	if deployment != nil && metav1.IsControlledBy(deployment, foo) && deployment.Labels != nil {
		replicas = deployment.Status.Replicas
		image := deployment.Spec.Template.Spec.Containers[0].Image
		asked := int32(1)
		if foo.Spec.Replicas != nil {
			asked = *foo.Spec.Replicas
		}
		if *deployment.Spec.Replicas == asked && image != "evil:1" {
			want = "True Available"
		}
	}
	if got := ready(foo); got != want {
		report("Foo %s, held by a finalizer: Ready: got %q, want %q", foo.Name, got, want)
	}
	if foo.Status.Replicas != replicas || foo.Status.ObservedGeneration != foo.Generation {
		report("Foo %s, held by a finalizer: got %d replicas and observedGeneration %d, want %d and %d",
			foo.Name, foo.Status.Replicas, foo.Status.ObservedGeneration, replicas, foo.Generation)
	}
}

// ready returns the status and the reason of the Ready condition of a Foo.
func ready(foo *v1alpha1.Foo) string {
	ready := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "absent"
	}
	return string(ready.Status) + " " + ready.Reason
}

// problems returns what is wrong after the world has settled, and after more time without a reason
// to write.
func (w *world) problems(idle time.Duration) (problems []string) {
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	for _, foo := range w.foos() {
		deployment := w.deployment(foo.Spec.DeploymentName)
		if foo.DeletionTimestamp != nil {
			w.checkHeld(foo, deployment, report)
			continue
		}
		if deployment == nil {
			report("Foo %s has no Deployment", foo.Name)
			continue
		}
		want := "False DeploymentNameTaken"
		if metav1.IsControlledBy(deployment, foo) {
			want = "True Available"
			if foo.Status.Replicas != deployment.Status.Replicas {
				report("Foo %s: replicas in the status: got %d, want %d", foo.Name,
					foo.Status.Replicas, deployment.Status.Replicas)
			}
			want := int32(1)
			if foo.Spec.Replicas != nil {
				want = *foo.Spec.Replicas
			}
			if got := *deployment.Spec.Replicas; got != want {
				report("Foo %s: replicas of its Deployment: got %d, want %d", foo.Name, got, want)
			}
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got == "evil:1" {
				report("Foo %s: its Deployment still has the image %s", foo.Name, got)
			}
		}
		if got := ready(foo); got != want {
			report("Foo %s: Ready: got %q, want %q", foo.Name, got, want)
		}
		if foo.Status.ObservedGeneration != foo.Generation {
			report("Foo %s: observedGeneration: got %d, want %d", foo.Name,
				foo.Status.ObservedGeneration, foo.Generation)
		}
	}
	for _, deployment := range w.deployments() {
		if version, ok := w.foreign[deployment.Name]; ok && version != deployment.ResourceVersion {
			report("the foreign Deployment %s was changed", deployment.Name)
		}
		owner := w.ownerOf(&deployment)
		if owner == nil || owner.DeletionTimestamp != nil ||
			owner.Spec.DeploymentName == deployment.Name {
			continue
		}
		// A Deployment of a former name stays while the Foo cannot have the new name. Without the
		// label, which nothing restores on it, it stays until the Foo is deleted.
		named := w.deployment(owner.Spec.DeploymentName)
		if named != nil && metav1.IsControlledBy(named, owner) && deployment.Labels != nil {
			report("Deployment %s is left over from Foo %s", deployment.Name, owner.Name)
		}
	}
	before := w.versions()
	time.Sleep(idle)
	if after := w.versions(); after != before {
		report("writes in %v without a reason: got %d, want 0", idle, after-before)
	}
	return problems
}

// refusal returns the error with which the API server refuses a write of a Deployment, or nil.
func (w *world) refusal(action clienttesting.Action) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if action.GetResource() != deploymentsGVR || action.GetVerb() == "delete" {
		return nil
	}
	refused := apierrors.NewForbidden(deploymentsResource, "", errors.New("refused by a policy"))
	switch {
	case w.going && action.GetVerb() == "create":
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{
			{Type: corev1.NamespaceTerminatingCause},
		}
		return refused
	case w.refused:
		return refused
	}
	return nil
}

// accept performs a write, counts it, and notes it if the newest state does not ask for it.
func (w *world) accept(action clienttesting.Action, do func() error) error {
	reason := w.unaskedFor(action)
	err := do()
	if err != nil || action.GetResource() != deploymentsGVR {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch action.GetVerb() {
	case "create":
		w.created++
	case "delete":
		w.deleted++
	}
	if reason != "" {
		w.unasked = append(w.unasked, fmt.Sprintf("%s: %s", describe(action).about(), reason))
	}
	return nil
}

// unaskedFor returns why the newest state does not ask for a write of a Deployment, or "".
func (w *world) unaskedFor(action clienttesting.Action) string {
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		if deployment, ok := action.Object.(*appsv1.Deployment); ok {
			return w.unaskedCreate(deployment)
		}
	case clienttesting.UpdateActionImpl:
		if deployment, ok := action.Object.(*appsv1.Deployment); ok {
			return w.unaskedUpdate(deployment)
		}
	case clienttesting.DeleteActionImpl:
		return w.unaskedDelete(w.deployment(action.Name))
	}
	return ""
}

func (w *world) unaskedCreate(deployment *appsv1.Deployment) string {
	switch owner := w.ownerOf(deployment); {
	case owner == nil:
		return "the Foo is gone"
	case owner.DeletionTimestamp != nil:
		return "the Foo is being deleted"
	case owner.Spec.DeploymentName != deployment.Name:
		return "the Foo has another name for it"
	}
	return ""
}

func (w *world) unaskedUpdate(desired *appsv1.Deployment) string {
	live := w.deployment(desired.Name)
	switch owner := w.ownerOf(desired); {
	case live == nil:
		return ""
	case owner == nil || !metav1.IsControlledBy(live, owner):
		return "it belongs to no Foo, or to another one"
	case !maps.Equal(live.Annotations, desired.Annotations):
		return "it undoes what others wrote"
	}
	return ""
}

func (w *world) unaskedDelete(deployment *appsv1.Deployment) string {
	if deployment == nil {
		return ""
	}
	owner := w.ownerOf(deployment)
	if owner == nil {
		return "it belongs to no Foo"
	}
	if owner.Spec.DeploymentName == deployment.Name {
		return "its Foo asks for it"
	}
	named := w.deployment(owner.Spec.DeploymentName)
	if named == nil || !metav1.IsControlledBy(named, owner) || !rolledOut(named) {
		return "the one that replaces it is not available"
	}
	return ""
}
