// Package monitoring has only tests: of the alerts, with promtool, and of what artifacts/monitoring
// repeats of other files. The conformance suite checks that the controller serves the metrics.
package monitoring

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/must"
)

const root = "../../"

// read parses the first objects of a YAML file, one into each of objects.
func read(t *testing.T, path string, objects ...any) {
	t.Helper()
	text := string(must.Get(os.ReadFile(path))(t))
	for i, object := range strings.SplitN(text, "\n---\n", len(objects)+1)[:len(objects)] {
		must.Do(t, yaml.Unmarshal([]byte(object), objects[i]))
	}
}

// ruleFile is what a PrometheusRule has below spec, and what Prometheus and promtool read.
type ruleFile struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func readRules(t *testing.T) ruleFile {
	t.Helper()
	var rule struct{ Spec ruleFile }
	read(t, root+"artifacts/monitoring/prometheusrule.yaml", &rule)
	return rule.Spec
}

func readAlerts(t *testing.T) map[string]alert {
	t.Helper()
	alerts := map[string]alert{}
	for _, group := range readRules(t).Groups {
		for _, alert := range group.Rules {
			alerts[alert.Alert] = alert
		}
	}
	return alerts
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if output, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// TestEachAlertFiresAndIsSilent leaves out the runbook and the description: they have no variables.
func TestEachAlertFiresAndIsSilent(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("NOT RUN: there is no promtool; it is in the package prometheus of Debian and Ubuntu")
	}
	rules := readRules(t)
	for _, group := range rules.Groups {
		for _, alert := range group.Rules {
			delete(alert.Annotations, "description")
			delete(alert.Annotations, "runbook_url")
		}
	}
	dir := t.TempDir() // promtool looks for rules.yaml beside the tests
	must.Do(t, os.WriteFile(dir+"/rules.yaml", must.Get(yaml.Marshal(rules))(t), 0o600))
	must.Do(t, os.WriteFile(dir+"/rules_test.yaml", must.Get(os.ReadFile("rules_test.yaml"))(t), 0o600))
	promtool(t, "check", "rules", "--lint-fatal", dir+"/rules.yaml")
	promtool(t, "test", "rules", dir+"/rules_test.yaml")
}

func TestRunbookHasARowForEachAlert(t *testing.T) {
	page := string(must.Get(os.ReadFile(root + "docs/runbook.md"))(t))
	headings := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		words := regexp.MustCompile(`[^a-z ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		headings[strings.ReplaceAll(words, " ", "-")] = true
	}
	for name, alert := range readAlerts(t) {
		if !strings.Contains(page, "\n| `"+name+"` | ") {
			t.Errorf("docs/runbook.md does not say where to go after %s", name)
		}
		address, heading, _ := strings.Cut(alert.Annotations["runbook_url"], "#")
		if !strings.HasSuffix(address, "/docs/runbook.md") || !headings[heading] {
			t.Errorf("%s: no heading of docs/runbook.md is at %s#%s", name, address, heading)
		}
	}
}

func TestOperatorFindsThePods(t *testing.T) {
	var deployment appsv1.Deployment
	read(t, root+"artifacts/deploy/base/deployment.yaml", &deployment)
	var monitor struct {
		Spec struct {
			JobLabel  string
			Selector  struct{ MatchLabels labels.Set }
			Endpoints []struct{ Port string }
		}
	}
	var service corev1.Service
	read(t, root+"artifacts/monitoring/servicemonitor.yaml", &monitor, &service)
	if got := service.Labels[monitor.Spec.JobLabel]; got != "sample-controller" {
		t.Errorf("got job %q, want what the alerts ask for", got)
	}
	if !monitor.Spec.Selector.MatchLabels.AsSelector().Matches(labels.Set(service.Labels)) {
		t.Error("the ServiceMonitor does not select the Service")
	}
	pod, port := deployment.Spec.Template, service.Spec.Ports[0]
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
		t.Error("the Service does not select the Pods")
	}
	isTarget := func(p corev1.ContainerPort) bool { return port.TargetPort == intstr.FromString(p.Name) }
	if port.Name != monitor.Spec.Endpoints[0].Port ||
		!slices.ContainsFunc(pod.Spec.Containers[0].Ports, isTarget) {
		t.Errorf("port %+v of the Service is not that of the ServiceMonitor and of the Pods", port)
	}
}
