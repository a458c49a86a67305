package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/suite/audit"
	"example.com/sample-controller/internal/suite/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// lagCase is a scenario in whose course a controller is killed. The next one works with an API
// server that shows the state after some of the steps, while all of them have happened.
type lagCase struct {
	*history
	lagScenario
	server *laggingServer
	after  int // how many steps the API server shows
	way    string

	first, second *process.Process
	secondUser    string
	begin         audit.Mark       // in the log of the server that lags
	shown         *v1alpha1.Foo    // what that server shows, or nil
	before        map[string]int64 // the generations before the next controller began
	old, acted    func()           // say that the case has come that far
}

func (c *lagCase) String() string {
	return fmt.Sprintf("%s/after-%d-steps/%s", strings.ReplaceAll(c.name, " ", "-"), c.after, c.way)
}

// run runs the case.
func (c *lagCase) run(t *testing.T, b *lagBatch) {
	t.Helper()
	c.prepare(t)
	c.play(c.steps[:c.after])
	if c.way == stands {
		c.standBy()
	}
	c.old()
	<-b.held
	c.play(c.steps[c.after:])
	c.look()
	c.first.Kill()
	c.before = c.generations()
	c.startSecond()
	c.awaitQuiet()
	c.checkLagging()

	c.acted()
	<-b.released
	if err := c.finish(); err != nil {
		t.Error(err)
	}
	c.checkInTheEnd()
	total.count("restarts with an API server that lags")
	total.count("restarts with an API server that lags: " + c.way)
}

// prepare starts the controller that works on the API server that does not lag.
func (c *lagCase) prepare(t *testing.T) {
	t.Helper()
	c.history = newHistory(t, 0)
	c.secondUser = c.user + "-second"
	if err := c.startFirst(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.first.Kill()
		if t.Failed() {
			t.Logf("output of the first controller:\n%s", c.first.Output())
		}
	})
	end, err := audit.End(c.server.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	c.begin = end
}

func (c *lagCase) startFirst() (err error) {
	c.first, err = startDirectly(
		controlPlane.Kubeconfig(), c.user, c.namespace, "KUBE_FEATURE_WatchListClient=true")
	return err
}

func (c *lagCase) play(steps []lagStep) {
	c.t.Helper()
	for _, step := range steps {
		if err := step(c); err != nil {
			c.t.Fatal(err)
		}
	}
}

// look looks at what the API server that lags shows.
func (c *lagCase) look() {
	c.t.Helper()
	shown, err := c.server.foos.SamplecontrollerV1alpha1().Foos(c.namespace).List(
		c.t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(shown.Items) > 0 {
		c.shown = &shown.Items[0]
	}
}

// change changes the Foo.
func (c *lagCase) change(change func(*v1alpha1.Foo)) error {
	return waitUntil(c.users.changeFoo("a", change))
}

// settle waits until everything is as it must be.
func (c *lagCase) settle() error { return waitUntil(c.check) }

// check returns an error if something is not as it must be.
func (c *lagCase) check() error {
	problems, err := c.problems(c.users.expected())
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("%d problems, the first of them: %v", len(problems), problems[0])
	}
	return err
}

// die kills the controller that works with the API server that does not lag.
func (c *lagCase) die() error {
	c.first.Kill()
	return nil
}

// limitPods makes a second Pod in the namespace impossible.
func (c *lagCase) limitPods() error {
	ctx, quotas := context.Background(), kubeClient.CoreV1().ResourceQuotas(c.namespace)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one-pod"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
		},
	}
	if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return err
	}
	return waitUntil(func() error {
		quota, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err == nil && len(quota.Status.Used) == 0 {
			err = fmt.Errorf("the quota has no effect yet: %+v", quota.Status)
		}
		return err
	})
}

// allowPods undoes limitPods. Kubernetes soon makes the missing Pods of that Deployment, because it
// changes.
func (c *lagCase) allowPods(deployment string) error {
	ctx, quotas := context.Background(), kubeClient.CoreV1().ResourceQuotas(c.namespace)
	err := quotas.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/pods-since":%q}}}`, time.Now())
	_, err = c.deployments.Patch(
		ctx, deployment, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// lacksPods returns nil if the Deployment has no Pods because they are not allowed.
func (c *lagCase) lacksPods(deployment string) error {
	d, err := c.deployments.Get(context.Background(), deployment, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == "ReplicaFailure" && d.Status.Replicas == 0 {
			return nil
		}
	}
	return fmt.Errorf("deployment %s has Pods, or may get some: %+v", deployment, d.Status)
}

// finish lets everything become as it must be: what was kept until then may go.
func (c *lagCase) finish() error {
	if c.keeps != "" {
		if err := c.allowPods(c.users.names["a"]); err != nil {
			return err
		}
		c.keeps, c.before = "", nil // the annotation is a change, too
	}
	return waitUntil(func() error {
		writes := len(c.requested(isAccepted))
		if err := c.check(); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // a moment: it may still see what is old
		if n := len(c.requested(isAccepted)) - writes; n > 0 {
			return fmt.Errorf("the next controller has made %d writes in the last two seconds", n)
		}
		return c.check()
	})
}
