// Package meaning says what a Website means: pure functions from a Website to its children, and
// from the children to its status. They serve a controller however it reads and writes.
package meaning

import (
	"cmp"
	"crypto/sha256"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
)

const (
	// ControllerName is the controller's name wherever it needs one: in the queue's metrics, in
	// Events, as field manager, as value of the managed-by label, and as name of its Lease, if any.
	ControllerName = "website-controller"
	// ManagedByLabel is on every child. The caches select by it: they do not have an object without
	// this label.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// websiteUIDLabel selects the Pods of a Website. A Website that is deleted and created again does
	// not inherit the Pods of the old one.
	websiteUIDLabel = v1alpha1.GroupName + "/website-uid"
	// ContentHashAnnotation is on the Pod template. When the content changes, the template does, and
	// the Deployment controller replaces the Pods.
	ContentHashAnnotation = v1alpha1.GroupName + "/content-hash"

	// ContentKey is the key of the page in the ConfigMap.
	ContentKey    = "index.html"
	contentVolume = "content"
	contentPath   = "/usr/share/nginx/html"

	containerName = "web"
	containerPort = 8080
	portName      = "http"

	// The API server fills in absent fields. But the cache may still hold a Website that was read
	// before the CustomResourceDefinition had that default.
	defaultReplicas = 1
	defaultImage    = "nginxinc/nginx-unprivileged:1.27-alpine"
	defaultPort     = 80
)

// NameOf returns the name of each child of website.
func NameOf(website *v1alpha1.Website) string { return website.Name }

// NewConfigMap returns the ConfigMap of website as it is created, before SetConfigMapFields.
func NewConfigMap(website *v1alpha1.Website) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: newMeta(website)}
}

// NewService returns the Service of website as it is created, before SetServiceFields.
func NewService(website *v1alpha1.Website) *corev1.Service {
	return &corev1.Service{ObjectMeta: newMeta(website)}
}

// NewDeployment returns the Deployment of website as it is created, before SetDeploymentFields.
func NewDeployment(website *v1alpha1.Website) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: newMeta(website),
		// The selector is immutable, so it is set here and not in SetDeploymentFields.
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: podLabels(website)},
		},
	}
}

func newMeta(website *v1alpha1.Website) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: NameOf(website), Namespace: website.Namespace}
}

// podLabels returns the labels that select the Pods of website, and of no other Website.
func podLabels(website *v1alpha1.Website) map[string]string {
	return map[string]string{websiteUIDLabel: string(website.UID)}
}

// SetConfigMapFields sets what the ConfigMap of website is: its content.
func SetConfigMapFields(configMap *corev1.ConfigMap, website *v1alpha1.Website) {
	metav1.SetMetaDataLabel(&configMap.ObjectMeta, ManagedByLabel, ControllerName)
	if configMap.Data == nil {
		configMap.Data = map[string]string{}
	}
	configMap.Data[ContentKey] = website.Spec.Content
}

// SetServiceFields sets what the Service of website is: how its Pods are reached.
func SetServiceFields(service *corev1.Service, website *v1alpha1.Website) {
	metav1.SetMetaDataLabel(&service.ObjectMeta, ManagedByLabel, ControllerName)
	service.Spec.Selector = podLabels(website)
	port := corev1.ServicePort{
		Name: portName, Port: cmp.Or(website.Spec.Port, defaultPort),
		TargetPort: intstr.FromString(portName), Protocol: corev1.ProtocolTCP,
	}
	if len(service.Spec.Ports) > 0 { // what the API server has chosen stays
		port.NodePort = service.Spec.Ports[0].NodePort
	}
	service.Spec.Ports = []corev1.ServicePort{port}
}

// SetDeploymentFields sets what the Deployment of website is: its Pods.
func SetDeploymentFields(deployment *appsv1.Deployment, website *v1alpha1.Website) {
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, ManagedByLabel, ControllerName)
	deployment.Spec.Replicas = new(desiredReplicas(website.Spec.Replicas))
	template := &deployment.Spec.Template
	for key, value := range podLabels(website) {
		metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, ContentHashAnnotation,
		fmt.Sprintf("%x", sha256.Sum256([]byte(website.Spec.Content))))

	volume := named(&template.Spec.Volumes, contentVolume,
		func(volume *corev1.Volume) *string { return &volume.Name })
	if volume.ConfigMap == nil {
		volume.VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}
	}
	volume.ConfigMap.Name = NameOf(website)
	setContainerFields(named(&template.Spec.Containers, containerName,
		func(container *corev1.Container) *string { return &container.Name }), website)
}

func setContainerFields(container *corev1.Container, website *v1alpha1.Website) {
	container.Image = cmp.Or(website.Spec.Image, defaultImage)
	container.Ports = []corev1.ContainerPort{
		{Name: portName, ContainerPort: containerPort, Protocol: corev1.ProtocolTCP},
	}
	container.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	mount := named(&container.VolumeMounts, contentVolume,
		func(mount *corev1.VolumeMount) *string { return &mount.Name })
	mount.MountPath, mount.ReadOnly = contentPath, true
	// The "restricted" Pod Security Standard requires this of a container.
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		RunAsNonRoot:             new(true),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// named returns the element of that name in list, and adds one if there is none.
func named[T any](list *[]T, name string, nameOf func(*T) *string) *T {
	for i := range *list {
		if *nameOf(&(*list)[i]) == name {
			return &(*list)[i]
		}
	}
	var added T
	*nameOf(&added) = name
	*list = append(*list, added)
	return &(*list)[len(*list)-1]
}

// desiredReplicas returns how many Pods the spec.replicas of a Website or of a Deployment asks for.
func desiredReplicas(replicas *int32) int32 {
	if replicas == nil {
		return defaultReplicas
	}
	return *replicas
}
