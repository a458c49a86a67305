// Package lab is for the tests of the chapters. They run the programs on fake clients, and in a
// bubble, whose clock stands still while any goroutine can run. The harness of the finished
// controller, controller_harness_test.go, follows the same idea.
package lab

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/docs/foos"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// Namespace is where everything happens.
const Namespace = "default"

// Lab is the environment of a program. Its methods do what users do, and then wait until the
// program has nothing more to do.
type Lab struct {
	*fakes.Server
	Kube   kubernetes.Interface // of the program
	Foo    clientset.Interface  // of the program
	T      *testing.T           // of the bubble
	Errors *atomic.Int32        // reported by the program so far
}

// Explore explores program. docs/explore.md must say what that finds, in the row of the chapter.
func Explore(t *testing.T, page string, program Program) {
	t.Helper()
	foos.Expect(t, "../../..", page, func(ctx context.Context, config *rest.Config) error {
		return program(ctx, kubernetes.NewForConfigOrDie(config), clientset.NewForConfigOrDie(config))
	})
}

// Run runs test in a new lab.
func Run(t *testing.T, test func(*testing.T, *Lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := fakes.New(t, crd)
		test(t, &Lab{Server: s, Kube: kubernetes.NewForConfigOrDie(s.Config),
			Foo: clientset.NewForConfigOrDie(s.Config), T: t, Errors: fakes.CountErrors(t)})
	})
}

// Program is a program of a chapter, without what finds the cluster.
type Program = func(context.Context, kubernetes.Interface, clientset.Interface) error

// Work returns a program that works as run does in the chapters, with two workers.
func Work[C interface{ Run(context.Context, int) }](newController func(
	kubernetes.Interface, clientset.Interface, informers.TypedFooInformer,
	appsinformers.TypedDeploymentInformer,
) (C, error)) Program {
	return func(ctx context.Context, kube kubernetes.Interface, foo clientset.Interface) error {
		kubeFactory := kubeinformers.NewSharedInformerFactory(kube, 0)
		fooFactory := fooinformers.NewSharedInformerFactory(foo, 0)
		controller, err := newController(kube, foo,
			fooFactory.Samplecontroller().V1alpha1().Foos(), kubeFactory.Apps().V1().Deployments())
		if err != nil {
			return err
		}
		kubeFactory.StartWithContext(ctx)
		fooFactory.StartWithContext(ctx)
		controller.Run(ctx, 2)
		kubeFactory.Shutdown()
		fooFactory.Shutdown()
		return nil
	}
}

// StartProgram runs program until the test ends.
func (l *Lab) StartProgram(program Program) {
	l.Start(func(ctx context.Context) {
		if err := program(ctx, l.Kube, l.Foo); err != nil {
			l.T.Error(err)
		}
	})
}

// Start runs program until the test ends, or until the returned function is called.
func (l *Lab) Start(program func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		program(ctx)
	}()
	stop = func() {
		cancel()
		<-stopped
	}
	l.T.Cleanup(stop)
	synctest.Wait()
	return stop
}

// Fail makes the next requests of that verb and resource fail.
func (l *Lab) Fail(verb, resource string, times int) {
	l.Server.Fail(verb, resource, times, apierrors.NewInternalError(errors.New("made to fail")))
}

// Requests returns how many requests of that verb and resource the program has made. The verb "*"
// stands for all writes, and the resource "*" for all resources.
func (l *Lab) Requests(verb, resource string) int { return len(l.Server.Requests(verb, resource)) }

func (l *Lab) foos() fooclient.FooInterface {
	return clientset.NewForConfigOrDie(l.Others).SamplecontrollerV1alpha1().Foos(Namespace)
}

func (l *Lab) deployments() appsclient.DeploymentInterface {
	return kubernetes.NewForConfigOrDie(l.Others).AppsV1().Deployments(Namespace)
}

// CreateFoo creates a Foo.
func (l *Lab) CreateFoo(name, deploymentName string, replicas int32) {
	l.T.Helper()
	_, err := l.foos().Create(context.Background(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: &replicas},
	}, metav1.CreateOptions{})
	l.must(err)
}

// ChangeFoo changes a Foo.
func (l *Lab) ChangeFoo(name string, change func(*v1alpha1.Foo)) {
	l.T.Helper()
	foo := l.GetFoo(name)
	change(foo)
	_, err := l.foos().Update(context.Background(), foo, metav1.UpdateOptions{})
	l.must(err)
}

// DeleteFoo deletes a Foo.
func (l *Lab) DeleteFoo(name string) {
	l.T.Helper()
	l.must(l.foos().Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// GetFoo returns a Foo, which must exist.
func (l *Lab) GetFoo(name string) *v1alpha1.Foo {
	l.T.Helper()
	return must.Get(l.foos().Get(context.Background(), name, metav1.GetOptions{}))(l.T)
}

// Ready returns the status and the reason of the Ready condition of the Foo example-foo.
func (l *Lab) Ready() string {
	ready := meta.FindStatusCondition(l.GetFoo("example-foo").Status.Conditions, "Ready")
	if ready == nil {
		return "absent"
	}
	return string(ready.Status) + " " + ready.Reason
}

// CreateDeployment creates a Deployment that has nothing to do with Foos.
func (l *Lab) CreateDeployment(name string, replicas int32) {
	l.T.Helper()
	_, err := l.deployments().Create(context.Background(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}, metav1.CreateOptions{})
	l.must(err)
}

// ChangeDeployment changes a Deployment.
func (l *Lab) ChangeDeployment(name string, change func(*appsv1.Deployment)) {
	l.T.Helper()
	deployment := must.Get(l.deployments().Get(context.Background(), name, metav1.GetOptions{}))(l.T)
	change(deployment)
	_, err := l.deployments().Update(context.Background(), deployment, metav1.UpdateOptions{})
	l.must(err)
}

// RollOut makes all Pods of a Deployment available, as the Deployment controller would.
func (l *Lab) RollOut(name string) {
	l.T.Helper()
	deployment := l.GetDeployment(name)
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
	}
	_, err := l.deployments().UpdateStatus(context.Background(), deployment, metav1.UpdateOptions{})
	l.must(err)
}

// DeleteDeployment deletes a Deployment.
func (l *Lab) DeleteDeployment(name string) {
	l.T.Helper()
	l.must(l.deployments().Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// GetDeployment returns a Deployment, or nil if there is none.
func (l *Lab) GetDeployment(name string) *appsv1.Deployment {
	l.T.Helper()
	deployment, err := l.deployments().Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must.Do(l.T, err)
	return deployment
}

// crd is where the tests of the chapters find the CustomResourceDefinition.
const crd = "../../../artifacts/examples/crd.yaml"

func (l *Lab) must(err error) {
	l.T.Helper()
	must.Do(l.T, err)
	synctest.Wait()
}
