// Package board explores controllers that nobody here wrote, and compares what is found with what
// is known. Make board writes the figures into the table of docs/explore.md.
package board

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
)

var update = flag.Bool("update", false, "write the figures into the table of docs/explore.md")

// Known is something wrong that is known.
type Known struct {
	// Where and What are regular expressions for the names of cases and for what is wrong in them.
	Where, What string
	// Verdict is "true", "meant" or "false alarm". Why says where that comes from in the source, as we read it.
	Verdict, Why string
}

// Explore explores a controller of a module. Its CRDs are named as in that module. It fails if
// something is wrong that is not known, or if something known is not found. A case that -run names is
// told in full.
func Explore(t *testing.T, module string, c explore.Controller, known ...Known) {
	t.Helper()
	version, folder, _ := strings.Cut(output(t, "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", module), " ")
	var crds []string
	for _, pattern := range c.CRDs {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no %s (%v)", module, pattern, err)
		}
		crds = append(crds, files...)
	}
	c.CRDs = crds
	c.Settle = cmp.Or(c.Settle, 2*time.Hour)
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		explore.Test(t, c)
		return
	}
	cases, began := 0, time.Now()
	c.Outside = func() any { cases++; return nil }
	unknown, seen := map[string][]string{}, make([][]string, len(known))
	for _, f := range explore.Find(t, c, "") {
		if i := slices.IndexFunc(known, func(k Known) bool { return k.is(f) }); i >= 0 {
			if !slices.Contains(seen[i], f.Case) {
				seen[i] = append(seen[i], f.Case)
			}
		} else {
			unknown[f.Problem] = append(unknown[f.Problem], f.Case)
		}
	}
	took := time.Since(began)
	for problem, cases := range unknown {
		t.Errorf("new, in %d cases, such as %s: %s", len(cases), shortest(cases), problem)
	}
	found := ""
	for i, k := range known {
		if len(seen[i]) == 0 {
			t.Errorf("gone: %s: %s", k.Where, k.What)
			continue
		}
		found += fmt.Sprintf("%s (%d cases, such as `%s`): %s. ", k.Verdict, len(seen[i]), shortest(seen[i]), k.Why)
	}
	row := fmt.Sprintf("| %s | %s | %d | %.0f | %s |", strings.TrimPrefix(t.Name(), "Test"), version,
		cases, took.Seconds(), cmp.Or(strings.TrimSpace(found), "nothing"))
	t.Log(row)
	if *update && !t.Failed() {
		write(t, row)
	}
}

func (k Known) is(f explore.Finding) bool {
	return regexp.MustCompile(k.Where).MatchString(f.Case) && regexp.MustCompile(k.What).MatchString(f.Problem)
}

// shortest returns the shortest name of a case, without that of its test.
func shortest(cases []string) string {
	_, name, _ := strings.Cut(slices.MinFunc(cases, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}), "/")
	return name
}

// write puts a row into the table, in place of the one that begins in the same way.
func write(t *testing.T, row string) {
	t.Helper()
	page := filepath.Join(output(t, "git", "rev-parse", "--show-toplevel"), "docs/explore.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(row[2:], "|")
	old := regexp.MustCompile(`(?m)^\| ` + name + `\|.*$`)
	if !old.Match(text) {
		t.Fatalf("%s has no row for %s: put \"| %s|\" into the table", page, name, name)
	}
	if err := os.WriteFile(page, old.ReplaceAllLiteral(text, []byte(row)), 0o666); err != nil {
		t.Fatal(err)
	}
}

func output(t *testing.T, command ...string) string {
	t.Helper()
	text, err := exec.Command(command[0], command[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return strings.TrimSpace(string(text))
}

// Runner is a controller of Kubernetes.
type Runner interface {
	Run(ctx context.Context, workers int)
}

// Run returns a process with a controller of Kubernetes.
func Run(build func(context.Context, kubernetes.Interface, informers.SharedInformerFactory) (Runner, error),
) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		c, err := build(ctx, client, factory)
		if err != nil {
			return err
		}
		factory.Start(ctx.Done())
		c.Run(ctx, 5)
		factory.Shutdown()
		return ctx.Err()
	}
}
