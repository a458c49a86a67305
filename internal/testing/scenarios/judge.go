package scenarios

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// EvilImage is what users put into Deployments. It must not stay there.
const EvilImage = "evil:1"

// mirror begins the images that admission sets.
const mirror = "mirror.example.com/"

const managedByLabel = "app.kubernetes.io/managed-by"

// Always returns why the newest state does not ask for a write, or "".
func Always(write explore.Write, now explore.State) string {
	old, desired := explore.As[appsv1.Deployment](write.Old), explore.As[appsv1.Deployment](write.New)
	switch {
	case write.Resource != "deployments":
		return ""
	case old == nil:
		return unaskedCreation(desired, ownerOf(desired, foosOf(now)))
	case write.Verb == "delete":
		return unaskedDeletion(old, now)
	}
	owner := ownerOf(desired, foosOf(now))
	switch {
	case owner == nil || !metav1.IsControlledBy(old, owner):
		return "it belongs to no Foo, or to another one"
	case !maps.Equal(old.Annotations, desired.Annotations):
		return "others had written what it takes off"
	case unknown(write.New) < unknown(write.Old):
		return "others had written what this version of k8s.io/api does not know"
	}
	return ""
}

// unknown counts the fields that this version of k8s.io/api does not know.
func unknown(u *unstructured.Unstructured) int {
	return strings.Count(fmt.Sprint(u.Object), "ofTomorrow")
}

func unaskedCreation(deployment *appsv1.Deployment, owner *v1alpha1.Foo) string {
	switch {
	case owner == nil:
		return "the Foo is gone"
	case owner.DeletionTimestamp != nil:
		return "the Foo is being deleted"
	case owner.Spec.DeploymentName != deployment.Name:
		return "the Foo has another name for it"
	}
	return ""
}

func unaskedDeletion(deployment *appsv1.Deployment, now explore.State) string {
	owner := ownerOf(deployment, foosOf(now))
	if owner == nil {
		return "it belongs to no Foo"
	}
	if owner.Spec.DeploymentName == deployment.Name {
		return "its Foo asks for it"
	}
	successor := deploymentOf(owner, deploymentsOf(now))
	if successor == nil || !metav1.IsControlledBy(successor, owner) || !IsAvailable(successor) {
		return "the one that replaces it is not available"
	}
	return ""
}

// IsAvailable says of a Deployment what explore.RollOut makes true.
func IsAvailable(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation &&
		d.Status.AvailableReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
}

func foosOf(now explore.State) []*v1alpha1.Foo { return explore.List[v1alpha1.Foo](now, "foos") }

func deploymentsOf(now explore.State) []*appsv1.Deployment {
	return explore.List[appsv1.Deployment](now, "deployments.apps")
}

// ownerOf returns the Foo that controls a Deployment, or nil.
func ownerOf(deployment *appsv1.Deployment, foos []*v1alpha1.Foo) *v1alpha1.Foo {
	for _, foo := range foos {
		if metav1.IsControlledBy(deployment, foo) {
			return foo
		}
	}
	return nil
}

// deploymentOf returns the Deployment that a Foo names, or nil.
func deploymentOf(foo *v1alpha1.Foo, deployments []*appsv1.Deployment) *appsv1.Deployment {
	for _, deployment := range deployments {
		if deployment.Name == foo.Spec.DeploymentName {
			return deployment
		}
	}
	return nil
}

// Eventually returns what is wrong when everything is quiet.
func Eventually(now explore.State) []string { return Problems(foosOf(now), deploymentsOf(now)) }

// Problems returns what is wrong in a namespace when everything is quiet: with each Foo, and with
// Deployments of former names.
func Problems(foos []*v1alpha1.Foo, deployments []*appsv1.Deployment) (problems []string) {
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	for _, foo := range foos {
		check(foo, deploymentOf(foo, deployments), report)
	}
	for _, deployment := range deployments {
		owner := ownerOf(deployment, foos)
		if owner == nil || owner.DeletionTimestamp != nil || deployment.DeletionTimestamp != nil ||
			owner.Spec.DeploymentName == deployment.Name {
			continue
		}
		// A Deployment of a former name stays while the Foo cannot have the new name. Without the
		// label, which nothing restores on it, it stays until the Foo is deleted.
		successor := deploymentOf(owner, deployments)
		if successor != nil && metav1.IsControlledBy(successor, owner) &&
			successor.DeletionTimestamp == nil &&
			deployment.Labels[managedByLabel] != "" {
			report("Deployment %s is left over from Foo %s", deployment.Name, owner.Name)
		}
	}
	return problems
}

// check reports what is wrong with a Foo. Its Deployment may be nil.
func check(foo *v1alpha1.Foo, d *appsv1.Deployment, report func(string, ...any)) {
	held := foo.DeletionTimestamp != nil
	want, status := "False DeploymentNameTaken", foo.Status
	switch {
	case held && (d == nil || !metav1.IsControlledBy(d, foo) || d.Labels[managedByLabel] == ""):
		want, status.Replicas, status.AvailableReplicas = "False FooTerminating", 0, 0
	case d == nil:
		report("Foo %s has no Deployment", foo.Name)
		return
	case metav1.IsControlledBy(d, foo):
		want = "True Available"
		status.Replicas, status.AvailableReplicas = d.Status.Replicas, d.Status.AvailableReplicas
		asked := *d.Spec.Replicas == *foo.Spec.Replicas &&
			d.Spec.Template.Spec.Containers[0].Image != EvilImage
		if d.DeletionTimestamp != nil {
			want = "False DeploymentTerminating"
		} else if !asked && held {
			want = "False FooTerminating"
		} else if !asked {
			report("Foo %s: its Deployment is not what it asks for", foo.Name)
		}
	}
	got := "absent"
	if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); ready != nil {
		got = fmt.Sprint(ready.Status, " ", ready.Reason)
	}
	if got != want {
		report("Foo %s: Ready: got %q, want %q", foo.Name, got, want)
	}
	status.ObservedGeneration = foo.Generation
	if !equality.Semantic.DeepEqual(foo.Status, status) {
		report("Foo %s: got the status %+v, want %+v", foo.Name, foo.Status, status)
	}
}
