package conformance

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// interval is the time between two checks of a condition.
const interval = 30 * time.Millisecond

// eventually waits until check returns true. If that takes too long, the failure names what did not
// happen, what was seen last, and what to try.
func eventually(t *testing.T, what string, check func() (ok bool, seen string)) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(interval) {
		ok, seen := check()
		if ok {
			return
		}
		if err := checkShared(); err != nil {
			t.Fatal(err)
		}
		if why := verdict.Load(); why != nil {
			t.Fatal(*why) // it would be useless to wait longer
		}
		if time.Since(begin) > *patience {
			t.Fatalf("waited %v, but this did not happen: %s\nlast seen: %s\n%s",
				*patience, what, seen, whoIsToBlame())
		}
	}
}

// namespace is the namespace of one test, with clients for it.
type namespace struct {
	t           *testing.T
	name        string
	foos        fooclient.FooInterface
	deployments appsclient.DeploymentInterface
}

// parallelNamespace lets t run in parallel, in its own namespace, with the controller that all
// parallel tests share.
func parallelNamespace(t *testing.T) *namespace {
	t.Helper()
	t.Parallel()
	if err := startShared(); err != nil {
		t.Fatal(err)
	}
	return newNamespace(t)
}

// newNamespace returns a new namespace, which is deleted when t ends.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	name = regexp.MustCompile("[^a-z0-9]+").ReplaceAllString(name, "-")
	namespaces := kubeClient.CoreV1().Namespaces()
	created, err := namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 50)] + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := namespaces.Delete(context.Background(), created.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting the namespace: %v", err)
		}
	})
	return &namespace{
		t: t, name: created.Name,
		foos:        fooClient.SamplecontrollerV1alpha1().Foos(created.Name),
		deployments: kubeClient.AppsV1().Deployments(created.Name),
	}
}

// kubectl runs kubectl in the namespace. An error fails the test.
func (n *namespace) kubectl(args ...string) string {
	n.t.Helper()
	output, err := kubectl(n.t, n.name, "", args...)
	if err != nil {
		n.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, output)
	}
	return output
}

// newFoo returns a Foo with these names, which asks for that many replicas.
func newFoo(name, deploymentName string, replicas int32) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: &replicas},
	}
}

func (n *namespace) createFoo(foo *v1alpha1.Foo) *v1alpha1.Foo {
	n.t.Helper()
	created, err := n.foos.Create(n.t.Context(), foo, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return created
}

// createReadyFoo creates foo and waits until it is Ready.
func (n *namespace) createReadyFoo(foo *v1alpha1.Foo) *v1alpha1.Foo {
	n.t.Helper()
	n.createFoo(foo)
	return n.fooWhen(foo.Name, "is Ready", isReady)
}

// changeFoo changes a Foo as a user would, and tries again after a conflict.
func (n *namespace) changeFoo(name string, change func(*v1alpha1.Foo)) {
	n.t.Helper()
	n.retryOnConflict("Foo "+name+" is changed", func() error {
		foo, err := n.foos.Get(n.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(foo)
		_, err = n.foos.Update(n.t.Context(), foo, metav1.UpdateOptions{})
		return err
	})
}

// changeDeployment does the same with a Deployment.
func (n *namespace) changeDeployment(name string, change func(*appsv1.Deployment)) {
	n.t.Helper()
	n.retryOnConflict("Deployment "+name+" is changed", func() error {
		deployment, err := n.deployments.Get(n.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(deployment)
		_, err = n.deployments.Update(n.t.Context(), deployment, metav1.UpdateOptions{})
		return err
	})
}

// retryOnConflict calls readAndWrite until it returns no conflict.
func (n *namespace) retryOnConflict(what string, readAndWrite func() error) {
	n.t.Helper()
	eventually(n.t, what, func() (bool, string) {
		err := readAndWrite()
		if err != nil && !apierrors.IsConflict(err) {
			n.t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// fooWhen waits until check returns true for the Foo, and returns the Foo.
func (n *namespace) fooWhen(
	name, expected string, check func(*v1alpha1.Foo) bool,
) (foo *v1alpha1.Foo) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("Foo %q %s", name, expected), func() (bool, string) {
		var err error
		if foo, err = n.foos.Get(n.t.Context(), name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		return check(foo), describeFoo(foo)
	})
	return foo
}

// deploymentWhen waits until check returns true for the Deployment, and returns the Deployment.
func (n *namespace) deploymentWhen(
	name, expected string, check func(*appsv1.Deployment) bool,
) (deployment *appsv1.Deployment) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("Deployment %q %s", name, expected), func() (bool, string) {
		var err error
		deployment, err = n.deployments.Get(n.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return check(deployment), describeDeployment(deployment)
	})
	return deployment
}

// deploymentGone waits until there is no Deployment of that name.
func (n *namespace) deploymentGone(name string) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("Deployment %q is gone", name), func() (bool, string) {
		deployment, err := n.deployments.Get(n.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), describeDeployment(deployment)
	})
}

// catchUp creates a Foo and waits until it is Ready. By then, the controller has seen everything
// that happened before, and had time to react. catchUp returns the name of the Foo's Deployment.
func (n *namespace) catchUp() string {
	n.t.Helper()
	foo := newFoo("", "", 0) // without Pods, which a quota may forbid
	foo.Name = fmt.Sprintf("catch-up-%d", time.Now().UnixNano())
	foo.Spec.DeploymentName = foo.Name
	n.createReadyFoo(foo)
	return foo.Name
}

func exists(*appsv1.Deployment) bool { return true }

// isReady reports whether the status is about the newest spec and says Ready.
func isReady(foo *v1alpha1.Foo) bool {
	ready := readyCondition(foo)
	return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == foo.Generation &&
		foo.Status.ObservedGeneration == foo.Generation
}

// notReadyBecause returns a check for Ready=False with that reason, about the newest spec.
func notReadyBecause(reason string) func(*v1alpha1.Foo) bool {
	return func(foo *v1alpha1.Foo) bool {
		ready := readyCondition(foo)
		return ready.Status == metav1.ConditionFalse && ready.Reason == reason &&
			ready.ObservedGeneration == foo.Generation
	}
}

// readyCondition returns the Ready condition of foo, or an empty condition.
func readyCondition(foo *v1alpha1.Foo) metav1.Condition {
	if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// describeFoo returns what a user would look at first.
func describeFoo(foo *v1alpha1.Foo) string {
	ready := readyCondition(foo)
	return fmt.Sprintf("generation %d; status of generation %d: %d replicas, %d available, "+
		"Ready is %q, %s: %s", foo.Generation, foo.Status.ObservedGeneration, foo.Status.Replicas,
		foo.Status.AvailableReplicas, ready.Status, ready.Reason, ready.Message)
}

// describeDeployment returns the parts of a Deployment that these tests check.
func describeDeployment(deployment *appsv1.Deployment) string {
	var owners, images []string
	for _, owner := range deployment.OwnerReferences {
		owners = append(owners, owner.Kind+" "+owner.Name)
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	replicas := int32(-1)
	if deployment.Spec.Replicas != nil {
		replicas = *deployment.Spec.Replicas
	}
	status := deployment.Status
	text := fmt.Sprintf("%d replicas of %q, owners %q, labels %v, annotations %v, generation %d, UID %s"+
		"; status of generation %d: %d replicas, %d updated, %d available",
		replicas, images, owners, deployment.Labels, deployment.Annotations, deployment.Generation,
		deployment.UID, status.ObservedGeneration, status.Replicas, status.UpdatedReplicas,
		status.AvailableReplicas)
	if deployment.DeletionTimestamp != nil {
		text += "; it is being deleted"
	}
	return text
}
