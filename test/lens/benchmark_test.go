package lens

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/internal/audit"
	"example.com/sample-controller/test/internal/process"
)

// BenchmarkProxy measures how long it takes from a Foo to its Deployment, by the clock of the API
// server: with a lens that a page shows, and without a lens. The two take turns. It reports
// medians.
func BenchmarkProxy(b *testing.B) {
	p := begin(b)
	p.press(b, "stop")
	b.Cleanup(func() { p.press(b, "start") })
	command := func(namespace string) []string {
		return []string{*controllerPath, "-v=5", "-health-probe-bind-address=0",
			"-metrics-bind-address=0", "-namespace=" + namespace}
	}
	contenders := []string{"lens-with", "lens-without"}
	for _, namespace := range contenders {
		_, err := kubeClient.CoreV1().Namespaces().Create(b.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
	l, err := startLens(append([]string{"--"}, command(contenders[0])...)...)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.stop(syscall.SIGTERM) }()
	if _, err := l.open(); err != nil {
		b.Fatal(err)
	}
	without := command(contenders[1])
	direct, err := process.Start(exec.Command(without[0], without[1:]...), controlPlane.Kubeconfig())
	if err != nil {
		b.Fatal(err)
	}
	defer direct.Kill()

	var logEnd audit.Mark
	rounds := 0
	round := func() {
		for _, namespace := range contenders {
			if err := createWithDeployment(namespace, fmt.Sprintf("foo-%d", rounds)); err != nil {
				b.Fatal(err)
			}
		}
		rounds++
		slices.Reverse(contenders)
	}
	round() // to warm up
	if logEnd, err = audit.End(controlPlane.AuditLog()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		round()
	}
	b.ReportMetric(0, "ns/op") // is not reported
	with, without2 := median(b, logEnd, "lens-with"), median(b, logEnd, "lens-without")
	b.ReportMetric(with, "ms/with")
	b.ReportMetric(without2, "ms/without")
	b.ReportMetric(with/without2, "with/without")
}

// createWithDeployment creates a Foo, and waits for its Deployment.
func createWithDeployment(namespace, name string) error {
	if err := createFoo(context.Background(), namespace, name); err != nil {
		return err
	}
	return waitUntil(func() error {
		_, err := kubeClient.AppsV1().Deployments(namespace).
			Get(context.Background(), name, metav1.GetOptions{})
		return err
	})
}

// median returns how many milliseconds there are between the answers to the create of a Foo and to
// that of its Deployment: the median of all that are noted after logEnd.
func median(b *testing.B, logEnd audit.Mark, namespace string) float64 {
	b.Helper()
	requests, _, err := audit.Read(controlPlane.AuditLog(), logEnd, "")
	if err != nil {
		b.Fatal(err)
	}
	began, took := map[string]time.Time{}, []float64{}
	for _, r := range requests {
		foo, found := began[r.ObjectRef.Name]
		switch {
		case r.ObjectRef.Namespace != namespace:
		case r.Creates("foos"):
			began[r.ObjectRef.Name] = r.StageTimestamp
		case r.Creates("deployments") && found:
			took = append(took, r.StageTimestamp.Sub(foo).Seconds()*1000)
		}
	}
	if len(took) == 0 {
		b.Fatalf("in the audit log, there are no Foos with Deployments in %s", namespace)
	}
	slices.Sort(took)
	b.Logf("%s: %d Foos, 10%% in %.1f ms, 50%% in %.1f ms, 90%% in %.1f ms", namespace, len(took),
		took[len(took)/10], took[len(took)/2], took[len(took)*9/10])
	return took[len(took)/2]
}
