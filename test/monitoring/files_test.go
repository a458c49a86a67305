package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/must"
)

const (
	root   = "../../"
	folder = root + "artifacts/monitoring/"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}

func parse[T any](t *testing.T, text string) (value T) {
	t.Helper()
	must.Do(t, yaml.Unmarshal([]byte(text), &value))
	return value
}

// ruleFile is what these tests read of the rules.
type ruleFile struct {
	Groups []struct{ Rules []alert }
}

type alert struct {
	Alert, Expr string
	Annotations struct {
		Runbook string `json:"runbook_url"`
	}
}

// rules writes the rule file as docs/production.md says, and returns its path.
func rules(t *testing.T) (path string) {
	t.Helper()
	const command = "sed '1,/^spec:/d' artifacts/monitoring/prometheusrule.yaml"
	if !strings.Contains(readFile(t, root+"docs/production.md"), "\n"+command+" >rules.yaml\n") {
		t.Errorf("docs/production.md does not say how to make the rule file: %s", command)
	}
	sed := exec.Command("bash", "-c", command)
	sed.Dir = root
	text := must.Get(sed.Output())(t)
	path = filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(path, text, 0o600))
	return path
}

func alerts(t *testing.T) map[string]alert {
	t.Helper()
	found := map[string]alert{}
	for _, group := range parse[ruleFile](t, readFile(t, rules(t))).Groups {
		for _, rule := range group.Rules {
			found[rule.Alert] = rule
		}
	}
	if len(found) == 0 {
		t.Fatal("there are no alerts")
	}
	return found
}

func TestRunbookHasARowForEachAlert(t *testing.T) {
	page := readFile(t, root+"docs/runbook.md")
	headings := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		words := regexp.MustCompile(`[^a-z ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		headings[strings.ReplaceAll(words, " ", "-")] = true
	}
	for name, alert := range alerts(t) {
		if !strings.Contains(page, "\n| `"+name+"` | ") {
			t.Errorf("docs/runbook.md does not say where to go after %s", name)
		}
		heading, ok := strings.CutPrefix(alert.Annotations.Runbook,
			"https://example.com/sample-controller/blob/main/docs/runbook.md#")
		if !ok || !headings[heading] {
			t.Errorf("%s: no heading of docs/runbook.md is at %q", name, alert.Annotations.Runbook)
		}
	}
}

func deployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	return parse[appsv1.Deployment](t,
		strings.Split(readFile(t, root+"artifacts/deploy/base/deployment.yaml"), "\n---\n")[0])
}

func TestAlertsKnowTheReplicasAndTheirMemory(t *testing.T) {
	spec, known := deployment(t).Spec, alerts(t)
	memory := spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
	for name, want := range map[string]string{
		"FooControllerReplicaIsMissing": fmt.Sprintf("< %d - 0.5", *spec.Replicas),
		"FooControllerNeedsMemory":      fmt.Sprintf("> 0.8 * %d * 1024 * 1024", memory>>20),
	} {
		if expr := known[name].Expr; !strings.HasSuffix(expr, want) {
			t.Errorf("%s: got %q, want an end like in the Deployment: %q", name, expr, want)
		}
	}
}

// serviceMonitor is what these tests read of a ServiceMonitor.
type serviceMonitor struct {
	Spec struct {
		JobLabel string
		Selector struct{ MatchLabels map[string]string }
		// Endpoints have more fields, which must not escape the comparison.
		Endpoints []map[string]any
	}
}

func TestOperatorReadsTheSamePodsInTheSameWay(t *testing.T) {
	objects := strings.Split(readFile(t, folder+"servicemonitor.yaml"), "\n---\n")
	monitor, service := parse[serviceMonitor](t, objects[0]).Spec, parse[corev1.Service](t, objects[1])
	pod := deployment(t).Spec.Template
	job := scrapeConfig(t)["scrape_configs"].([]any)[0].(map[string]any)

	if got, want := service.Labels[monitor.JobLabel], job["job_name"]; got != want {
		t.Errorf("job of the ServiceMonitor: got %q, want %q", got, want)
	}
	if !contains(service.Labels, monitor.Selector.MatchLabels) {
		t.Errorf("the ServiceMonitor selects %v, but the Service has the labels %v",
			monitor.Selector.MatchLabels, service.Labels)
	}
	if !contains(pod.Labels, service.Spec.Selector) {
		t.Errorf("the Service selects %v, but the Pods have the labels %v", service.Spec.Selector,
			pod.Labels)
	}
	target := service.Spec.Ports[0].TargetPort
	if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(port corev1.ContainerPort) bool {
		return target == intstr.FromString(port.Name) && port.ContainerPort == service.Spec.Ports[0].Port
	}) {
		t.Errorf("the Pods have no port %v", target)
	}
	want := []map[string]any{{
		"port":            service.Spec.Ports[0].Name,
		"scheme":          job["scheme"],
		"bearerTokenFile": job["authorization"].(map[string]any)["credentials_file"],
		"tlsConfig": map[string]any{
			"insecureSkipVerify": job["tls_config"].(map[string]any)["insecure_skip_verify"],
		},
	}}
	if !reflect.DeepEqual(monitor.Endpoints, want) {
		t.Errorf("endpoints of the ServiceMonitor: got %v, want what scrape.yaml has: %v",
			monitor.Endpoints, want)
	}
}

func contains(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// dashboard is what these tests read of dashboard.json.
type dashboard struct {
	Templating struct {
		List []struct {
			Name  string
			Query any // for Prometheus, it contains "query"
		}
	}
	Panels []struct {
		Title   string
		Targets []struct{ RefID, Expr string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	read := parse[dashboard](t, readFile(t, folder+"dashboard.json"))
	if len(read.Panels) == 0 {
		t.Fatal("the dashboard has no panels")
	}
	return read
}
