// Package conformance tests, from the outside and on a real API server, what a controller of Foos
// has to do. The controller is a program that the tests start:
//
//	go test ./conformance                                 # on clusters that it starts
//	KUBECONFIG=... go test ./conformance                  # on a cluster that you have
//	go test ./conformance -controller 'path/to/program'   # any other program
//
// What is not about Foos is in the package suite, below internal/. Its doc comment says what a
// program has to do, and in which order the tests run.
package conformance

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/suite"
)

const crd = "../../artifacts/examples/crd.yaml"

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Resource: "foos",
		Name:       deployedName,
		CRD:        crd,
		Root:       "../..",
		Build:      "make -s build",
		Controller: "sample-controller --metrics-bind-address=0 --health-probe-bind-address=0",
		Serial:     "Deployed|Foos|Metrics|ByKustomize|OtherNames|Program|Nothing",
		Create: func(n *suite.Namespace, name string) {
			with(n).foos.Create(newFoo(name, name, 0)) // without Pods, which a quota may forbid
		},
		Await: func(n *suite.Namespace, name string) { with(n).foos.When(name, "is Ready", isReady) },
	})
	flag.Parse()
	if *tableFile != "" {
		_ = flag.Set("test.run", ".") // all tests in this process, for the table
	}
	code := suite.Run(m)
	if *tableFile != "" && len(outcomes.passed) > 0 {
		if err := writeTable(*tableFile, *programID); err != nil {
			fmt.Fprintln(os.Stderr, "conformance: writing the table:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// lastBehaviour is the highest number of a behaviour that this suite proves. Another proves
// number 20.
const lastBehaviour = 22

var (
	tableFile = flag.String("table", "", "Markdown `file` with the table to write the results to")
	programID = flag.String("name", "this controller", "`name` of the program in that table")
)

// outcomes says which behaviours were tested, and whether all of their tests passed.
var outcomes = struct {
	sync.Mutex
	passed map[int]bool // by the number of the behaviour
}{passed: map[int]bool{}}

// behaviour records that t proves the behaviour of that number, for the table.
func behaviour(t *testing.T, number int) {
	t.Helper()
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		outcomes.Lock()
		defer outcomes.Unlock()
		passed, tested := outcomes.passed[number]
		outcomes.passed[number] = !t.Failed() && (passed || !tested)
	})
}

// writeTable writes the program's row into the table in file, in place of its old one, or as the
// last one.
func writeTable(file, name string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	row, err := tableRow(name)
	if err != nil {
		return err
	}
	lines := strings.Split(string(content), "\n")
	begins := func(prefix string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
	}
	if at := begins("| " + name + " |"); at >= 0 {
		lines[at] = row
	} else if at = begins("| implementation |"); at >= 0 {
		end := at + slices.Index(lines[at:], "")
		lines = slices.Insert(lines, end, row)
	} else {
		return fmt.Errorf("there is no table in %s", file)
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644)
}

// tableRow returns the program's row: each behaviour is proven, broken, or not tested.
func tableRow(name string) (string, error) {
	version, err := suite.Kube.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	cells := []string{name, time.Now().UTC().Format(time.DateOnly), version.GitVersion}
	for number := 1; number <= lastBehaviour; number++ {
		passed, tested := outcomes.passed[number]
		switch {
		case !tested:
			cells = append(cells, "")
		case passed:
			cells = append(cells, "✓")
		default:
			cells = append(cells, "✗")
		}
	}
	return fmt.Sprintf("| %s |", strings.Join(cells, " | ")), nil
}
