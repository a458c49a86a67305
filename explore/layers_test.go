package explore

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers are the files of this package. The world knows neither verdicts nor faults.
var layers = []string{
	"explore.go world.go network.go streams.go steps.go actors.go cluster.go film.go watchdog.go",
	"judge.go rest.go picture.go",
	"faults.go errors.go processes.go",
	"cases.go run.go failure.go table.go",
}

// TestLayers shows that what is declared in a layer is used only there and in later ones.
func TestLayers(t *testing.T) {
	exports, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export",
		"-f", "{{.ImportPath}} {{.Export}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	layerOf := func(file string) int {
		return slices.IndexFunc(layers, func(names string) bool {
			return slices.Contains(strings.Fields(names), file)
		})
	}
	here, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	fileset, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range here.GoFiles {
		file, err := parser.ParseFile(fileset, name, nil, 0)
		if err != nil || layerOf(name) < 0 {
			t.Fatalf("%s must be in one of the layers: %v", name, err)
		}
		files = append(files, file)
	}
	lookup := func(path string) (io.ReadCloser, error) {
		_, after, _ := strings.Cut("\n"+string(exports), "\n"+path+" ")
		export, _, _ := strings.Cut(after, "\n")
		return os.Open(export)
	}
	config := types.Config{Importer: importer.ForCompiler(fileset, "gc", lookup)}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	if _, err := config.Check("explore", fileset, files, &info); err != nil {
		t.Fatal(err)
	}
	for name, object := range info.Uses {
		at, declared := fileset.Position(name.Pos()), fileset.Position(object.Pos()).Filename
		if layerOf(declared) > layerOf(at.Filename) {
			t.Errorf("%v uses %v, which is in a higher layer: %s", at, name, declared)
		}
	}
}
