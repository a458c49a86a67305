package hack

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

const project = "example.com/sample-controller"

// besideRoot are the folders of the modules beside the root's.
var besideRoot = []string{"docs", "examples", "explore", "hack", "lens", "test"}

// The modules import each other as README.md draws it, and in no other way, also in the page (-tags=js).
func TestNoImportCrossesABorder(t *testing.T) {
	page := must.Get(os.ReadFile("../README.md"))(t)
	arrows := regexp.MustCompile(`(?m)^    (\w+)(?:\[.*\])? (-->|-\.->) (\w+)$`)
	drawn := map[string]string{} // by "FROM TO"
	for _, arrow := range arrows.FindAllStringSubmatch(string(page), -1) {
		drawn[arrow[1]+" "+arrow[3]] = arrow[2]
	}
	found := map[string]string{}
	for _, module := range append([]string{"."}, besideRoot...) {
		for line := range strings.Lines(output(t, "go", "-C", module, "list", "-e", "-tags=js", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}} -->
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
	if all := output(t, "go", "list", "-deps", "."); strings.Contains(all, project+"/internal/testing") {
		t.Error("the program imports internal/testing")
	}
}

// moduleOf returns the module of a package by its folder, as README.md names it.
func moduleOf(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, project), "/"), "/")
	if slices.Contains(besideRoot, name) {
		return name
	}
	return "root"
}
