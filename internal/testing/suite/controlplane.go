package suite

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// preparation is how long the control plane may take for work in which the controller has no part.
func preparation() time.Duration { return max(2*Patience, time.Minute) }

// checkControlPlane returns an error unless a Deployment of nobody becomes available. For that,
// the API server, kube-controller-manager, kube-scheduler and a node have to be alive.
func checkControlPlane() error {
	ctx, cancel := context.WithTimeout(context.Background(), preparation())
	defer cancel()
	namespaces := Kube.CoreV1().Namespaces()
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
	deployments := Kube.AppsV1().Deployments(namespace.Name)
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
	if err != nil {
		return fmt.Errorf("the control plane is broken: %w", err)
	}
	for deployment.Status.AvailableReplicas == 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("the control plane is broken: a Deployment without a %s is not "+
				"available after %v (last error: %v); if hack/cluster started this cluster, "+
				"'hack/cluster check NAME' says what is dead", config.Kind, preparation(), err)
		}
		time.Sleep(interval)
		var found *appsv1.Deployment
		if found, err = deployments.Get(ctx, "nobody", metav1.GetOptions{}); err == nil {
			deployment = found
		}
	}
	return nil
}

// verdict says why the control plane is broken, once that is known: what is dead stays dead.
var verdict atomic.Pointer[string]

// whoIsToBlame says whether the control plane or the controller is the likelier cause of a timeout.
func whoIsToBlame() string {
	begin := time.Now()
	if err := checkControlPlane(); err != nil {
		verdict.Store(new(err.Error()))
		return err.Error()
	}
	return fmt.Sprintf("the control plane works: a Deployment without a %s was available after %v\n"+
		"look at the controller; if this machine is slow or busy, try again with -patience %v "+
		"(make test: PATIENCE=%v)",
		config.Kind, time.Since(begin).Round(10*time.Millisecond), 4*Patience, 4*Patience)
}
