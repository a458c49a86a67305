package main

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/examples/website/outside"
	clientset "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned"
	"example.com/sample-controller/internal/process"
)

const installHint = "install the CustomResourceDefinition: " +
	"kubectl apply -f examples/website/artifacts/crd.yaml"

// clients holds the clients for the API server, and that for the registry.
type clients struct {
	*process.Clients // those of every controller
	website          clientset.Interface
	registry         *outside.Client
}

// newClients returns clients for a cluster, and for the registry. It makes no request.
func newClients(config *rest.Config, o *options, registry http.RoundTripper) (*clients, error) {
	shared, err := process.NewClients(config, &o.Options)
	if err != nil {
		return nil, err
	}
	c := &clients{Clients: shared}
	if c.website, err = clientset.NewForConfig(c.Config); err != nil {
		return nil, fmt.Errorf("creating the client for Websites: %w", err)
	}
	if c.registry, err = outside.NewClient(o.registry, registry); err != nil {
		return nil, fmt.Errorf("reading --registry: %w", err)
	}
	return c, nil
}
