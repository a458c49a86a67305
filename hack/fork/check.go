package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	dnsLabel      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	kubeVersion   = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	camelCase     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,49}$`) // so that KIND-uid can be a label
	lowerWord     = regexp.MustCompile(`^[a-z][a-z0-9]{0,62}$`)
	pathElement   = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*$`)
	majorVersion  = regexp.MustCompile(`^v[0-9]+$`)
	goIdentifier  = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	hostOfModules = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*\.[a-z0-9-]*[a-z0-9]$`)
)

// checkNames returns the names of the fork, or an error that says what is wrong and what to write.
func checkNames(n names, resource string) (names, error) {
	n.kind = strings.TrimSpace(n.kind)
	if err := errors.Join(checkModule(n.module), checkGroup(n.group), checkVersion(n.version),
		checkKind(n.kind)); err != nil {
		return names{}, err
	}
	first, _, _ := strings.Cut(n.group, ".")
	n.pkg = strings.ReplaceAll(first, "-", "")
	n.goGroup = initial(n.pkg)
	n.plural = pluralLike(n.kind, cmp.Or(resource, strings.ToLower(goPlural(n.kind))))
	if n.name == "" {
		n.name = strings.ToLower(n.kind)
		if called := n.name + "-controller"; len(called) <= 63 {
			n.name = called
		}
	}
	n.article = cmp.Or(n.article, articleOf(n.kind))
	short := n.short
	n.short = cmp.Or(short, shortName(n.kind))
	return n, errors.Join(checkPackage(n.pkg), checkPlural(n, resource), checkName(n.name),
		checkShort(short), checkArticle(n.article))
}

// checkModule is a short form of golang.org/x/mod/module.CheckPath.
func checkModule(module string) error {
	wrong := func(why string) error {
		return fmt.Errorf("--module %q: %s; write a path like github.com/acme/widgets", module, why)
	}
	elements := strings.Split(module, "/")
	switch {
	case module == "":
		return errors.New("--module is missing; write a path like github.com/acme/widgets")
	case !hostOfModules.MatchString(elements[0]):
		return wrong("the first element must be a domain")
	case majorVersion.MatchString(elements[len(elements)-1]):
		return wrong("a new module begins at v0, and has no version in its path")
	case len(elements) < 2:
		return wrong("it needs a path after the domain, because an image has this name, too")
	case strings.HasSuffix(module, ".git"):
		return wrong("a module has no .git at its end")
	}
	for _, element := range elements {
		if !pathElement.MatchString(element) || strings.HasSuffix(element, ".") {
			return wrong(fmt.Sprintf("%q cannot be an element of a module path", element))
		}
	}
	return nil
}

func checkGroup(group string) error {
	wrong := func(why string) error {
		return fmt.Errorf("--group %q: %s; write a domain of yours, like widgets.acme.dev", group, why)
	}
	labels := strings.Split(group, ".")
	switch {
	case group == "":
		return errors.New("--group is missing; write a domain of yours, like widgets.acme.dev")
	case len(labels) < 2:
		return wrong("a group needs a dot")
	case len(group) > 180: // the CRD is called PLURAL.GROUP
		return wrong("it is longer than 180 characters")
	case builtinGroups()[group], group == "k8s.io", group == "kubernetes.io":
		return wrong("it is a group of Kubernetes itself")
	}
	for _, label := range labels {
		if !dnsLabel.MatchString(label) {
			return wrong(fmt.Sprintf("%q is not a DNS label (a-z, 0-9, and - between them)", label))
		}
	}
	return nil
}

// checkPackage refuses what cannot name a Go package. The name of another package does no harm:
// the generators then choose an alias.
func checkPackage(pkg string) error {
	special := map[string]bool{"main": true, "internal": true, "vendor": true, "testdata": true}
	switch {
	case !goIdentifier.MatchString(pkg):
		return fmt.Errorf("--group: its first part, %s, becomes a Go package and must begin with a "+
			"letter; write another, like widgets.acme.dev", pkg)
	case token.IsKeyword(pkg) || types.Universe.Lookup(pkg) != nil || special[pkg]:
		return fmt.Errorf("--group: its first part, %s, becomes a Go package, but has a meaning in "+
			"Go; write another, like %ss.acme.dev", pkg, pkg)
	}
	return nil
}

func checkVersion(version string) error {
	if kubeVersion.MatchString(version) {
		return nil
	}
	return fmt.Errorf("--version %q: write a version as Kubernetes has them: v1alpha1, v1beta1 or v1",
		version)
}

func checkKind(kind string) error {
	switch {
	case kind == "":
		return errors.New("--kind is missing; write the name of your resource, like Widget")
	case !camelCase.MatchString(kind):
		return fmt.Errorf("--kind %q: write an upper-case letter, and then up to 49 letters and "+
			"digits, like Widget or DNSRecord", kind)
	case builtinNames()[strings.ToLower(kind)]:
		return fmt.Errorf("--kind %s: kubectl knows a resource of Kubernetes by that name; choose "+
			"another, like Acme%s", kind, kind)
	}
	return nil
}

func checkPlural(n names, resource string) error {
	kind, plural := n.lower()
	switch {
	case resource != "" && !lowerWord.MatchString(resource):
		return fmt.Errorf("--plural %q: write up to 63 lower-case letters and digits, like %s",
			resource, strings.ToLower(goPlural(n.kind)))
	case plural == kind:
		return fmt.Errorf("--plural %s is the kind itself; write another word, like %slist", plural, kind)
	case builtinNames()[plural]:
		return fmt.Errorf("--plural %s: kubectl knows a resource of Kubernetes by that name; choose "+
			"another kind or plural", plural)
	}
	return nil
}

// checkShort checks a short name that somebody has chosen.
func checkShort(short string) error {
	switch {
	case short != "" && !lowerWord.MatchString(short):
		return fmt.Errorf("--short %q: write some lower-case letters and digits, like wi", short)
	case builtinNames()[short]:
		return fmt.Errorf("--short %s: kubectl knows a resource of Kubernetes by that name; choose "+
			"another", short)
	}
	return nil
}

func checkArticle(article string) error {
	if article == "a" || article == "an" {
		return nil
	}
	return fmt.Errorf("--article %q: write a or an, whichever is said before the kind", article)
}

func checkName(name string) error {
	if dnsLabel.MatchString(name) && name[0] >= 'a' {
		return nil
	}
	return fmt.Errorf("--name %q: write a DNS label that begins with a letter (a-z, 0-9, and - "+
		"between them, up to 63), like widget-controller", name)
}

// checkNotInScripts refuses a name for the controller that the scripts use for something else: the
// program is built beside the tools that they call.
func checkNotInScripts(files map[string]string, name, old string) error {
	word := regexp.MustCompile(`(?m)(^|[^\w-])` + regexp.QuoteMeta(name) + `($|[^\w-])`)
	for _, file := range sortedKeys(files) {
		text := strings.ReplaceAll(files[file], old, "")
		if strings.HasPrefix(text, "#!") && word.MatchString(text) {
			return fmt.Errorf("--name %s: %s uses this word for something else; write another, like "+
				"%s-controller", name, file, name)
		}
	}
	return nil
}

// checkDir returns the absolute path of the folder to write, which must be new or empty.
func checkDir(dir, root string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(absolute)
	inside := strings.HasPrefix(absolute+string(filepath.Separator), root+string(filepath.Separator))
	switch {
	case err == nil && len(entries) > 0:
		return "", fmt.Errorf("%s is not empty; write a folder that does not exist", dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%w; write a folder that does not exist", err)
	case inside:
		return "", fmt.Errorf("%s is in this repository; write a folder beside it, like ../widgets", dir)
	case strings.ContainsAny(absolute, " \t\n"):
		return "", fmt.Errorf("%q contains a space, which the local control plane cannot handle; "+
			"write another folder", absolute)
	}
	if info, err := os.Stat(filepath.Dir(absolute)); err != nil || !info.IsDir() {
		return "", fmt.Errorf("there is no folder %s to write into; make it first",
			filepath.Dir(absolute))
	}
	return absolute, nil
}
