// Package broken shows that the conformance suite can fail: it breaks the controller in one way
// after the other, and expects the tests of the broken behaviour to fail.
package broken

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var run = flag.Bool("run-suite", false, "run the suite on each broken controller; takes minutes")

// root is the folder of the controller, suite that of the tests that must fail.
const (
	root  = "../.."
	suite = "../conformance"
)

// TestSuiteNoticesBrokenControllers checks that the controller can still be broken in each listed
// way. With -run-suite, it also checks that all of the listed tests fail on it.
func TestSuiteNoticesBrokenControllers(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "suite")
	if *run {
		if output, err := command(suite, "go", "test", "-c", "-o", binary, "."); err != nil {
			t.Fatalf("building the suite: %v: %s", err, output)
		}
	}
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(root, b.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), b.old); n != 1 {
				t.Fatalf("%s has %d places that read %q, want 1", b.file, n, b.old)
			}
			if *run {
				controller := build(t, b.file, strings.Replace(string(source), b.old, b.new, 1))
				expectFailures(t, binary, controller, b.tests)
			}
		})
	}
}

// build builds the controller with one file replaced, and returns its path.
func build(t *testing.T, file, content string) string {
	t.Helper()
	dir := t.TempDir()
	replaced, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	replacement, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {replaced: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{replacement: []byte(content), overlay: text} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	controller := filepath.Join(dir, "controller")
	output, err := command(root, "go", "build", "-overlay", overlay, "-o", controller, ".")
	if err != nil {
		t.Fatalf("the broken controller does not compile: %s", output)
	}
	return controller
}

// expectFailures runs the tests on controller and expects each of them to fail.
func expectFailures(t *testing.T, binary, controller string, tests []string) {
	t.Helper()
	output, _ := command(suite, binary, "-test.run", "^("+strings.Join(tests, "|")+")$",
		"-test.timeout", "5m", "-patience", "6s", "-controller",
		controller+" --metrics-bind-address=0 --health-probe-bind-address=0")
	if strings.Contains(string(output), "the control plane is broken") {
		t.Fatalf("the control plane failed, not the controller:\n%s", output)
	}
	for _, test := range tests {
		if !strings.Contains(string(output), "--- FAIL: "+test+" ") {
			t.Errorf("%s did not fail:\n%s", test, output)
		}
	}
}

// command runs a program in dir and returns what it prints.
func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}
