package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// repairDeployment makes the observed Deployment what foo asks for, and then deletes those of former
// names. If repairs do not last, the next one waits, and the status says so.
func (c *Controller) repairDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed *appsv1.Deployment,
) (*v1alpha1.FooStatus, error) {
	desired := withOwnedFields(observed, foo)
	status, wait, err := compare(c.repairs, foo, observed, desired, func() (*appsv1.Deployment, error) {
		return c.kubeClient.AppsV1().Deployments(foo.Namespace).Get(
			ctx, observed.Name, metav1.GetOptions{})
	})
	switch {
	case err != nil:
		return nil, err
	case status == nil && wait == 0:
		return c.updateDeployment(ctx, foo, observed, desired)
	case wait > 0:
		c.enqueueFooAfter(ctx, cache.MetaObjectToName(foo), wait, "repairs do not last")
	}
	if status != nil && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		return status, c.deleteOtherDeployments(ctx, foo)
	}
	return status, nil
}

// updateDeployment makes desired of the observed Deployment. It sends only what differs, so that
// fields stay which this program does not know. The API server refuses the write if somebody else
// wrote in between.
func (c *Controller) updateDeployment(
	ctx context.Context, foo *v1alpha1.Foo, observed, desired *appsv1.Deployment,
) (*v1alpha1.FooStatus, error) {
	updated, err := patch.Send(ctx, c.kubeClient.AppsV1().Deployments(foo.Namespace),
		observed, desired, controllerName)
	if err != nil {
		return c.handleWriteError(ctx, foo, desired, fmt.Errorf("updating Deployment: %w", err))
	}
	key := cache.MetaObjectToName(foo)
	if !c.repairs.Sent(key, foo, observed, updated, withOwnedFields(updated, foo)) {
		c.enqueueFooAfter(ctx, key, 0, "the repair has changed nothing")
		return nil, nil
	}
	c.recordWrite(ctx, foo, updated)
	c.wrote(ctx, foo, updated, "Update", "Updated Deployment", "")
	return nil, nil
}
