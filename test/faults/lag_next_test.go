package faults

import (
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/suite/audit"
)

// leaseName is the name of the Lease that the controllers of Foos contend for.
const leaseName = "sample-controller"

// standBy starts the next controller, which waits for a Lease that somebody else holds. Its caches
// are filled before that.
func (c *lagCase) standBy() {
	c.t.Helper()
	now := metav1.NowMicro()
	_, err := kubeClient.CoordinationV1().Leases(c.namespace).Create(c.t.Context(),
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: leaseName},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: new("somebody"),
				LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now},
		}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	// Nobody takes the Lease from it, so it has time to renew it.
	c.start("--leader-elect", "--leader-elect-lease-duration=10m",
		"--leader-elect-renew-deadline=9m", "--leader-elect-retry-period=500ms")
	c.awaitRequest("looked at the Lease", func(r audit.Request) bool {
		return r.ObjectRef.Resource == "leases"
	})
}

// start starts the next controller.
func (c *lagCase) start(flags ...string) {
	c.t.Helper()
	var err error
	c.second, err = startDirectly(c.server.kubeconfig, c.secondUser, c.namespace,
		fmt.Sprintf("KUBE_FEATURE_WatchListClient=%v", c.way != lists), flags...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		c.second.Kill()
		if c.t.Failed() {
			c.t.Logf("output of the next controller:\n%s", c.second.Output())
		}
	})
}

// startSecond starts the next controller, or makes it the leader, and waits until it works. If it
// streams, it does not work as long as the API server lags.
func (c *lagCase) startSecond() {
	c.t.Helper()
	switch c.way {
	case stands:
		leases := kubeClient.CoordinationV1().Leases(c.namespace)
		if err := leases.Delete(c.t.Context(), leaseName, metav1.DeleteOptions{}); err != nil {
			c.t.Fatal(err)
		}
	case lists:
		c.start()
	case streams:
		c.start()
		c.awaitRequest("asked for a stream", func(r audit.Request) bool {
			return r.IsWatch() && strings.Contains(r.RequestURI, "sendInitialEvents=true")
		})
		return
	}
	err := waitUntil(func() error {
		if !c.works() {
			return errors.New("the next controller does not work yet")
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// works reports whether the workers of the next controller have started.
func (c *lagCase) works() bool { return strings.Contains(c.second.Output(), "Starting the workers") }

// requested returns the requests of the next controller for which selects returns true.
func (c *lagCase) requested(selects func(audit.Request) bool) (found []audit.Request) {
	c.t.Helper()
	requests, _, err := audit.Read(c.server.auditLog, c.begin, c.secondUser)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range requests {
		if selects(r) {
			found = append(found, r)
		}
	}
	return found
}

func (c *lagCase) awaitRequest(what string, selects func(audit.Request) bool) {
	c.t.Helper()
	err := waitUntil(func() error {
		if len(c.requested(selects)) == 0 {
			return fmt.Errorf("the next controller has not %s", what)
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// awaitQuiet waits until the next controller writes nothing for a moment.
func (c *lagCase) awaitQuiet() {
	c.t.Helper()
	for begin := time.Now(); time.Since(begin) < *patience; {
		n := len(c.requested(isAccepted))
		time.Sleep(2 * time.Second) // the moment
		if len(c.requested(isAccepted)) == n {
			return
		}
	}
	c.t.Errorf("the next controller writes for %v: %v", *patience, c.requested(isAccepted))
}
