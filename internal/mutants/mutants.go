// Package mutants tests the tests of a program: it breaks the program in listed ways, and each
// time, a test must fail.
package mutants

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

var run = flag.Bool("mutants", false, "run the tests against every mutant; takes minutes")

// Mutant is a small change. In File, the one place that reads Old, in any spacing, is changed to
// New. Then Test must fail. It is in the same package, unless it begins with a folder, as ./Test.
type Mutant = struct{ Name, File, Old, New, Test string }

// Check checks that every mutant still fits the code. With -mutants, it also checks that the test
// of each mutant fails. Files are relative to the folder of the package under test.
func Check(t *testing.T, mutants []Mutant) {
	t.Helper()
	for _, mutant := range mutants {
		t.Run(mutant.Name, func(t *testing.T) {
			source, err := os.ReadFile(mutant.File)
			if err != nil {
				t.Fatal(err)
			}
			old := anySpacing(mutant.Old)
			if n := len(old.FindAllIndex(source, -1)); n != 1 {
				t.Fatalf("%s contains %q %d times, want once", mutant.File, mutant.Old, n)
			}
			if *run {
				t.Parallel()
				kill(t, mutant, old.ReplaceAllLiteral(source, []byte(mutant.New)))
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

// kill runs the test of a mutant with changed in place of the file, and expects the test to fail.
func kill(t *testing.T, mutant Mutant, changed []byte) {
	t.Helper()
	file := mutant.File
	folder, test := filepath.Split(mutant.Test)
	if folder == "" {
		folder = "./" + filepath.Dir(file)
	}
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
		"-timeout", "1m", folder).CombinedOutput()
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
