package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkControlPlane returns an error unless a Deployment of which no Foo knows becomes available:
// for that, the API server, kube-controller-manager, kube-scheduler and a node have to be alive.
func checkControlPlane() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2**patience)
	defer cancel()
	namespaces := kubeClient.CoreV1().Namespaces()
	namespace, err := namespaces.Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-control-plane-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("the control plane is broken: %w", err)
	}
	defer func() {
		_ = namespaces.Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
	}()
	labels := map[string]string{"app": "nobody"}
	deployments := kubeClient.AppsV1().Deployments(namespace.Name)
	deployment, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "nobody"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "pause", Image: "registry.k8s.io/pause:3.10"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	for err == nil && deployment.Status.AvailableReplicas == 0 && ctx.Err() == nil {
		time.Sleep(interval)
		deployment, err = deployments.Get(ctx, "nobody", metav1.GetOptions{})
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("a Deployment that has nothing to do with any Foo is not available after %v; "+
			"'hack/cluster check NAME' says what is dead in a cluster of this repository", 2**patience)
	}
	if err != nil {
		return fmt.Errorf("the control plane is broken: %w", err)
	}
	return nil
}

// whoIsToBlame is what to think of something that has not happened in time. Once is enough: what is
// dead stays dead.
var whoIsToBlame = sync.OnceValue(func() string {
	begin := time.Now()
	if err := checkControlPlane(); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("the control plane works: a Deployment without a Foo was available after %v; "+
		"if this machine is slow or busy, try again with -patience %v",
		time.Since(begin).Round(10*time.Millisecond), 4**patience)
})
