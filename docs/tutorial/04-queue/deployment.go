package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// fooUIDLabel is the selector of a Foo's Pods. A UID is a valid label value whatever the
	// Foo's name, and a Foo that is deleted and made again does not inherit the old one's Pods.
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

// podLabels returns the labels that select the Pods of foo, and no other Foo's.
func podLabels(foo *v1alpha1.Foo) map[string]string {
	return map[string]string{fooUIDLabel: string(foo.UID)}
}
