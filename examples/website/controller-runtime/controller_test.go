package main

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
)

// laggingClient is a client whose Cache never shows the last write.
type laggingClient struct{ client.Client }

func (laggingClient) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if !(&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
		<-ctx.Done()
		return fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	object.SetName(key.Name)
	return ctx.Err()
}

func TestReadDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		website := &v1alpha1.Website{}
		begin := time.Now()

		err := boundedClient{laggingClient{}}.Get(t.Context(), client.ObjectKey{Name: "web"}, website)

		if err != nil || website.Name != "web" {
			t.Errorf("got Website %q and error %v, want Website \"web\" and no error", website.Name, err)
		}
		if waited := time.Since(begin); waited != maxStaleness {
			t.Errorf("waited %v, want %v", waited, maxStaleness)
		}
	})
}
