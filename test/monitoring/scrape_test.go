package monitoring

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

func scrapeConfig(t *testing.T) map[string]any {
	t.Helper()
	return parse[map[string]any](t, readFile(t, folder+"scrape.yaml"))
}

// localConfig returns scrape.yaml for a Prometheus that runs beside the cluster. Debian's cannot
// look for Pods, so discover does that.
func (w *world) localConfig(addresses map[string]string) map[string]any {
	w.t.Helper()
	client := w.prometheusConfig()
	token := filepath.Join(w.t.TempDir(), "token")
	must.Do(w.t, os.WriteFile(token, []byte(client.BearerToken), 0o600))
	config := scrapeConfig(w.t)
	config["global"] = map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}
	config["rule_files"] = []string{rules(w.t)}
	job := config["scrape_configs"].([]any)[0].(map[string]any)
	job["authorization"].(map[string]any)["credentials_file"] = token
	discovery := job["kubernetes_sd_configs"].([]any)[0].(map[string]any)
	delete(job, "kubernetes_sd_configs")
	if discovery["role"] != "pod" {
		w.t.Fatalf("the test knows only the role pod, not %v", discovery["role"])
	}
	namespace := discovery["namespaces"].(map[string]any)["names"].([]any)[0].(string)
	job["static_configs"] = w.discover(client, namespace, addresses)
	return config
}

// discover looks for Pods with the permissions of Prometheus, and gives their ports the labels that
// Prometheus would give them. The metrics of a Pod are at the address of its process.
func (w *world) discover(
	client *rest.Config, namespace string, addresses map[string]string,
) (targets []any) {
	w.t.Helper()
	var pods *corev1.PodList
	suite.Eventually(w.t, "Prometheus may list Pods", func() (bool, string) {
		var err error
		pods, err = kubernetes.NewForConfigOrDie(client).CoreV1().Pods(namespace).List(
			w.t.Context(), metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
	for _, pod := range pods.Items {
		for _, port := range pod.Spec.Containers[0].Ports {
			address := fmt.Sprintf("%s:%d", pod.Status.PodIP, port.ContainerPort)
			if port.Name == "metrics" {
				address = addresses[pod.Name]
			}
			targets = append(targets, map[string]any{
				"targets": []string{address},
				"labels": map[string]string{
					"__meta_kubernetes_namespace":               pod.Namespace,
					"__meta_kubernetes_pod_name":                pod.Name,
					"__meta_kubernetes_pod_container_port_name": port.Name,
				},
			})
		}
	}
	return targets
}

// comparison matches what makes the result of an alert empty. With bool, it is 0 or 1 instead.
var comparison = regexp.MustCompile(`([<>]) (\d)`)

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// questions returns all queries of the dashboard and of the alerts, by what they are for. Whatever
// the state of the controller, each must have an answer.
func questions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, alert := range alerts(t) {
		all["alert "+name] = comparison.ReplaceAllString(alert.Expr, "$1 bool $2")
	}
	values := strings.NewReplacer("$job", name, "$namespace", ".+", "$__rate_interval", "1m")
	read := readDashboard(t)
	for _, panel := range read.Panels {
		for _, target := range panel.Targets {
			all["panel "+panel.Title+", query "+target.RefID] = values.Replace(target.Expr)
		}
	}
	for _, variable := range read.Templating.List {
		query, ok := variable.Query.(map[string]any)
		if !ok {
			continue // the choice of a Prometheus
		}
		match := labelValues.FindStringSubmatch(query["query"].(string))
		if match == nil {
			t.Fatalf("the test does not understand the variable %s", variable.Name)
		}
		// A series without that label is no answer.
		all["variable "+variable.Name] = fmt.Sprintf("group by (%s) (%s) unless group(vector(1))",
			match[2], values.Replace(match[1]))
	}
	return all
}

func TestPrometheusAnswersEachQuestion(t *testing.T) {
	if !*onCluster {
		t.Skip("NOT RUN: it needs -cluster, a control plane and its KUBECONFIG, as in hack/test")
	}
	program := findProgram(t, "prometheus")
	w := newWorld(t)
	addresses := w.startReplicas()
	p := startPrometheus(t, program, w.localConfig(addresses))
	var labels []map[string]string
	for pod := range addresses {
		labels = append(labels, map[string]string{"job": name, "namespace": name, "pod": pod})
	}
	p.targetsAre(labels)

	change := w.createFoos()
	left := questions(t)
	// This is why the dashboard shows only the queue of the leader.
	left["do Foos wait in the queue of a standby"] = `workqueue_depth{name="` + name + `"} > 0 ` +
		`and on (pod) leader_election_master_status == 0`
	t.Logf("%d questions", len(left))
	suite.Eventually(t, "each question has an answer", func() (bool, string) {
		change()
		var why []string
		for what, expr := range left {
			answers, err := p.query(expr)
			if len(answers) > 0 {
				delete(left, what)
			} else {
				why = append(why, fmt.Sprintf("%s: no answer to %s (%v)", what, expr, err))
			}
		}
		return len(left) == 0, strings.Join(slices.Sorted(slices.Values(why)), "\n")
	})
	p.rulesWork()
	for _, address := range addresses {
		lint(t, address, w.prometheusConfig().BearerToken)
	}
}

// rulesWork checks that Prometheus has evaluated all alerts without an error.
func (p *prometheus) rulesWork() {
	p.t.Helper()
	want := slices.Sorted(maps.Keys(alerts(p.t)))
	suite.Eventually(p.t, "Prometheus has evaluated all alerts", func() (bool, string) {
		loaded, err := get[struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}](p, "rules")
		var good []string
		for _, group := range loaded.Groups {
			for _, rule := range group.Rules {
				if rule.Health == "ok" {
					good = append(good, rule.Name)
				}
			}
		}
		slices.Sort(good)
		return slices.Equal(good, want), fmt.Sprintf("%+v, %v", loaded, err)
	})
}

// lint lets promtool judge the names of the metrics that only this controller has.
func lint(t *testing.T, address, token string) {
	t.Helper()
	code, body := suite.GetMetrics(t, address, token)
	var own strings.Builder
	for line := range strings.Lines(body) {
		if strings.Contains(line, "foo_controller_") {
			own.WriteString(line)
		}
	}
	if own.Len() == 0 {
		t.Fatalf("%d: the metrics have none of this controller", code)
	}
	promtool(t, own.String(), "check", "metrics")
}
