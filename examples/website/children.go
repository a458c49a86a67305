package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	informers "example.com/sample-controller/examples/website/pkg/generated/informers/externalversions/website/v1alpha1"
	"example.com/sample-controller/internal/owned"
)

const (
	// managedByLabel is on every child. The informers select by it: an object without this label is
	// not in their caches.
	managedByLabel = "app.kubernetes.io/managed-by"
	// websiteUIDLabel selects the Pods of a Website. A Website that is deleted and created again does
	// not inherit the Pods of the old one.
	websiteUIDLabel = v1alpha1.GroupName + "/website-uid"
	// contentHashAnnotation is on the Pod template. When the content changes, the template does, and
	// the Deployment controller replaces the Pods.
	contentHashAnnotation = v1alpha1.GroupName + "/content-hash"

	contentKey    = "index.html" // in the ConfigMap
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

// addChildren sets what Websites own. The order matters: the Deployment mounts the ConfigMap, so it
// must not be there before that. It comes last, so its condition is that of a Website without
// problems.
func (c *Controller) addChildren(
	client kubernetes.Interface, websites informers.TypedWebsiteInformer,
	factory kubeinformers.SharedInformerFactory,
) error {
	owners := owned.Owners[*v1alpha1.Website]{
		GroupVersionKind: websiteKind,
		Manager:          controllerName,
		Informer:         websites.TypedInformer(),
		IsNew: func(website *v1alpha1.Website) bool {
			return website.Status.ObservedGeneration == 0
		},
		Get: func(ctx context.Context, namespace, name string) (*v1alpha1.Website, error) {
			return c.websiteClient.WebsiteV1alpha1().Websites(namespace).Get(
				ctx, name, metav1.GetOptions{})
		},
		Enqueue:      c.enqueueWebsite,
		EnqueueAfter: c.enqueueWebsiteAfter,
		Recorder:     c.recorder,
	}
	configMaps, configMapErr := owned.New(owners, configMapKind(client, factory))
	services, serviceErr := owned.New(owners, serviceKind(client, factory))
	deployments, deploymentErr := owned.New(owners, deploymentKind(client, factory))
	c.services, c.deployments = services, deployments
	c.children = owned.Set[*v1alpha1.Website]{configMaps, services, deployments}
	return errors.Join(configMapErr, serviceErr, deploymentErr)
}

// configMapKind says what the ConfigMap of a Website is: its content.
func configMapKind(
	client kubernetes.Interface, factory kubeinformers.SharedInformerFactory,
) owned.Kind[*v1alpha1.Website, *corev1.ConfigMap] {
	return owned.Kind[*v1alpha1.Website, *corev1.ConfigMap]{
		Name:     "ConfigMap",
		Informer: factory.Core().V1().ConfigMaps().TypedInformer(),
		Client: func(namespace string) owned.Client[*corev1.ConfigMap] {
			return client.CoreV1().ConfigMaps(namespace)
		},
		NameOf: nameOf,
		New: func(website *v1alpha1.Website) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: newMeta(website)}
		},
		SetFields: setConfigMapFields,
	}
}

// serviceKind says what the Service of a Website is: how its Pods are reached.
func serviceKind(
	client kubernetes.Interface, factory kubeinformers.SharedInformerFactory,
) owned.Kind[*v1alpha1.Website, *corev1.Service] {
	return owned.Kind[*v1alpha1.Website, *corev1.Service]{
		Name:     "Service",
		Informer: factory.Core().V1().Services().TypedInformer(),
		Client: func(namespace string) owned.Client[*corev1.Service] {
			return client.CoreV1().Services(namespace)
		},
		NameOf: nameOf,
		New: func(website *v1alpha1.Website) *corev1.Service {
			return &corev1.Service{ObjectMeta: newMeta(website)}
		},
		SetFields: setServiceFields,
	}
}

// deploymentKind says what the Deployment of a Website is: its Pods.
func deploymentKind(
	client kubernetes.Interface, factory kubeinformers.SharedInformerFactory,
) owned.Kind[*v1alpha1.Website, *appsv1.Deployment] {
	return owned.Kind[*v1alpha1.Website, *appsv1.Deployment]{
		Name:     "Deployment",
		Informer: factory.Apps().V1().Deployments().TypedInformer(),
		Client: func(namespace string) owned.Client[*appsv1.Deployment] {
			return client.AppsV1().Deployments(namespace)
		},
		NameOf: nameOf,
		New: func(website *v1alpha1.Website) *appsv1.Deployment {
			return &appsv1.Deployment{
				ObjectMeta: newMeta(website),
				// The selector is immutable, so it is set here and not in setDeploymentFields.
				Spec: appsv1.DeploymentSpec{
					Selector: &metav1.LabelSelector{MatchLabels: podLabels(website)},
				},
			}
		},
		SetFields: setDeploymentFields,
		Ready:     readyCondition,
	}
}

// nameOf returns the name of each child of website.
func nameOf(website *v1alpha1.Website) string { return website.Name }

func newMeta(website *v1alpha1.Website) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: nameOf(website), Namespace: website.Namespace}
}

// podLabels returns the labels that select the Pods of website, and of no other Website.
func podLabels(website *v1alpha1.Website) map[string]string {
	return map[string]string{websiteUIDLabel: string(website.UID)}
}

func setConfigMapFields(configMap *corev1.ConfigMap, website *v1alpha1.Website) {
	metav1.SetMetaDataLabel(&configMap.ObjectMeta, managedByLabel, controllerName)
	if configMap.Data == nil {
		configMap.Data = map[string]string{}
	}
	configMap.Data[contentKey] = website.Spec.Content
}

func setServiceFields(service *corev1.Service, website *v1alpha1.Website) {
	metav1.SetMetaDataLabel(&service.ObjectMeta, managedByLabel, controllerName)
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

func setDeploymentFields(deployment *appsv1.Deployment, website *v1alpha1.Website) {
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, managedByLabel, controllerName)
	deployment.Spec.Replicas = new(desiredReplicas(website.Spec.Replicas))
	template := &deployment.Spec.Template
	for key, value := range podLabels(website) {
		metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, contentHashAnnotation,
		fmt.Sprintf("%x", sha256.Sum256([]byte(website.Spec.Content))))

	volume := named(&template.Spec.Volumes, contentVolume,
		func(volume *corev1.Volume) *string { return &volume.Name })
	if volume.ConfigMap == nil {
		volume.VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}
	}
	volume.ConfigMap.Name = nameOf(website)
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
