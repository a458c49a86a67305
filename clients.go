package main

import (
	"fmt"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/process"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

const installHint = "install the CustomResourceDefinition: " +
	"kubectl apply -f artifacts/examples/crd.yaml"

// clients holds the clients for the API server.
type clients struct {
	*process.Clients // those of every controller
	foo              clientset.Interface
}

// newClients returns clients for a cluster. It makes no request.
func newClients(config *rest.Config, o *options) (*clients, error) {
	c, err := process.NewClients(config, &o.Options)
	if err != nil {
		return nil, err
	}
	foo, err := clientset.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for Foos: %w", err)
	}
	return &clients{Clients: c, foo: foo}, nil
}
