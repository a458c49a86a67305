package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// trimmed are the modules of which the page has only a part.
var trimmed = []string{"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apiserver",
	"k8s.io/client-go"}

// kept are the groups of the API that the page needs, and sent those of which it sends objects as
// Protocol Buffers.
var (
	kept = regexp.MustCompile(`^((apps|authentication|authorization|autoscaling|core)/v1|` +
		`(coordination|events)/v\w+)$`)
	sent = regexp.MustCompile(`^(apps|core|events)/v1$`)
)

// What the generated code of Kubernetes looks like.
var (
	// groups are the files that name all groups, and group is how they import one.
	groups = regexp.MustCompile(`^(kubernetes|informers|applyconfigurations|pkg/generated)/` +
		`([^/]*|scheme/register|\w+/interface|openapi/.*)\.go$`)
	group = regexp.MustCompile(`\t(\w+) "k8s\.io/(?:api|client-go/(?:kubernetes/typed|informers|` +
		`applyconfigurations)|apiextensions-apiserver/pkg/apis)/(\w+/v\w+)"\n`)
	method   = regexp.MustCompile(`(?m)^func \(\w+ \*?(\w+)\) (\w+)\(.*(}\n|{\n(.*\n)*?}\n)`)
	imported = regexp.MustCompile(`\t(\w*) ?"([\w./-]+)"\n`)
	typed    = regexp.MustCompile(`(?m)^type (\w+) (struct {\n(?:.*\n)*?}|.*)\n`)
	comment  = regexp.MustCompile(`//.*`)
	word     = regexp.MustCompile(`\w+`)
)

// trim makes the build use modules in which most kinds are missing. Otherwise they are linked,
// because kubernetes.Interface names them all.
func (o *overlay) trim() error {
	module, err := os.ReadFile("docs/go.mod")
	if err != nil {
		return err
	}
	// go list names no folder of a module that has not been downloaded.
	list := exec.Command("hack/env", append([]string{"-c", `go -C docs mod download "$@" &&
		go -C docs list -m -f "{{.Dir}}" "$@"`, "trim"}, trimmed...)...)
	list.Stderr = os.Stderr
	folders, err := list.Output()
	if err != nil {
		return err
	}
	from := strings.Split(string(folders), "\n") // a folder each
	for i, name := range trimmed {
		if err := trimModule(from[i], filepath.Join(o.folder, name)); err != nil {
			return err
		}
		// A path from here needs no quotes, whatever is in the path to here.
		module = fmt.Appendf(module, "\nreplace %s => ../%s/%[1]s\n", name, buildFolder)
	}
	sums, err := os.ReadFile("docs/go.sum")
	return cmp.Or(err, writeFile(filepath.Join(o.folder, "go.sum"), sums),
		writeFile(filepath.Join(o.folder, "go.mod"), module))
}

// trimModule copies what the page needs of a module.
func trimModule(folder, to string) error {
	from := os.DirFS(folder)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	types, err := sentTypes(from)
	if err != nil {
		return err
	}
	return fs.WalkDir(from, ".", func(file string, entry fs.DirEntry, err error) error {
		base := path.Base(file)
		isExtra := base == "types_swagger_doc_generated.go" || // the fields' comments
			base == "generated.pb.go" && !sent.MatchString(path.Dir(file)) // Protocol Buffers
		if err != nil || entry.IsDir() || path.Ext(file) != ".go" && file != "go.mod" || isExtra {
			return err
		}
		text, err := fs.ReadFile(from, file)
		if err != nil {
			return err
		}
		if base == "generated.pb.go" {
			text = withoutTypes(text, types)
		}
		if groups.MatchString(file) {
			text = withoutGroups(text)
		}
		return writeFile(filepath.Join(to, file), text)
	})
}

// sentTypes returns the types of which objects consist that are sent as Protocol Buffers.
func sentTypes(from fs.FS) (map[string]bool, error) {
	fields := map[string]string{}
	files, err := fs.Glob(from, "*/v1/types.go")
	for _, file := range files {
		text, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, err
		}
		for _, found := range typed.FindAllSubmatch(text, -1) {
			fields[string(found[1])] += string(found[2])
		}
	}
	types := map[string]bool{}
	next := []string{"Deployment", "DeploymentList", "Event", "EventList", "Namespace",
		"NamespaceList"}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if !types[name] {
			types[name] = true
			next = append(next, word.FindAllString(comment.ReplaceAllString(fields[name], ""), -1)...)
		}
	}
	return types, err
}

// withoutTypes leaves out the methods of types that nobody sends, and String.
func withoutTypes(text []byte, types map[string]bool) []byte {
	text = method.ReplaceAllFunc(text, func(all []byte) []byte {
		found := method.FindSubmatch(all)
		if types[string(found[1])] && string(found[2]) != "String" {
			return all
		}
		return nil
	})
	return imported.ReplaceAllFunc(text, func(all []byte) []byte {
		found := imported.FindSubmatch(all)
		name := cmp.Or(string(found[1]), path.Base(string(found[2])))
		if regexp.MustCompile(`\b` + name + `\.`).Match(text) {
			return all
		}
		return nil
	})
}

// withoutGroups leaves out what uses a group that is not kept.
func withoutGroups(text []byte) []byte {
	var extra []string
	for _, found := range group.FindAllSubmatch(text, -1) {
		if !kept.Match(found[2]) {
			extra = append(extra, string(found[1]))
			text = bytes.Replace(text, found[0], nil, 1)
		}
	}
	if len(extra) == 0 {
		return text
	}
	use := `.*(\b(` + strings.Join(extra, "|") + `)\.|_apiextensions_).*\n`
	return regexp.MustCompile(`(?m)^(func `+use+`(.*\n)*?}\n|\tcase `+use+`.*\n|`+use+`)`).
		ReplaceAll(text, nil)
}
