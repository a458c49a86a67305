package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// createDeployment creates the Deployment of foo if there is none.
func (c *Controller) createDeployment(ctx context.Context, foo *v1alpha1.Foo) error {
	created, err := c.kubeClient.AppsV1().Deployments(foo.Namespace).Create(
		ctx, newDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating Deployment: %w", err)
	}
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return nil
}
