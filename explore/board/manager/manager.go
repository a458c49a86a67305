// Package manager runs controllers on controller-runtime.
package manager

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/sample-controller/explore/apiserver"
)

// Run returns a process with a Manager that knows the kinds of an API, and that has what setup adds.
func Run(addToScheme func(*runtime.Scheme) error, setup func(context.Context, ctrl.Manager) error,
) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		scheme := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), addToScheme(scheme)); err != nil {
			return err
		}
		m, err := ctrl.NewManager(c, ctrl.Options{
			Scheme:  scheme,
			Metrics: server.Options{BindAddress: "0"},
			// Many Managers run in this program, one after the other.
			Controller: config.Controller{SkipNameValidation: ptr.To(true)},
			// The cache holds a mutex while a mapper asks the API server.
			MapperProvider: apiserver.Mapper,
		})
		if err != nil {
			return err
		}
		if err := setup(ctx, m); err != nil {
			return err
		}
		return m.Start(ctx)
	}
}
