package hack

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const project = "example.com/sample-controller"

// The modules import each other as README.md draws it, and in no other way.
func TestNoImportCrossesABorder(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	arrows := regexp.MustCompile(`(?m)^    (\w+)(?:\[.*\])? (-->|-\.->) (\w+)$`)
	drawn := map[string]string{} // by "FROM TO"
	for _, arrow := range arrows.FindAllStringSubmatch(string(page), -1) {
		drawn[arrow[1]+" "+arrow[3]] = arrow[2]
	}
	found := map[string]string{}
	for _, module := range []string{"", "docs", "examples", "explore", "hack", "lens", "test"} {
		for line := range strings.Lines(goList(t, module, `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}} -->
{{end}}{{range .TestImports}}{{$p}} {{.}} -.->
{{end}}{{range .XTestImports}}{{$p}} {{.}} -.->
{{end}}`, "./...")) {
			words := strings.Fields(line)
			if len(words) < 3 || !strings.HasPrefix(words[1], project) {
				continue
			}
			if strings.HasPrefix(words[0], project+"/internal/testing/") {
				words[2] = "-.->"
			}
			from, to := moduleOf(words[0]), moduleOf(words[1])
			if key := from + " " + to; from != to && found[key] != "-->" {
				found[key] = words[2]
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if drawn[key] != found[key] {
			t.Errorf("%s: the modules have the arrow %s, and README.md has %q", key, found[key], drawn[key])
		}
	}
	for key := range drawn {
		if found[key] == "" {
			t.Errorf("%s: README.md has an arrow that the modules do not have", key)
		}
	}
	if all := goList(t, "", "{{.ImportPath}}", "-deps", "."); strings.Contains(all, project+"/internal/testing") {
		t.Error("the program imports internal/testing")
	}
}

func goList(t *testing.T, module, format string, args ...string) string {
	t.Helper()
	list := exec.Command("go", append([]string{"-C", "../" + module, "list", "-f", format}, args...)...)
	output, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list.Args, err)
	}
	return string(output)
}

// moduleOf returns the module of a package by its folder, as README.md names it.
func moduleOf(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, project), "/"), "/")
	if slices.Contains([]string{"docs", "examples", "explore", "hack", "lens", "test"}, name) {
		return name
	}
	return "root"
}
