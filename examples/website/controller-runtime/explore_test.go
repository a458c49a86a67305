package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/websites"
	"example.com/sample-controller/explore"
)

// TestExplore tries every fault at every place, as that of examples/website does.
func TestExplore(t *testing.T) {
	ctrl.SetLogger(klog.Logger{})
	explore.Test(t, websites.Controller("../artifacts/crd.yaml",
		func(ctx context.Context, config *rest.Config, registry http.RoundTripper) error {
			o := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
			o.Controller.SkipNameValidation = new(true) // there is one after the other
			if err := complete(&o, ""); err != nil {
				return err
			}
			client, err := outside.NewClient("http://registry", registry)
			if err != nil {
				return err
			}
			r := &Reconciler{registry: client, resync: 10 * time.Minute}
			return runManager(ctx, config, o, r, 2)
		}))
}
