package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	modulePath = regexp.MustCompile(
		`^[a-z0-9][a-z0-9.-]*\.[a-z0-9-]*[a-z0-9](?:/[A-Za-z0-9_~-](?:[A-Za-z0-9._~-]*[A-Za-z0-9_~-])?)+$`)
	notInModule  = regexp.MustCompile(`/v[0-9]+$|\.git$`)
	dnsLabel     = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,56}[a-z0-9])?$`) // so that NAME-demo can be a namespace
	ofKubernetes = regexp.MustCompile(`(?:^|\.)(?:k8s|kubernetes)\.io$`)
	kubeVersion  = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	camelCase    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,46}$`) // so that KIND-controller-demo can be a namespace
	lowerWord    = regexp.MustCompile(`^[a-z][a-z0-9]{0,62}$`)
	goIdentifier = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	ofTheCluster = regexp.MustCompile(`^(?:etcd|kube.*|kwok.*|registry|stamp)$`) // the program is built beside these
	noGoPackage  = regexp.MustCompile(`^(?:main|internal|vendor|testdata)$`)     // nor keywords
)

// refusal is what is wrong with a flag, and what to write instead.
type refusal struct {
	wrong bool
	why   string
}

func firstOf(refusals ...refusal) error {
	for _, r := range refusals {
		if r.wrong {
			return errors.New(r.why)
		}
	}
	return nil
}

// checkNames returns the names of the fork, or an error that says what is wrong and what to write.
func checkNames(n names, resource string) (names, error) {
	taken := builtinNames()
	first, _, _ := strings.Cut(n.group, ".")
	n.pkg = strings.ReplaceAll(first, "-", "")
	const ofOurs = "; write a domain of yours, like widgets.acme.dev"
	const inGo = "--group: its first part, %s, becomes a Go package and "
	err := firstOf(
		refusal{n.module == "", "--module is missing; write a path like github.com/acme/widgets"},
		refusal{!modulePath.MatchString(n.module) || notInModule.MatchString(n.module),
			fmt.Sprintf("--module %q: write a domain and a path below it, without a version and .git, like "+
				"github.com/acme/widgets", n.module)},
		refusal{n.group == "", "--group is missing" + ofOurs},
		refusal{ofKubernetes.MatchString(n.group),
			fmt.Sprintf("--group %q: such a group belongs to Kubernetes", n.group) + ofOurs},
		refusal{len(validation.IsDNS1123Subdomain(n.group)) > 0 || !strings.Contains(n.group, ".") ||
			len(n.group) > 180, // the CRD is called PLURAL.GROUP
			fmt.Sprintf("--group %q: this is not a domain of small letters and digits, with a dot", n.group) +
				ofOurs},
		refusal{!goIdentifier.MatchString(n.pkg),
			fmt.Sprintf(inGo+"must begin with a letter; write another, like widgets.acme.dev", n.pkg)},
		refusal{token.IsKeyword(n.pkg) || types.Universe.Lookup(n.pkg) != nil || noGoPackage.MatchString(n.pkg),
			fmt.Sprintf(inGo+"has a meaning in Go; write another, like %ss.acme.dev", n.pkg, n.pkg)},
		refusal{!kubeVersion.MatchString(n.version),
			fmt.Sprintf("--version %q: write a version as Kubernetes has them: v1alpha1, v1beta1 or v1",
				n.version)},
		refusal{n.kind == "", "--kind is missing; write the name of your resource, like Widget"},
		refusal{!camelCase.MatchString(n.kind), fmt.Sprintf("--kind %q: write an upper-case letter, and then "+
			"up to 46 letters and digits, like Widget or DNSRecord", n.kind)},
		refusal{taken[strings.ToLower(n.kind)], fmt.Sprintf("--kind %s: Kubernetes has something of "+
			"that name; choose another, like Acme%s", n.kind, n.kind)},
		refusal{resource != "" && !lowerWord.MatchString(resource),
			fmt.Sprintf("--plural %q: write up to 63 lower-case letters and digits, like widgets", resource)},
		refusal{n.short != "" && !lowerWord.MatchString(n.short),
			fmt.Sprintf("--short %q: write some lower-case letters and digits, like wi", n.short)},
		refusal{taken[n.short],
			fmt.Sprintf("--short %s: Kubernetes has something of that name; choose another",
				n.short)},
	)
	if err != nil {
		return names{}, err
	}
	n.goGroup = initial(n.pkg)
	n.plural = pluralLike(n.kind, cmp.Or(resource, strings.ToLower(goPlural(n.kind))))
	n.short = cmp.Or(n.short, shortName(n.kind))
	kind, plural := n.lower()
	n.name = cmp.Or(n.name, kind+"-controller")
	return n, firstOf(
		refusal{plural == kind,
			fmt.Sprintf("--plural %s is the kind itself; write another word, like %slist", plural, kind)},
		refusal{taken[plural], fmt.Sprintf("--plural %s: Kubernetes has something of that name; choose another "+
			"kind or plural", plural)},
		refusal{!dnsLabel.MatchString(n.name),
			fmt.Sprintf("--name %q: write a DNS label that begins with a letter (a-z, 0-9, and - between "+
				"them, up to 58), like widget-controller", n.name)},
		refusal{ofTheCluster.MatchString(n.name), fmt.Sprintf("--name %s: the local control plane uses this word "+
			"for something else; write another, like %s-controller", n.name, n.name)},
	)
}

// checkDir returns the absolute path of the folder to write, which must be new or empty. The command
// runs in the folder hack, but a relative path begins at the root, where it was typed.
func checkDir(dir, root string) (string, error) {
	absolute := filepath.Clean(dir)
	if !filepath.IsAbs(dir) {
		absolute = filepath.Join(root, dir)
	}
	entries, err := os.ReadDir(absolute)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w; write a folder that does not exist", err)
	}
	above, err := os.Stat(filepath.Dir(absolute))
	return absolute, firstOf(
		refusal{len(entries) > 0, dir + " is not empty; write a folder that does not exist"},
		refusal{strings.HasPrefix(absolute+"/", root+"/"),
			dir + " is in this repository; write a folder beside it, like ../widgets"},
		refusal{strings.ContainsAny(absolute, " \t\n"), fmt.Sprintf("%q contains a space, which the local "+
			"control plane cannot handle; write another folder", absolute)},
		refusal{err != nil || !above.IsDir(), fmt.Sprintf("there is no folder %s to write into; make it first",
			filepath.Dir(absolute))},
	)
}

// checkKind refuses a kind that would give two things the same name. It ignores scopes, and so refuses
// some kinds that would compile: the code would be hard to read.
func checkKind(files map[string]string, old, new names) error {
	if new.kind == old.kind {
		return fmt.Errorf("--kind %s: that is the example of this repository; write the name of your "+
			"resource, like Widget", new.kind)
	}
	oldKind, _ := old.lower()
	kind, plural := new.lower()
	words, why := []string{kind, plural, new.kind, new.plural}, ""
	for _, word := range words {
		if token.IsKeyword(word) || types.Universe.Lookup(word) != nil {
			why = word + " has a meaning in Go"
		}
	}
	for _, file := range sortedKeys(files) {
		if path.Ext(file) != ".go" || !strings.Contains(strings.ToLower(files[file]), oldKind) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, files[file], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for node := range ast.Preorder(parsed) {
			if name, is := node.(*ast.Ident); is && why == "" && slices.Contains(words, name.Name) {
				why = name.Name + " is a name in " + file
			}
		}
	}
	return firstOf(refusal{why != "", fmt.Sprintf("--kind %s: %s already; choose another kind, like Acme%s",
		new.kind, why, new.kind)})
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
