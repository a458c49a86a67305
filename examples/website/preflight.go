package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/clientconfig"
)

// preflightTimeout limits the time that preflight may take.
const preflightTimeout = 10 * time.Second

// preflight finds out whether the API server answers and serves Websites and, if needLease, whether
// it lets this controller read the Lease. Without preflight, that would be noticed late or never.
func (c *clients) preflight(ctx context.Context, needLease bool) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	_, err := c.website.Discovery().ServerResourcesForGroupVersionWithContext(
		ctx, v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server at %s does not serve %s; %s",
			c.host, v1alpha1.Resource("websites"), installHint)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fmt.Errorf("the API server at %s refuses the credentials: %w", c.host, err)
	case err != nil:
		return fmt.Errorf("the API server at %s does not answer: %w; %s", c.host, err,
			clientconfig.Hint())
	}
	if !needLease {
		return nil
	}
	leases := c.leader.Client.Leases(c.leader.Namespace)
	_, err = leases.Get(ctx, c.leader.Name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; grant it, or choose a namespace with "+
			"--leader-elect-resource-namespace", err)
	}
	return nil
}
