package main

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/examples/internal/owned"
	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	informers "example.com/sample-controller/examples/website/pkg/generated/informers/externalversions/website/v1alpha1"
)

// children is what Websites own.
type children struct {
	owned.Set[*v1alpha1.Website]
	owners      owned.Owners[*v1alpha1.Website]
	services    *owned.Objects[*v1alpha1.Website, *corev1.Service]
	deployments *owned.Objects[*v1alpha1.Website, *appsv1.Deployment]
}

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
	all := owned.Set[*v1alpha1.Website]{configMaps, services, deployments}
	c.children = children{all, owners, services, deployments}
	return errors.Join(configMapErr, serviceErr, deploymentErr)
}

// observedStatus returns the status of website by what the informers show, with ready as its Ready
// condition. What the status says about the registry stays as it is.
func (c *Controller) observedStatus(
	website *v1alpha1.Website, ready metav1.Condition,
) v1alpha1.WebsiteStatus {
	return meaning.DesiredStatus(website, c.children.services.Get(website),
		c.children.deployments.Get(website), ready)
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
		NameOf:    meaning.NameOf,
		New:       meaning.NewConfigMap,
		SetFields: meaning.SetConfigMapFields,
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
		NameOf:    meaning.NameOf,
		New:       meaning.NewService,
		SetFields: meaning.SetServiceFields,
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
		NameOf:    meaning.NameOf,
		New:       meaning.NewDeployment,
		SetFields: meaning.SetDeploymentFields,
		Ready:     meaning.ReadyCondition,
	}
}
