package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"example.com/sample-controller/internal/testing/must"
)

// old are the names of this repository.
var old = names{
	module: "example.com/sample-controller", group: "samplecontroller.k8s.io",
	pkg: "samplecontroller", version: "v1alpha1", kind: "Foo", plural: "Foos", short: "fo",
	name: "sample-controller", goGroup: "Samplecontroller",
}

// namesOf returns the names of a fork of that kind.
func namesOf(t *testing.T, kind, resource string) names {
	t.Helper()
	n, err := checkNames(names{module: "github.com/acme/things", group: "things.acme.dev",
		version: "v1beta1", kind: kind}, resource)
	must.Do(t, err)
	return n
}

func TestNamesAreReadFromTheRepository(t *testing.T) {
	if r := thisRepository(t); r.names != old {
		t.Errorf("got %+v, want %+v", r.names, old)
	}
	if _, err := readNames(t.TempDir(), "a"); err == nil {
		t.Error("an empty folder gives no error")
	}
}

func TestNamesFollowFromTheKind(t *testing.T) {
	tests := []struct{ kind, resource, plural, wantResource, short, name string }{
		{"Widget", "", "Widgets", "widgets", "wi", "widget-controller"},
		{"DNSRecord", "", "DNSRecords", "dnsrecords", "dr", "dnsrecord-controller"},
		{"Policy", "", "Policies", "policies", "pol", "policy-controller"},
		{"FooBar", "", "FooBars", "foobars", "fb", "foobar-controller"},
		{"Food", "", "Foods", "foods", "fo", "food-controller"},
		{"Person", "people", "People", "people", "pe", "person-controller"},
		{"Bus", "", "Buses", "buses", "bu", "bus-controller"},
		{"NetShelf", "", "NetShelves", "netshelves", "ne", "netshelf-controller"}, // ns is taken
		{"HTTPKey", "", "HTTPKeys", "httpkeys", "hk", "httpkey-controller"},
		{"Api2Wish", "", "Api2Wishes", "api2wishes", "aw", "api2wish-controller"},
		{"DNSRecord", "dnsrecordset", "DNSRecordset", "dnsrecordset", "dr", "dnsrecord-controller"},
	}
	for _, test := range tests {
		n := namesOf(t, test.kind, test.resource)
		_, resource := n.lower()
		got := []string{n.plural, resource, n.short, n.name}
		want := []string{test.plural, test.wantResource, test.short, test.name}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s: got %q, want %q", test.kind, test.resource, got, want)
		}
	}
}

func TestArticlesAreThoseThatAreSpoken(t *testing.T) {
	for kind, want := range map[string]string{
		"Widget": "a", "Addon": "an", "HTTPCheck": "an", "SSHKey": "an", "S3Bucket": "an", "NFS": "an",
		"X509Cert": "an", "MXRecord": "an", "LDAPGroup": "an", "MQTTBroker": "an", "DNSRecord": "a",
		"K8sQuota": "a", "NATGateway": "a", "SAMLClient": "a", "OneShot": "a", "Series": "a", "Hook": "a",
	} {
		if got := articleOf(kind); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestIrregularPluralsAreAskedFor(t *testing.T) {
	for kind, want := range map[string]bool{
		"Series": true, "Proof": true, "Knife": true, "Widget": false, "Class": false, "Bus": false,
	} {
		if got := irregular.MatchString(kind); got != want {
			t.Errorf("%s: got %t, want %t", kind, got, want)
		}
	}
}

// The expected plurals are what the plural namer of k8s.io/gengo/v2/namer returned.
func TestPluralsAreThoseOfTheGenerators(t *testing.T) {
	for kind, want := range map[string]string{
		"Foo": "Foos", "Box": "Boxes", "Waltz": "Waltzes", "Class": "Classes", "Gateway": "Gateways",
		"Registry": "Registries", "Branch": "Branches", "Wish": "Wishes", "Graph": "Graphs",
		"Knife": "Knives", "Wolf": "Wolves", "Cache": "Caches", "Endpoints": "Endpointses", "X": "X",
	} {
		if got := goPlural(kind); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

// TestForkedRepositoriesWork compares the rest, mainly short names, with a control plane.
func TestBuiltinNamesAreThoseOfClientGo(t *testing.T) {
	known, groups := builtinNames(), builtinGroups()
	notServed := map[string]bool{"APIGroup": true, "Eviction": true} // on their own, or by default
	for gvk := range scheme.Scheme.AllKnownTypes() {
		isResource := scheme.Scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if !isResource || strings.Contains(gvk.Version, "alpha") ||
			strings.Contains(gvk.Version, "beta") || notServed[gvk.Kind] {
			continue
		}
		if strings.Contains(gvk.Group, ".") && !groups[gvk.Group] {
			t.Errorf("group %s is missing from builtin.txt", gvk.Group)
		}
		if !known[strings.ToLower(gvk.Kind)] {
			t.Errorf("kind %s is missing from builtin.txt", gvk.Kind)
		}
	}
}

func TestPagesOfAForkNameWhatThereIs(t *testing.T) {
	var code strings.Builder
	for file, text := range thisRepository(t).files {
		if strings.HasSuffix(file, ".go") && !isGenerated(text) && !strings.HasPrefix(file, templates) {
			code.WriteString(text)
		}
	}
	quoted := regexp.MustCompile("`([A-Za-z][\\w./-]*)`")
	for _, page := range []string{"README.md.tmpl", "NEXT.md.tmpl"} {
		text := must.Get(os.ReadFile(page))(t)
		for _, match := range quoted.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join("../..", match[1]))
			_, besideTest := os.Stat(filepath.Join("../../test/conformance", match[1]))
			isWord := regexp.MustCompile(`\b` + regexp.QuoteMeta(match[1]) + `\b`).MatchString
			if err != nil && besideTest != nil && !isWord(code.String()) {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
}
