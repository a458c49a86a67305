package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// names are what a controller and its resource are called. The lower-case form of a kind has no
// capitals at all, in Go identifiers as in names of objects. So a word is spelled the same in code,
// in a string that contains code, and in YAML.
type names struct {
	module, group, version string
	pkg                    string // the group in Go: the first part of its name, without hyphens
	goGroup                string // the group in names of Go: SamplecontrollerV1alpha1
	kind, plural           string // Foo, Foos
	short                  string // for kubectl
	name                   string // of the controller
	article                string // a or an: what is said before the kind
}

// lower returns the kind and its plural in lower case, as in the name of the resource.
func (n names) lower() (kind, plural string) {
	return strings.ToLower(n.kind), strings.ToLower(n.plural)
}

// protected reports whether the group is one that only Kubernetes' own API may use.
func (n names) protected() bool {
	return strings.HasSuffix(n.group, ".k8s.io") || strings.HasSuffix(n.group, ".kubernetes.io")
}

// goPlural returns the plural that the generators would form: see Name in namer/plural_namer.go of
// k8s.io/gengo/v2. hack/update-codegen.sh tells them the plural all the same.
func goPlural(kind string) string {
	last, before := kind[len(kind)-1], kind[max(0, len(kind)-2)]
	switch {
	case len(kind) < 2:
		return kind
	case strings.IndexByte("sxz", last) >= 0, last == 'h' && (before == 'c' || before == 's'):
		return kind + "es"
	case last == 'y' && strings.IndexByte("bcdfghjklmnpqrstvwxyz", before) >= 0:
		return kind[:len(kind)-1] + "ies"
	case last == 'e' && before == 'f':
		return kind[:len(kind)-2] + "ves"
	case last == 'f':
		return kind[:len(kind)-1] + "ves"
	}
	return kind + "s"
}

// irregular matches kinds whose plural is seldom what the generators make of them: Series, Proof.
var irregular = regexp.MustCompile(`[^su]s$|fe?$`)

// pluralLike returns the plural in Go which, in lower case, is the resource: People for people.
func pluralLike(kind, resource string) string {
	if usual := goPlural(kind); strings.ToLower(usual) == resource {
		return usual
	}
	same := 0
	for same < min(len(kind), len(resource)) && strings.ToLower(kind)[same] == resource[same] {
		same++
	}
	goName := kind[:same] + resource[same:]
	return strings.ToUpper(goName[:1]) + goName[1:]
}

// builtin lists what kubectl calls the resources of Kubernetes itself: plural, short names, kind
// and group. kubectl get node shows Kubernetes' Nodes, even if another API has a Node. A test
// compares the list with a control plane.
//
//go:embed builtin.txt
var builtin string

// builtinNames are the words by which kubectl finds a resource of Kubernetes.
func builtinNames() map[string]bool {
	taken := map[string]bool{}
	for line := range strings.Lines(builtin) {
		fields := strings.Fields(line)
		taken[fields[0]] = true
		taken[strings.ToLower(fields[2])] = true
		for short := range strings.SplitSeq(fields[1], ",") {
			taken[short] = true
		}
	}
	return taken
}

// builtinGroups are the groups of Kubernetes' own API.
func builtinGroups() map[string]bool {
	groups := map[string]bool{}
	for line := range strings.Lines(builtin) {
		groups[strings.Fields(line)[3]] = true
	}
	return groups
}

// shortName returns the initials of a kind of several words, or else its shortest beginning, of two
// letters or more, that is not the name of another resource.
func shortName(kind string) string {
	initials := ""
	letters := []rune(kind)
	for i, letter := range letters {
		after := i+1 == len(letters) || !unicode.IsLower(letters[i+1])
		inAcronym := i > 0 && unicode.IsUpper(letters[i-1]) && after
		if unicode.IsUpper(letter) && !inAcronym {
			initials += string(unicode.ToLower(letter))
		}
	}
	taken := builtinNames()
	if len(initials) > 1 && !taken[initials] {
		return initials
	}
	lower := strings.ToLower(kind)
	n := min(2, len(lower))
	for n < len(lower) && taken[lower[:n]] {
		n++
	}
	return lower[:n]
}

// spokenAsWords are the initialisms that are not spelled, although their first letter would be "ess"
// or the like.
var spokenAsWords = strings.Fields("FIFO HATEOAS LAN MAC MIME NASA NAT NIC NUMA RAID RAM REST ROM " +
	"SAML SAN SCIM SIM SOAP")

// articleOf returns what is said before a kind: an Addon, an HTTPCheck, an S3Bucket, a OneShot. If
// it is wrong, there is a flag.
func articleOf(kind string) string {
	initialism := strings.TrimRight(leadingCapitals.FindString(kind), "0123456789")
	letters := "AEIO"
	if len(initialism) < len(kind) && initialism != "" && unicode.IsLower(rune(kind[len(initialism)])) {
		initialism = initialism[:len(initialism)-1] // the last capital begins the next word
	}
	if initialism != "" && !slices.Contains(spokenAsWords, initialism) {
		letters = "AEFHILMNORSX"
	}
	if strings.Contains(letters, kind[:1]) && !strings.HasPrefix(kind, "One") {
		return "an"
	}
	return "a"
}

var leadingCapitals = regexp.MustCompile(`^[A-Z]+[0-9]*`)

// find returns the group of a pattern, which must match once in a file.
func find(root, file, pattern string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile("(?m)"+pattern).FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d lines that match %s, want 1", file, len(found), pattern)
	}
	return found[0][1], nil
}

// readNames reads the names of a controller in a folder. nameFile has its name.
func readNames(root, nameFile string) (names, error) {
	docs, err := filepath.Glob(filepath.Join(root, "pkg/apis/*/*/doc.go"))
	if err != nil || len(docs) != 1 {
		return names{}, fmt.Errorf("%d files match pkg/apis/*/*/doc.go, want 1 (%v)", len(docs), err)
	}
	doc, err := filepath.Rel(root, docs[0])
	if err != nil {
		return names{}, err
	}
	doc = filepath.ToSlash(doc)
	types := path.Join(path.Dir(doc), "types.go")
	var n names
	var resource string
	var problems []error
	for _, source := range []struct {
		to            *string
		file, pattern string
	}{
		{&n.group, doc, `^// \+groupName=(\S+)$`},
		{&n.goGroup, doc, `^// \+groupGoName=(\S+)$`},
		{&n.kind, types, `\+genclient\n(?://.*\n)*type (\w+) struct`},
		{&resource, types, `\+kubebuilder:resource:.*\bpath=(\w+)`},
		{&n.name, nameFile, `\b[cC]ontrollerName\s*=\s*"(.*)"$`},
	} {
		value, err := find(root, source.file, source.pattern)
		problems = append(problems, err)
		*source.to = value
	}
	if err := errors.Join(problems...); err != nil {
		return names{}, err
	}
	n.short, _ = find(root, types, `\+kubebuilder:resource:.*\bshortName=(\w+)`) // may be absent
	n.version = path.Base(path.Dir(doc))
	n.pkg = path.Base(path.Dir(path.Dir(doc)))
	n.plural = pluralLike(n.kind, resource)
	return n, nil
}
