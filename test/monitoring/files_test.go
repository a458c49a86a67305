// Package monitoring has only tests: of the alerts, with promtool, and of their rows in the runbook.
// The conformance suite checks that the controller serves the metrics.
package monitoring

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/must"
)

const root = "../../"

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
	text := must.Get(os.ReadFile(root + "artifacts/monitoring/prometheusrule.yaml"))(t)
	must.Do(t, yaml.Unmarshal(text, &rule))
	return rule.Spec
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
	for _, group := range readRules(t).Groups {
		for _, alert := range group.Rules {
			if !strings.Contains(page, "\n| `"+alert.Alert+"` | ") {
				t.Errorf("docs/runbook.md does not say where to go after %s", alert.Alert)
			}
			address, heading, _ := strings.Cut(alert.Annotations["runbook_url"], "#")
			if !strings.HasSuffix(address, "/docs/runbook.md") || !headings[heading] {
				t.Errorf("%s: no heading of docs/runbook.md is at %s#%s", alert.Alert, address, heading)
			}
		}
	}
}
