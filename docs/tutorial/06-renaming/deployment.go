package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// controllerName is this controller's name wherever it needs one, for example in the queue's
	// metrics and as field manager.
	controllerName = "sample-controller"
	// managedByLabel is on every Deployment that this controller creates, so that people find them.
	managedByLabel = "app.kubernetes.io/managed-by"
	// fooUIDLabel selects the Pods of a Foo. A Foo's name may be too long for a label, a UID never
	// is. And a Foo that is deleted and created again does not inherit the Pods of the old one.
	fooUIDLabel = v1alpha1.GroupName + "/foo-uid"

	containerName  = "web"
	containerImage = "nginxinc/nginx-unprivileged:1.27-alpine"
	containerPort  = 8080
)

var fooKind = schema.GroupVersionKind{
	Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "Foo",
}

// newDeployment returns the Deployment to create for foo.
func newDeployment(foo *v1alpha1.Foo) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            foo.Spec.DeploymentName,
			Namespace:       foo.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, fooKind)},
		},
		// The selector is immutable, so it is set here and not in setOwnedFields.
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: podLabels(foo)}},
	}
	setOwnedFields(deployment, foo)
	return deployment
}

// setOwnedFields sets the fields of deployment that this controller decides on, and no others. What
// the API server fills in, and what other people and programs write, stays as it is.
func setOwnedFields(deployment *appsv1.Deployment, foo *v1alpha1.Foo) {
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, managedByLabel, controllerName)
	deployment.Spec.Replicas = new(desiredReplicas(foo.Spec.Replicas))
	template := &deployment.Spec.Template
	for key, value := range podLabels(foo) {
		metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
	}
	container := containerNamed(&template.Spec, containerName)
	container.Image = containerImage
	container.Ports = []corev1.ContainerPort{
		{Name: "http", ContainerPort: containerPort, Protocol: corev1.ProtocolTCP},
	}
	container.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	// The "restricted" Pod Security Standard requires this of a container.
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		RunAsNonRoot:             new(true),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// containerNamed returns the container of that name in spec, and adds one if there is none.
func containerNamed(spec *corev1.PodSpec, name string) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return &spec.Containers[i]
		}
	}
	spec.Containers = append(spec.Containers, corev1.Container{Name: name})
	return &spec.Containers[len(spec.Containers)-1]
}

// podLabels returns the labels that select the Pods of foo, and of no other Foo.
func podLabels(foo *v1alpha1.Foo) map[string]string {
	return map[string]string{fooUIDLabel: string(foo.UID)}
}

// rolledOut reports whether the Deployment controller has seen the newest spec, and exactly the
// desired number of replicas exists, all updated and available. `kubectl rollout status` accepts
// more replicas. But a Foo that was scaled down is not ready until the surplus is gone.
func rolledOut(deployment *appsv1.Deployment) bool {
	status, desired := deployment.Status, desiredReplicas(deployment.Spec.Replicas)
	return status.ObservedGeneration >= deployment.Generation &&
		status.Replicas == desired &&
		status.UpdatedReplicas == desired &&
		status.AvailableReplicas == desired
}

// desiredReplicas returns how many Pods the spec.replicas of a Foo or of a Deployment asks for. The
// API server fills in an absent count. But the cache may still hold a Foo that was read before the
// CustomResourceDefinition had that default.
func desiredReplicas(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
