package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const module = "example.com/sample-controller"

// programs are the folders of those that the page can run.
var programs = []string{".", "docs/tutorial/04-queue", "docs/tutorial/05-owning",
	"docs/tutorial/06-renaming", "docs/tutorial/07-status", "docs/tutorial/08-errors"}

// Go cannot import a program. So each one is compiled as a package, with one more function.
const (
	playRoot = `package main

import (
	"context"
	"io"

	"` + module + `/internal/clientconfig"
)

// Play runs the process as run does, without what needs a network.
func Play(ctx context.Context) error {
	o, err := parseFlags([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"},
		io.Discard)
	if err != nil {
		return err
	}
	config, err := clientconfig.Load("")
	if err != nil {
		return err
	}
	p, _, err := newProcess(ctx, config, o, nil)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}
`
	playChapter = `package main

import "context"

// Play runs the program.
func Play(ctx context.Context) error { return run(ctx) }
`
	clientConfig = `// Package clientconfig is that of a page: there is no kubeconfig.
package clientconfig

import "k8s.io/client-go/rest"

// Page is how the program reaches the cluster in the page.
var Page *rest.Config

func Hint() string                     { return "" }
func Load(string) (*rest.Config, error) { return rest.CopyConfig(Page), nil }

func LoadWithNamespace(string) (*rest.Config, string, error) {
	return rest.CopyConfig(Page), "default", nil
}
`
)

// overlay replaces and adds files for a build.
type overlay struct {
	root, folder string
	Replace      map[string]string
}

// add makes the build find text in a file of the repository.
func (o *overlay) add(file string, text []byte) error {
	to := filepath.Join(o.folder, file)
	o.Replace[filepath.Join(o.root, file)] = to
	return writeFile(to, text)
}

// fill adds the programs, and what they read.
func (o *overlay) fill() error {
	var archive bytes.Buffer
	packed := zip.NewWriter(&archive)
	imports, table := "", ""
	for i, folder := range programs {
		name := fmt.Sprintf("program%d", i)
		imports += fmt.Sprintf("\t%q\n", module+"/lens/"+name)
		table += fmt.Sprintf("\t\t%q: %s.Play,\n", folder, name)
		if err := o.addProgram(folder, name, packed); err != nil {
			return err
		}
	}
	for _, file := range []string{"crd.yaml", "example-foo.yaml"} {
		file = "artifacts/examples/" + file
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pack(packed, file, text)
	}
	_ = packed.Close() // nothing fails in memory
	text := fmt.Sprintf("package main\n\nimport (\n\t\"context\"\n\n\t\"k8s.io/client-go/rest\"\n\n"+
		"\t\""+module+"/internal/clientconfig\"\n%s)\n\nfunc init() {\n"+
		"\tsetCluster = func(c *rest.Config) { clientconfig.Page = c }\n\tarchive = []byte(%q)\n\tprograms = map[string]func(context.Context) error{\n%s\t}\n}\n",
		imports, archive.String(), table)
	if err := o.add("lens/programs_js.go", []byte(text)); err != nil {
		return err
	}
	return o.add("internal/clientconfig/clientconfig.go", []byte(clientConfig))
}

// addProgram makes a package of a program, and packs its source.
func (o *overlay) addProgram(folder, name string, packed *zip.Writer) error {
	source := folder
	if folder != "." { // it may consist of changes of another one
		assembled, err := exec.Command("docs/tutorial/assemble", path.Base(folder)).Output()
		if err != nil {
			return fmt.Errorf("putting the program in %s together: %w", folder, err)
		}
		source = path.Join("docs", strings.TrimSpace(string(assembled)))
	}
	files, _ := filepath.Glob(filepath.Join(source, "*.go")) // the pattern is right
	play := playChapter
	if folder == "." {
		play = playRoot
	}
	texts := map[string][]byte{"play.go": []byte(play)}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts[filepath.Base(file)] = text
		pack(packed, path.Join(folder, filepath.Base(file)), text)
	}
	for file, text := range texts {
		text = bytes.Replace(text, []byte("package main\n"), []byte("package "+name+"\n"), 1)
		if err := o.add(filepath.Join("lens", name, file), text); err != nil {
			return err
		}
	}
	return nil
}

// pack adds a file to an archive in memory.
func pack(packed *zip.Writer, file string, text []byte) {
	w, _ := packed.Create(file)
	_, _ = w.Write(text)
}
