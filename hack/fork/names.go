package main

import (
	"regexp"
	"strings"
	"unicode"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/gengo/v2/namer"
	"k8s.io/gengo/v2/types"
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
}

// foo and website are the controllers that can be forked.
var (
	foo = names{
		module: "example.com/sample-controller", group: "samplecontroller.k8s.io", version: "v1alpha1",
		pkg: "samplecontroller", goGroup: "Samplecontroller", kind: "Foo", plural: "Foos", short: "fo",
		name: "sample-controller",
	}
	website = names{
		module: foo.module + "/" + example, group: "website.example.com", version: "v1alpha1",
		pkg: "website", goGroup: "Website", kind: "Website", plural: "Websites", short: "ws",
		name: "website-controller",
	}
)

// lower returns the kind and its plural in lower case, as in the name of the resource.
func (n names) lower() (kind, plural string) {
	return strings.ToLower(n.kind), strings.ToLower(n.plural)
}

// goPlural returns the plural that the generators would form. hack/update-codegen.sh tells them the
// plural all the same.
func goPlural(kind string) string {
	return namer.NewPublicPluralNamer(nil).Name(&types.Type{Name: types.Name{Name: kind}})
}

// pluralLike returns the plural in Go which, in lower case, is the resource: People for people.
func pluralLike(kind, resource string) string {
	if usual := goPlural(kind); strings.ToLower(usual) == resource {
		return usual
	}
	same := 0
	for same < min(len(kind), len(resource)) && strings.ToLower(kind)[same] == resource[same] {
		same++
	}
	return initial(kind[:same] + resource[same:])
}

// initial returns the text with an upper-case initial.
func initial(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// builtinNames returns the words by which kubectl finds a resource of Kubernetes: kinds, plurals and
// short names. kubectl get node shows Kubernetes' Nodes, even if another API has a Node. A test
// compares them with a control plane.
func builtinNames() map[string]bool {
	taken := map[string]bool{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if !strings.Contains(gvk.Version, "alpha") && !strings.Contains(gvk.Version, "beta") { // by default
			taken[strings.ToLower(gvk.Kind)], taken[strings.ToLower(goPlural(gvk.Kind))] = true, true
		}
	}
	for name := range strings.FieldsSeq("apiservice apiservices customresourcedefinition " +
		"customresourcedefinitions cj cm crd crds cs csr deploy ds ep ev hpa ing ip limits netpol no ns " +
		"pc pdb po pv pvc quota rc rs sa sc sts svc vac") {
		taken[name] = true
	}
	return taken
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

// vowel matches kinds that are spoken with a vowel first: an Addon, an HTTPCheck, an S3Bucket.
var vowel = regexp.MustCompile(`^(?:[AEIO]|[FHLMNRSX](?:[A-Z0-9]+(?:[A-Z][a-z]|$)|[0-9]))`)

// needsAn reports whether "an" is said before the kind. Some initialisms are spoken as words, and the
// O of One is not spoken as one.
func needsAn(kind string) bool {
	spokenAsWord := regexp.MustCompile(`^(?:One|FIFO|LAN|MAC|NAT|RAM|REST|ROM|SAML|SAN|SIM|SOAP)`)
	return vowel.MatchString(kind) && !spokenAsWord.MatchString(kind)
}
