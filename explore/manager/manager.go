// Package manager has what a Manager of controller-runtime needs in a test with explore.
package manager

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/sample-controller/explore/apiserver"
)

// Options are the options of a Manager that package explore runs: it has no servers, because there is
// no network in a bubble. Set others, such as Scheme, in what it returns.
func Options() ctrl.Options {
	return ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		// Many Managers run in this program, one after the other.
		Controller: config.Controller{SkipNameValidation: new(true)},
		// The cache holds a mutex while a mapper asks the API server.
		MapperProvider: apiserver.Mapper,
	}
}
