package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/sample-controller/docs/tutorial/14-versions/pkg/apis/samplecontroller/v1beta1"
	"example.com/sample-controller/docs/tutorial/webhook"
	"example.com/sample-controller/internal/process"
)

// runWithWebhook runs the process, which also serves the conversion webhook: the lists of the
// informers need it. The webhook ends last.
func runWithWebhook(ctx context.Context, p *process.Process, o *options) error {
	var answered <-chan struct{}
	var listens atomic.Bool
	p.Connect = func(ctx, background context.Context) (err error) {
		answered, err = webhook.Serve(background, o.webhookAddress, o.webhookCertDir,
			webhook.Conversion(convert))
		if err != nil {
			return err
		}
		listens.Store(true)
		return awaitVersion(ctx, p.Clients)
	}
	p.Ready = func(*http.Request) error {
		if !listens.Load() {
			return errors.New("the webhook does not listen yet")
		}
		return nil
	}
	err := p.Run(ctx)
	if answered != nil && err == nil { // a leader without its Lease must end at once
		<-answered
	}
	return err
}

// awaitVersion waits until the API server serves the version of Foos that this program works with.
// The webhook must be there before that version is, so the program may start before it.
func awaitVersion(ctx context.Context, c *process.Clients) error {
	logged := false
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		_, err := c.Metrics.Reviews.Discovery().ServerResourcesForGroupVersionWithContext(
			ctx, v1beta1.GroupVersion.String())
		if apierrors.IsNotFound(err) && !logged {
			klog.FromContext(ctx).Info("Waiting for a version", "version", v1beta1.GroupVersion)
			logged = true
		}
		return !apierrors.IsNotFound(err), nil // Preflight reports other errors
	})
}

// setOwnerVersion makes the owner reference of deployment name foo in this program's version. The
// garbage collector looks for an owner in the version that the reference names. If no API server
// serves that version any more, the Deployment would stay when foo is deleted.
func setOwnerVersion(deployment *appsv1.Deployment, foo *v1beta1.Foo) {
	for i := range deployment.OwnerReferences {
		if owner := &deployment.OwnerReferences[i]; owner.UID == foo.UID {
			owner.APIVersion = v1beta1.GroupVersion.String()
		}
	}
}
