package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/sample-controller/docs/tutorial/14-versions/pkg/apis/samplecontroller/v1beta1"
	"example.com/sample-controller/internal/extra/webhook"
)

const (
	webhookFlag   = "webhook-bind-address"
	webhookSecret = controllerName + "-webhook-ca"
	convertPath   = "/convert"

	servedInterval = time.Second
)

// newWebhook returns the server of the conversion webhook. It works in every replica, with and
// without the Lease.
func newWebhook(c *clients, o *options) *webhook.Server {
	mux := http.NewServeMux()
	mux.Handle(convertPath, webhook.Conversion(convert))
	return webhook.New(webhook.Config{
		Kube: c.metrics.Reviews, Dynamic: c.dynamic, Manager: controllerName,
		FlagName: webhookFlag, Address: o.webhookAddress, Hosts: strings.Split(o.webhookHosts, ","),
		Handler: mux, Namespace: c.leader.Namespace, Secret: webhookSecret,
		Targets: []webhook.Target{webhook.CustomResourceDefinition(v1beta1.Resource("foos").String())},
	})
}

// awaitVersion waits until the API server serves the version of Foos that this program works with.
// The webhook must be there before that version is, so the program may start before it.
func (c *clients) awaitVersion(ctx context.Context) error {
	logged := false
	return wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
		_, err := c.foo.Discovery().ServerResourcesForGroupVersionWithContext(
			ctx, v1beta1.GroupVersion.String())
		if apierrors.IsNotFound(err) && !logged {
			klog.FromContext(ctx).Info("Waiting for a version", "version", v1beta1.GroupVersion)
			logged = true
		}
		return !apierrors.IsNotFound(err), nil // preflight reports other errors
	})
}
