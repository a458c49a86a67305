// Package manager runs controllers on controller-runtime.
package manager

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/sample-controller/explore/manager"
)

// Run returns a process with a Manager that knows the kinds of an API, and that has what setup adds.
func Run(addToScheme func(*runtime.Scheme) error, setup func(context.Context, ctrl.Manager) error,
) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		scheme := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), addToScheme(scheme)); err != nil {
			return err
		}
		options := manager.Options()
		options.Scheme = scheme
		m, err := ctrl.NewManager(c, options)
		if err != nil {
			return err
		}
		if err := setup(ctx, m); err != nil {
			return err
		}
		return m.Start(ctx)
	}
}
