package conformance

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/suite"
)

var memoryFoos = flag.Int("memory-foos", 100, "number of Foos in the measurement of memory")

func TestMetricsThatTheDocumentationNamesExist(t *testing.T) {
	const path = "../../docs/production.md"
	names := regexp.MustCompile(
		`\b(workqueue|rest_client|leader_election|informer|process|go)_[a-z_]*[a-z]\b`)
	found := names.FindAllString(string(must.Get(os.ReadFile(path))(t)), -1)
	if len(found) < 5 {
		t.Errorf("%s names only the metrics %q, want at least 5", path, found)
	}
	n, address := newNamespace(t), must.Get(process.FreeAddress())(t)
	suite.StartProgram(t, suite.LeaderFlags+" --metrics-bind-address="+address, suite.In(n.Namespace))
	n.CatchUp()
	response := must.Get(http.Get("http://" + address + "/metrics"))(t)
	defer response.Body.Close()
	served := must.Get(io.ReadAll(response.Body))(t)
	for _, name := range found {
		if !regexp.MustCompile(`(?m)^` + name + `(_count)?[{ ]`).Match(served) {
			t.Errorf("%s names %s, but the controller does not serve it", path, name)
		}
	}
}

// selector matches a metric of the controller, and what is asked of its labels.
var selector = regexp.MustCompile(`\b((?:foo_controller|workqueue|rest_client|leader_election|` +
	`informer|process|go)_\w+)\{([^}]*)\}`)
var matcher = regexp.MustCompile(`(\w+)(=~|!=|=)"([^"]*)"`)

// fromPrometheus are labels that Prometheus itself gives each series.
var fromPrometheus = []string{"job", "namespace", "pod"}

// TestMetricsOfAlertsAreRead makes a sync fail by taking a permission away.
func TestMetricsOfAlertsAreRead(t *testing.T) {
	const folder = "../../artifacts/monitoring/"
	n := newNamespace(t)
	deployment := suite.Deploy(t, deployDir, func(manifest string) string {
		return strings.ReplaceAll(manifest, "- foos/status", "- foos/nothing")
	})
	t.Cleanup(func() { suite.Kubectl(t, "", "delete", "-f", folder+"rbac.yaml", "--ignore-not-found") })
	suite.Kubectl(t, "", "apply", "-f", folder+"rbac.yaml")
	for _, question := range []string{"list pods", "watch endpointslices", "get /metrics"} {
		suite.Eventually(t, "Prometheus may "+question, func() (bool, string) {
			_, err := n.TryKubectl("", append([]string{"auth", "can-i", "--namespace=" + deployedName,
				"--as=system:serviceaccount:monitoring:prometheus-k8s"}, strings.Fields(question)...)...)
			return err == nil, fmt.Sprint(err)
		})
	}

	address, token := must.Get(process.FreeAddress())(t), n.MetricsReader()
	suite.StartDeployed(t, deployment, address)
	n.foos.Create(newFoo("web", "web", 0))
	n.deployments.When("web", "exists", exists)
	rules := string(must.Get(os.ReadFile(folder + "prometheusrule.yaml"))(t))
	asked := selector.FindAllStringSubmatch(rules, -1)
	if len(asked) < 9 {
		t.Errorf("the alerts ask for %d series, want at least 9", len(asked))
	}
	suite.Eventually(t, "the controller serves what the alerts ask for", func() (bool, string) {
		_, served := suite.GetMetrics(t, address, token)
		for _, series := range asked {
			if !serves(served, series[1], series[2]) {
				return false, series[0] + " is not there"
			}
		}
		return true, ""
	})
}

// serves reports whether a series has all labels that a selector names, and the values that it
// demands.
func serves(served, metric, selector string) bool {
	wanted := matcher.FindAllStringSubmatch(selector, -1)
	for line := range strings.Lines(served) {
		lacks := func(m []string) bool {
			label, operator, value := m[1], m[2], m[3]
			if operator != "=" {
				value = ""
			}
			return !slices.Contains(fromPrometheus, label) && !strings.Contains(line, label+`="`+value)
		}
		ofMetric := strings.HasPrefix(line, metric+"{") || strings.HasPrefix(line, metric+" ")
		if ofMetric && !slices.ContainsFunc(wanted, lacks) {
			return true
		}
	}
	return false
}

func TestDeployedMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	suite.MetricsAreForThoseWhoMayGetThem(t, deployDir)
}

// With -v and a larger -memory-foos, it measures the figures in docs/production.md.
func TestMemoryOfFoos(t *testing.T) {
	n := newNamespace(t)
	address := must.Get(process.FreeAddress())(t)
	flags := "--namespace=" + n.Name + " --metrics-bind-address=" + address
	first := suite.StartProgram(t, flags, nil)
	n.CatchUp()
	report(t, "1 Foo", address)

	begin := time.Now()
	n.createFoos(*memoryFoos, func(name string) string { return name })
	n.deploymentsSettle(*memoryFoos)
	n.CatchUp()
	t.Logf("%d Foos created and synced in %.0fs", *memoryFoos, time.Since(begin).Seconds())
	report(t, fmt.Sprintf("%d Foos", *memoryFoos), address)
	must.Do(t, first.Stop())

	begin = time.Now()
	suite.StartProgram(t, flags, nil)
	n.CatchUp()
	t.Logf("restarted and synced all Foos in %.1fs", time.Since(begin).Seconds())
	report(t, "after the restart", address)
}

// createFoos creates that many Foos without Pods, several at a time. deployment returns the name of
// the Deployment of each.
func (n *namespace) createFoos(count int, deployment func(foo string) string) {
	n.T.Helper()
	client := fooClient(n.Namespace)
	workqueue.ParallelizeUntil(n.T.Context(), 8, count, func(i int) {
		name := fmt.Sprintf("web-%d", i)
		_, err := client.Create(n.T.Context(), newFoo(name, deployment(name), 0), metav1.CreateOptions{})
		if err != nil {
			n.T.Error(err)
		}
	})
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

// report logs what the controller that serves its metrics at address takes up.
func report(t *testing.T, when, address string) {
	t.Helper()
	served := must.Get(process.ReadMetrics(address))(t)
	t.Logf("%s: %.0f MiB resident, %.0f MiB live heap, %.2f CPU seconds, %.0f requests", when,
		served["process_resident_memory_bytes"]/(1<<20), served["go_gc_heap_live_bytes"]/(1<<20),
		served["process_cpu_seconds_total"], served["rest_client_requests_total"])
}
