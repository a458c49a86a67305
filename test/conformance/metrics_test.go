package conformance

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/metrics"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

var memoryFoos = flag.Int("memory-foos", 100, "number of Foos in the measurement of memory")

// scrape returns the metrics that are served at address: for each name, the sum over all labels.
func scrape(t *testing.T, address string) map[string]float64 {
	t.Helper()
	return must.Get(metrics.Read(address))(t)
}

func TestMetricsThatTheDocumentationNamesExist(t *testing.T) {
	suite.ServesMetricsNamedIn(t, "../../docs/production.md",
		`\b(workqueue|rest_client|leader_election|informer|process|go)_[a-z_]*[a-z]\b`,
		func(n *suite.Namespace) { n.CatchUp() })
}

func TestDeployedMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	suite.MetricsAreForThoseWhoMayGetThem(t, deployDir)
}

// With -v and a larger -memory-foos, it measures the figures in docs/production.md.
func TestMemoryOfFoos(t *testing.T) {
	n := newNamespace(t)
	address := freeport.Address(t)
	flags := "--namespace=" + n.Name + " --metrics-bind-address=" + address
	first := suite.StartProgram(t, flags, nil)
	n.CatchUp()
	report(t, "1 Foo", scrape(t, address))

	begin := time.Now()
	n.createFoos(*memoryFoos, func(name string) string { return name })
	n.deploymentsSettle(*memoryFoos)
	n.CatchUp()
	t.Logf("%d Foos created and synced in %.0fs", *memoryFoos, time.Since(begin).Seconds())
	report(t, fmt.Sprintf("%d Foos", *memoryFoos), scrape(t, address))
	suite.StopProgram(t, first)

	begin = time.Now()
	suite.StartProgram(t, flags, nil)
	n.CatchUp()
	t.Logf("restarted and synced all Foos in %.1fs", time.Since(begin).Seconds())
	report(t, "after the restart", scrape(t, address))
}

// createFoos creates that many Foos without Pods, several at a time. deployment returns the name of
// the Deployment of each.
func (n *namespace) createFoos(count int, deployment func(foo string) string) {
	n.T.Helper()
	client, names := fooClient(n.Namespace), make(chan string)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for name := range names {
				_, err := client.Create(n.T.Context(), newFoo(name, deployment(name), 0), metav1.CreateOptions{})
				if err != nil {
					n.T.Error(err)
				}
			}
		})
	}
	for i := range count {
		names <- fmt.Sprintf("web-%d", i)
	}
	close(names)
	wg.Wait()
}

// deploymentsSettle waits until the Deployment controller has processed that many Deployments. Many
// thousands need a -patience of several minutes.
func (n *namespace) deploymentsSettle(count int) {
	n.T.Helper()
	what := fmt.Sprintf("the Deployment controller has processed %d Deployments", count)
	suite.Eventually(n.T, what, func() (bool, string) {
		list, err := suite.Kube.AppsV1().Deployments(n.Name).List(n.T.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		settled := 0
		for _, deployment := range list.Items {
			if deployment.Status.ObservedGeneration == deployment.Generation {
				settled++
			}
		}
		return settled >= count, fmt.Sprint(settled)
	})
}

func report(t *testing.T, when string, served map[string]float64) {
	t.Helper()
	t.Logf("%s: %.0f MiB resident, %.0f MiB live heap, %.2f CPU seconds, %.0f requests", when,
		served["process_resident_memory_bytes"]/(1<<20), served["go_gc_heap_live_bytes"]/(1<<20),
		served["process_cpu_seconds_total"], served["rest_client_requests_total"])
}
