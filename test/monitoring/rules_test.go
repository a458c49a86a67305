package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// findProgram returns the path of a program of Prometheus. Without the program, the test is
// reported as not run.
func findProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOT RUN: there is no %s; it is in the package prometheus of Debian and Ubuntu", name)
	}
	return path
}

// promtool runs promtool with that input. An error fails the test.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	command := exec.Command(findProgram(t, "promtool"), args...)
	command.Stdin = strings.NewReader(input)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func TestRulesAreValid(t *testing.T) {
	promtool(t, "", "check", "rules", "--lint-fatal", rules(t))
}

// rulesTest is what this package reads of rules_test.yaml.
type rulesTest struct {
	Tests []struct {
		AlertRuleTest []struct {
			Alertname string
			ExpAlerts []any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	}
}

func TestEachAlertFiresAndIsSilent(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range parse[rulesTest](t, readFile(t, "rules_test.yaml")).Tests {
		for _, check := range test.AlertRuleTest {
			if len(check.ExpAlerts) > 0 {
				fires[check.Alertname] = true
			} else {
				silent[check.Alertname] = true
			}
		}
	}
	for alert := range alerts(t) {
		if !fires[alert] || !silent[alert] {
			t.Errorf("rules_test.yaml must have a test in which %s fires, and one in which it is silent",
				alert)
		}
	}
	path := filepath.Join(filepath.Dir(rules(t)), "rules_test.yaml")
	if err := os.WriteFile(path, []byte(readFile(t, "rules_test.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "test", "rules", path)
}
