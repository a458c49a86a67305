// Package mutants tests the tests: it breaks the code in listed ways, and each time, a test must
// fail. A list names a file, and below it the mutants of that file, each with its test:
//
//	deployment.go
//	another count: TestNewFooGetsItsDeployment
//	  new(desiredReplicas(foo.Spec.Replicas)) -> new(desiredReplicas(foo.Spec.Replicas) + 1)
//
// The file has the left side once, in any spacing: gofmt aligns it differently in a fork, where
// names have other lengths. The test is in the same package, unless a folder is before its name.
// TestExplore.Crash is a part of TestExplore, with all of its usual cases.
//
// conformance.txt is for the tests of the conformance suite. They run the broken program, and all
// that are named there must fail.
package mutants

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

var run = flag.Bool("mutants", false, "run the tests against every mutant; takes minutes")

const (
	root  = "../.."
	suite = "test/conformance"
)

// mutant is a change of a file, from a regular expression to another text.
type mutant struct {
	name, file, change string
	from               *regexp.Regexp
	to                 string
	folder             string // of the tests
	tests              []string
}

// TestMutants checks that every mutant still fits the code, and that there are the tests. With
// -mutants, it also checks that the tests fail.
func TestMutants(t *testing.T) {
	lists, err := filepath.Glob("*.txt")
	if err != nil || len(lists) == 0 {
		t.Fatalf("found no lists: %v", err)
	}
	for _, list := range lists {
		t.Run(strings.TrimSuffix(list, ".txt"), func(t *testing.T) {
			for _, m := range read(t, list) {
				if list == "conformance.txt" {
					m.folder = suite
				}
				t.Run(m.name, m.check)
			}
		})
	}
}

func read(t *testing.T, list string) (mutants []*mutant) {
	text := must.Get(os.ReadFile(list))(t)
	var file string
	for line := range strings.Lines(string(text)) {
		colon := strings.LastIndex(line, ": ")
		switch {
		case strings.HasPrefix(line, " "):
			mutants[len(mutants)-1].change += line
		case colon > 0:
			folder, tests := path.Split(strings.TrimSpace(line[colon+2:]))
			if folder == "" {
				folder = path.Dir(file)
			}
			mutants = append(mutants, &mutant{
				name: line[:colon], file: file, folder: folder, tests: strings.Split(tests, ", "),
			})
		case strings.TrimSpace(line) != "":
			file = strings.TrimSpace(line)
		}
	}
	for _, m := range mutants {
		from, to, _ := strings.Cut(m.change, "->")
		words := strings.Fields(from)
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		m.from = regexp.MustCompile(strings.Join(words, `\s+`))
		m.to = strings.Join(strings.Fields(to), " ")
	}
	return mutants
}

func (m *mutant) check(t *testing.T) {
	source := must.Get(os.ReadFile(filepath.Join(root, m.file)))(t)
	if n := len(m.from.FindAllIndex(source, -1)); n != 1 {
		t.Fatalf("%s has %s %d times, want once", m.file, m.from, n)
	}
	for _, test := range m.tests {
		if len(m.tests) > 1 && strings.Contains(test, ".") {
			t.Fatalf("name %s alone: -run takes no other test beside a subtest", test)
		}
		if !m.hasTest(test) {
			t.Fatalf("%s has no %s", m.folder, test)
		}
	}
	if !*run {
		return
	}
	if m.folder != suite {
		t.Parallel()
	}
	m.kill(t, m.from.ReplaceAllLiteral(source, []byte(m.to)))
}

func (m *mutant) hasTest(test string) bool {
	test, _, _ = strings.Cut(test, ".")
	files, _ := filepath.Glob(filepath.Join(root, m.folder, "*_test.go"))
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}

// kill runs the tests with changed in place of the file, and expects them to fail.
func (m *mutant) kill(t *testing.T, changed []byte) {
	overlay := overlayFile(t, m.file, changed)
	tests := strings.ReplaceAll(strings.Join(m.tests, "|"), ".", "/")
	explores := strings.HasPrefix(tests, "TestExplore")
	args := []string{"test", "-vet=off", "-count=1", "-run", "^(" + strings.ReplaceAll(tests, "/", ")$/^(") + ")$"}
	if m.folder == suite {
		program := filepath.Join(t.TempDir(), "controller")
		output, err := goCommand(".", "build", "-overlay", overlay, "-o", program, ".")
		if err != nil {
			t.Fatalf("the mutant does not compile:\n%s", output)
		}
		// On the controller that is not broken, the tests pass with this patience.
		patience := "25s"
		if strings.HasPrefix(m.name, "22:") {
			patience = "90s" // only then is a war reported
		}
		args = append(args, "-timeout", "10m", ".", "-patience", patience, "-controller",
			program+" --metrics-bind-address=0 --health-probe-bind-address=0")
	} else if explores {
		args = append(args, "-timeout", "20m", "-overlay", overlay, ".", "-explore.budget=0")
	} else {
		args = append(args, "-timeout", "2m", "-overlay", overlay, ".")
	}
	output, err := goCommand(m.folder, args...)
	// A controller that never comes to rest keeps its bubble busy until the test times out. Otherwise
	// these tests take a second. TestExplore takes minutes, and notices that by itself.
	restless := !explores && strings.Contains(output, "panic: test timed out") &&
		strings.Contains(output, "synctest bubble")
	switch {
	case err == nil:
		t.Fatalf("%v passes with this mutant, want it to fail", m.tests)
	case strings.Contains(output, "[build failed]"):
		t.Fatalf("the mutant does not compile:\n%s", output)
	case strings.Contains(output, "the control plane is broken"):
		t.Fatalf("the control plane failed, not the controller:\n%s", output)
	}
	for _, test := range m.tests {
		failed := regexp.MustCompile("--- FAIL: " + strings.ReplaceAll(test, ".", "/") + "[ /]")
		if !restless && !failed.MatchString(output) {
			t.Errorf("%s did not fail, but something else did:\n%s", test, output)
		}
	}
}

// overlayFile writes a file for the flag -overlay, with which go takes changed in place of file.
func overlayFile(t *testing.T, file string, changed []byte) string {
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, path.Base(file)), filepath.Join(dir, "overlay.json")
	original := must.Get(filepath.Abs(filepath.Join(root, file)))(t)
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	must.Do(t, errors.Join(
		err, os.WriteFile(mutated, changed, 0o600), os.WriteFile(overlay, text, 0o600)))
	return overlay
}

func goCommand(folder string, args ...string) (string, error) {
	command := exec.Command("go", args...)
	command.Dir = filepath.Join(root, folder)
	output, err := command.CombinedOutput()
	return string(output), err
}
