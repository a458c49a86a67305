package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// controllerName is this controller's name wherever it needs one, for example in the queue's
	// metrics and as field manager.
	controllerName = "sample-controller"
	// fooUIDLabel selects the Pods of a Foo. A Foo's name may be too long for a label, a UID never
	// is. And a Foo that is deleted and created again does not inherit the Pods of the old one.
	fooUIDLabel = v1alpha1.GroupName + "/foo-uid"

	containerName  = "web"
	containerImage = "nginxinc/nginx-unprivileged:1.27-alpine"
)

// newDeployment returns the Deployment to create for foo.
func newDeployment(foo *v1alpha1.Foo) *appsv1.Deployment {
	labels := podLabels(foo)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: foo.Spec.DeploymentName, Namespace: foo.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: foo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: containerName, Image: containerImage}},
				},
			},
		},
	}
}

// podLabels returns the labels that select the Pods of foo, and of no other Foo.
func podLabels(foo *v1alpha1.Foo) map[string]string {
	return map[string]string{fooUIDLabel: string(foo.UID)}
}
