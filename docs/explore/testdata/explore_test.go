package main

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/apiserver"
)

func TestExplore(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, c *rest.Config) error { return run(ctx, c, options) },
		Scenarios: []explore.Scenario{{Name: "migrate", Steps: []explore.Step{
			explore.Create("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"),
			explore.Patch("configmaps/a", "data: {version: '2'}"),
		}}},
		Settle: 20 * time.Minute, // a Manager waits up to 17 min before it tries something again
	})
}

// options has no servers, for there is no network in a bubble.
var options = ctrl.Options{
	Metrics: server.Options{BindAddress: "0"},
	// Many Managers run in this program, one after the other.
	Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	// The cache holds a mutex while a mapper asks the API server.
	MapperProvider: apiserver.Mapper,
}
