package lens

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
	"example.com/sample-controller/internal/testing/suite/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const prefix = "lens-" // of the namespaces

// BenchmarkLens measures how long it takes from a Foo to its Deployment, by the clock of the API
// server: without a lens, and with a lens that a page shows. Each has a controller and a namespace
// of its own. They take turns, and each is quiet before the next begins. It reports medians.
func BenchmarkLens(b *testing.B) {
	begin(b).close() // no test comes after this, and another page that draws would disturb
	sharedLens.stop(syscall.SIGTERM)
	names := []string{"without", "lens"}
	pages := map[string]*page{}
	for _, name := range names {
		pages[name] = startTurn(b, name)
	}
	rounds := 0
	round := func() {
		for _, i := range rand.Perm(len(names)) { // what one does may slow down the next a little
			must.Do(b, turn(names[i], pages[names[i]], fmt.Sprintf("foo-%d", rounds)))
		}
		rounds++
	}
	round() // to warm up
	logEnd := must.Get(audit.End(controlPlane.AuditLog()))(b)
	for b.Loop() {
		round()
	}
	b.ReportMetric(0, "ns/op") // is not reported
	without := median(b, logEnd, "without")
	for _, name := range names {
		took := median(b, logEnd, name)
		b.ReportMetric(took, "ms/"+name)
		b.ReportMetric(took/without, name+"/without")
	}
}

// startTurn starts a controller for the namespace of that name, and what it is to be measured with.
func startTurn(b *testing.B, name string) (p *page) {
	_, err := kubeClient.CoreV1().Namespaces().Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: prefix + name}}, metav1.CreateOptions{})
	must.Do(b, err)
	command := []string{*controllerPath, "-v=5", "-health-probe-bind-address=0",
		"-metrics-bind-address=0", "-namespace=" + prefix + name}
	if name == "lens" {
		l, err := startLens(append([]string{"--"}, command...)...)
		must.Do(b, err)
		b.Cleanup(func() { l.stop(syscall.SIGTERM) })
		if p, err = l.open(); err == nil {
			err = p.do(chromedp.Click(chromedp.JSPath(byText("Fast"))))
		}
		must.Do(b, err)
		return p
	}
	direct := must.Get(process.Start(
		exec.Command(command[0], command[1:]...), controlPlane.Kubeconfig()))(b)
	b.Cleanup(direct.Kill)
	return nil
}

// turn creates a Foo, and waits until all that follows from it has happened and was shown.
func turn(name string, p *page, foo string) error {
	ctx, foos := context.Background(), fooClient.SamplecontrollerV1alpha1().Foos(prefix+name)
	_, err := foos.Create(ctx, &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: foo},
		Spec:       v1alpha1.FooSpec{DeploymentName: foo, Replicas: new(int32(0))},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // to ask now would disturb what is measured
	err = waitUntil(func() error {
		now, err := foos.Get(ctx, foo, metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(now.Status.Conditions, "Ready") {
			err = fmt.Errorf("%s is not ready: %+v", foo, now.Status)
		}
		return err
	})
	if err == nil && p != nil {
		err = p.wait(fmt.Sprintf(`pending.length === 0 &&
			lens.entities.get("object/deployments.apps/%s/%s")?.cached &&
			![...lens.entities.keys()].some((id) => /^(flight|request)/.test(id))`, prefix+name, foo))
	}
	return err
}

// median returns how many milliseconds there are between the answers to the create of a Foo and to
// that of its Deployment: the median of all that are noted after logEnd.
func median(b *testing.B, logEnd audit.Mark, name string) float64 {
	b.Helper()
	requests, _, err := audit.Read(controlPlane.AuditLog(), logEnd, "")
	must.Do(b, err)
	began, took := map[string]time.Time{}, []float64{}
	for _, r := range requests {
		switch foo, found := began[r.ObjectRef.Name]; {
		case r.ObjectRef.Namespace != prefix+name:
		case r.Creates("foos"):
			began[r.ObjectRef.Name] = r.StageTimestamp
		case found && r.Creates("deployments"):
			took = append(took, r.StageTimestamp.Sub(foo).Seconds()*1000)
		}
	}
	if len(took) == 0 {
		b.Fatalf("in the audit log, there are no Foos with Deployments in %s", prefix+name)
	}
	slices.Sort(took)
	return took[len(took)/2]
}
