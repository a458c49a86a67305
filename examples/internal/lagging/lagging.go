// Package lagging has a client of controller-runtime whose Cache never shows the last write.
package lagging

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client has only Get, which names the object, and waits unless it may return an old state.
type Client struct{ client.Client }

// Get implements client.Reader.
func (Client) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if !(&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
		<-ctx.Done()
		return fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	object.SetName(key.Name)
	return ctx.Err()
}
