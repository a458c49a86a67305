package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
)

// slowClient takes three seconds to create a Deployment.
type slowClient struct{ kubernetes.Interface }

func (c slowClient) AppsV1() appsclient.AppsV1Interface { return slowApps{c.Interface.AppsV1()} }

type slowApps struct{ appsclient.AppsV1Interface }

func (c slowApps) Deployments(namespace string) appsclient.DeploymentInterface {
	return slowDeployments{c.AppsV1Interface.Deployments(namespace)}
}

type slowDeployments struct{ appsclient.DeploymentInterface }

func (c slowDeployments) Create(
	ctx context.Context, deployment *appsv1.Deployment, options metav1.CreateOptions,
) (*appsv1.Deployment, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(3 * time.Second):
		return c.DeploymentInterface.Create(ctx, deployment, options)
	}
}

func TestShutdownFinishesWhatHasBegunAndNoMore(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.client = slowClient{h.kube}
		h.start()
		for _, name := range []string{"a", "b", "c"} { // one more than there are workers
			h.createFoo(newFoo(name, name, nil))
		}
		begin := time.Now()
		h.stop()

		if got := time.Since(begin).Round(time.Second); got != 3*time.Second {
			t.Errorf("stopping took %v, want the 3s of the creates under way", got)
		}
		if !h.deploymentExists("a") || !h.deploymentExists("b") || h.deploymentExists("c") {
			t.Error("want Deployments a and b, whose creates had begun, and not c")
		}
		if got := h.events()["DeploymentCreated"]; got != 2 {
			t.Errorf("DeploymentCreated events written before the end: got %d, want 2", got)
		}
	})
}
