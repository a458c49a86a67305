// Package monitoring has only tests. They check what artifacts/monitoring has: with promtool and,
// on a control plane, with a real Prometheus that reads the metrics of the real controller.
package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/process"
)

// prometheus is a running Prometheus.
type prometheus struct {
	t       *testing.T
	address string
}

// startPrometheus starts a Prometheus with that configuration. It ends with t, and leaves nothing.
func startPrometheus(t *testing.T, program string, config map[string]any) *prometheus {
	t.Helper()
	dir := t.TempDir()
	text := must.Get(yaml.Marshal(config))(t)
	path := filepath.Join(dir, "prometheus.yaml")
	must.Do(t, os.WriteFile(path, text, 0o600))
	promtool(t, "", "check", "config", path)
	p := &prometheus{t: t, address: freeport.Address(t)}
	started := must.Get(process.Start(exec.Command(program, "--config.file="+path,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address),
		filepath.Join(dir, "no-kubeconfig")))(t)
	t.Cleanup(func() {
		started.Kill()
		if t.Failed() {
			t.Logf("output of Prometheus:\n%s", started.Output())
		}
	})
	suite.Eventually(t, "Prometheus is ready", func() (bool, string) {
		select {
		case <-started.Exited:
			t.Fatal("Prometheus has exited")
		default:
		}
		response, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, response.Status
	})
	return p
}

func get[T any](p *prometheus, path string) (data T, err error) {
	response, err := http.Get("http://" + p.address + "/api/v1/" + path)
	if err != nil {
		return data, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  *T
	}
	answer.Data = &data
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return data, err
	}
	if answer.Error != "" {
		return data, fmt.Errorf("Prometheus answers %s: %s", response.Status, answer.Error)
	}
	return data, nil
}

// result is one of the results of a query: a series, and its value.
type result struct {
	Metric map[string]string
	Value  [2]any // time and value
}

func (r result) number() float64 {
	text, _ := r.Value[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return value
}

// query returns the results that have a value: the quantile of nothing, for example, has none.
func (p *prometheus) query(expr string) (found []result, err error) {
	answer, err := get[struct{ Result []result }](p, "query?query="+url.QueryEscape(expr))
	for _, r := range answer.Result {
		if !math.IsNaN(r.number()) {
			found = append(found, r)
		}
	}
	return found, err
}

// target is what Prometheus reads metrics from.
type target struct {
	Labels            map[string]string
	Health, LastError string
}

// targetsAre waits until Prometheus reads the metrics of these targets, and of no others. They are
// given by their labels, except for their addresses.
func (p *prometheus) targetsAre(want []map[string]string) {
	p.t.Helper()
	what := fmt.Sprintf("Prometheus reads the metrics of %v", want)
	suite.Eventually(p.t, what, func() (bool, string) {
		found, err := get[struct{ ActiveTargets []target }](p, "targets?state=active")
		seen := fmt.Sprintf("%+v, %v", found.ActiveTargets, err)
		if err != nil || len(found.ActiveTargets) != len(want) {
			return false, seen
		}
		left := map[string]bool{}
		for _, labels := range want {
			left[fmt.Sprint(labels)] = true
		}
		for _, target := range found.ActiveTargets {
			labels := maps.Clone(target.Labels)
			delete(labels, "instance")
			if target.Health == "up" {
				delete(left, fmt.Sprint(labels))
			}
		}
		return len(left) == 0, seen
	})
}

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
	must.Do(t, os.WriteFile(path, []byte(readFile(t, "rules_test.yaml")), 0o600))
	promtool(t, "", "test", "rules", path)
}
