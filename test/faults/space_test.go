package faults

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/internal/testing/must"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// space is a namespace with the Foos and Deployments of one test.
type space struct {
	t           *testing.T
	namespace   string
	foos        fooclient.FooInterface
	deployments appsclient.DeploymentInterface
}

// newSpace creates a namespace, which is deleted when the test ends.
func newSpace(t *testing.T) space {
	t.Helper()
	namespaces := kubeClient.CoreV1().Namespaces()
	created := must.Get(namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		err := namespaces.Delete(context.Background(), created.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			t.Errorf("deleting the namespace: %v", err)
		}
	})
	return space{
		t: t, namespace: created.Name,
		foos:        fooClient.SamplecontrollerV1alpha1().Foos(created.Name),
		deployments: kubeClient.AppsV1().Deployments(created.Name),
	}
}
