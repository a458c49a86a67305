package main

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// apiServer is the judge that knows all the rules: a real API server.
type apiServer struct {
	kube      kubernetes.Interface
	foo       clientset.Interface
	namespace string
}

// connectJudge connects to the API server of kubeconfig and creates a namespace. Each fuzzing
// process has its own namespace, so that all can use the same names.
func connectJudge(f *testing.F, kubeconfig string) apiServer {
	f.Helper()
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	config, err := clientconfig.Load(kubeconfig)
	if err != nil {
		f.Fatal(err)
	}
	clients, err := newClients(config, &options{qps: -1}) // no client-side limit
	if err != nil {
		f.Fatal(err)
	}
	s := apiServer{kube: clients.kube, foo: clients.foo}
	created, err := s.kube.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fuzz-"}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	s.namespace = created.Name
	return s
}

// createFoo really creates foo, because only a stored Foo can get a status.
func (s apiServer) createFoo(t *testing.T, foo *v1alpha1.Foo) *v1alpha1.Foo {
	t.Helper()
	foo.Namespace, foo.UID = s.namespace, ""
	created, err := s.foo.SamplecontrollerV1alpha1().Foos(s.namespace).Create(
		context.Background(), foo, metav1.CreateOptions{})
	if refuses(t, err) {
		return nil
	}
	return created
}

func (s apiServer) deleteFoo(t *testing.T, foo *v1alpha1.Foo) {
	t.Helper()
	err := s.foo.SamplecontrollerV1alpha1().Foos(foo.Namespace).Delete(
		context.Background(), foo.Name, metav1.DeleteOptions{})
	if err != nil {
		t.Error(err)
	}
}

// deployment only makes a dry run, because a Foo may ask for two billion Pods.
func (s apiServer) deployment(
	t *testing.T, deployment *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	t.Helper()
	deployment.ResourceVersion = "" // an earlier dry run may have set it
	created, err := s.kube.AppsV1().Deployments(s.namespace).Create(context.Background(), deployment,
		metav1.CreateOptions{FieldManager: controllerName, DryRun: []string{metav1.DryRunAll}})
	if refuses(t, err) {
		return nil, err
	}
	return created, nil
}

func (s apiServer) status(t *testing.T, foo *v1alpha1.Foo, status v1alpha1.FooStatus) error {
	t.Helper()
	updated := foo.DeepCopy()
	updated.Status = status
	_, err := s.foo.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(
		context.Background(), updated,
		metav1.UpdateOptions{FieldManager: controllerName, DryRun: []string{metav1.DryRunAll}})
	refuses(t, err)
	return err
}

func (s apiServer) event(t *testing.T, event *eventsv1.Event) error {
	t.Helper()
	_, err := s.kube.EventsV1().Events(event.Namespace).Create(
		context.Background(), event, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	refuses(t, err)
	return err
}

// refuses reports whether err says that an object is invalid. It ends t on any other error.
func refuses(t *testing.T, err error) bool {
	t.Helper()
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	return false
}
