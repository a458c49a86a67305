package main

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var runMutants = flag.Bool("mutants", false, "run the tests against every mutant; takes minutes")

// TestMutants checks that every mutant still fits the code. With -mutants, it also checks that the
// test of each mutant fails.
func TestMutants(t *testing.T) {
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			source, err := os.ReadFile(mutant.file)
			if err != nil {
				t.Fatal(err)
			}
			old := anySpacing(mutant.old)
			if n := len(old.FindAllIndex(source, -1)); n != 1 {
				t.Fatalf("%s contains %q %d times, want once", mutant.file, mutant.old, n)
			}
			if *runMutants {
				t.Parallel()
				changed := old.ReplaceAllLiteral(source, []byte(mutant.new))
				killMutant(t, mutant.file, changed, mutant.test)
			}
		})
	}
}

// anySpacing matches code with any spacing: gofmt aligns it differently in a fork, where names have
// other lengths.
func anySpacing(code string) *regexp.Regexp {
	words := strings.Fields(code)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// killMutant runs one test in the package of file, with changed in place of file, and expects the
// test to fail.
func killMutant(t *testing.T, file string, changed []byte, test string) {
	t.Helper()
	dir := t.TempDir()
	mutated := filepath.Join(dir, filepath.Base(file))
	original, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	err = errors.Join(
		os.WriteFile(mutated, changed, 0o600), os.WriteFile(overlayFile, overlay, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("go", "test", "-vet=off", "-overlay", overlayFile, "-run", "^"+test+"$",
		"-timeout", "1m", "./"+filepath.Dir(file)).CombinedOutput()
	output := string(text)
	// A controller that never comes to rest keeps its bubble busy until the test times out. Otherwise
	// these tests take a second.
	restless := strings.Contains(output, "panic: test timed out") &&
		strings.Contains(output, "synctest bubble")
	switch {
	case err == nil:
		t.Errorf("%s passes with this mutant, want it to fail", test)
	case strings.Contains(output, "[build failed]"):
		t.Errorf("the mutant does not compile:\n%s", output)
	case !restless && !strings.Contains(output, "--- FAIL: "+test+" "):
		t.Errorf("%s did not fail, but something else did:\n%s", test, output)
	}
}
