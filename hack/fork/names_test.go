package main

import (
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// namesOf returns the names of a fork of that kind.
func namesOf(t *testing.T, kind, resource string) names {
	t.Helper()
	n, err := checkNames(names{module: "github.com/acme/things", group: "things.acme.dev",
		version: "v1beta1", kind: kind}, resource)
	must.Do(t, err)
	return n
}

func TestNamesAreThoseOfTheRepository(t *testing.T) {
	files := thisRepository(t).files
	for folder, n := range map[string]names{"": foo, example + "/": website} {
		api := folder + "pkg/apis/" + n.pkg + "/" + n.version
		text := files[api+"/doc.go"] + files[api+"/types.go"]
		_, plural := n.lower()
		for _, want := range []string{"groupName=" + n.group + "\n", "groupGoName=" + n.goGroup + "\n",
			"path=" + plural + ",", "shortName=" + n.short + ",", "type " + n.kind + " struct"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", api, want)
			}
		}
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
	for kind, want := range map[string]bool{
		"Widget": false, "Addon": true, "HTTPCheck": true, "SSHKey": true, "S3Bucket": true, "NFS": true,
		"X509Cert": true, "MXRecord": true, "LDAPGroup": true, "MQTTBroker": true, "DNSRecord": false,
		"K8sQuota": false, "NATGateway": false, "SAMLClient": false, "OneShot": false, "Series": false,
		"Hook": false, "News": false,
	} {
		if got := needsAn(kind); got != want {
			t.Errorf("%s: got %t, want %t", kind, got, want)
		}
	}
}

func TestEverythingIsRenamed(t *testing.T) {
	dns := namesOf(t, "DNSRecord", "")
	dns.name, dns.module = "dns", "github.com/Acme/DNS"
	addon, person := namesOf(t, "Addon", ""), namesOf(t, "Person", "people")
	foobar, food := namesOf(t, "FooBar", ""), namesOf(t, "Food", "")
	tests := []struct {
		to              names
		file, old, want string
	}{
		{dns, "a.txt", "pkg/apis/samplecontroller/v1alpha1/foo.go", "pkg/apis/things/v1beta1/dnsrecord.go"},
		{dns, "a.txt", "newFoo(fooClient, foos, isFoo, foosByName)",
			"newDNSRecord(dnsrecordClient, dnsrecords, isDNSRecord, dnsrecordsByName)"},
		{dns, "a.txt", "TestNewFooGetsOneOfManyFoos", "TestNewDNSRecordGetsOneOfManyDNSRecords"},
		{dns, "a.txt", "fooscheme.AddToScheme(foofake)", "dnsrecordscheme.AddToScheme(dnsrecordfake)"},
		{dns, "a.go", "package a\n\nimport \"example.com/sample-controller/pkg\"\n",
			"package a\n\nimport \"github.com/Acme/DNS/pkg\"\n"},
		{dns, "a.go", "package a\n\ntype b struct {\n\tfoo    int\n\tlonger string\n}\n",
			"package a\n\ntype b struct {\n\tdnsrecord int\n\tlonger    string\n}\n"},
		{dns, "a.yaml", "newName: example.com/sample-controller", "newName: github.com/acme/dns"},
		{dns, "a.md", "registry.example.com/sample-controller", "registry.example.com/dns"},
		{dns, "go.mod", "module example.com/sample-controller/test", "module github.com/Acme/DNS/test"},
		{dns, "go.mod", "example.com/sample-controller/explore v0", "example.com/sample-controller/explore v0"},
		{dns, "a.sh", "crd/foos.samplecontroller.k8s.io", "crd/dnsrecords.things.acme.dev"},
		{dns, "a.txt", "f.Samplecontroller().V1alpha1()", "f.Things().V1beta1()"},
		{dns, "a.yaml", "samplecontroller.k8s.io/v1alpha1", "things.acme.dev/v1beta1"},
		{dns, "a.yaml", "config.kwok.x-k8s.io/v1alpha1", "config.kwok.x-k8s.io/v1alpha1"},
		{dns, "a.yaml", "node.k8s.io/v1alpha1 v1alpha12", "node.k8s.io/v1alpha1 v1alpha12"},
		{dns, "a.txt", "path=foos,shortName=fo,categories=all",
			"path=dnsrecords,shortName=dr,categories=all"},
		{dns, "a.sum", "SgsVHtfooshd footprint", "SgsVHtfooshd footprint"},
		{dns, "a.md", "a Foo's, “Foo”—foo…Foos", "a DNSRecord's, “DNSRecord”—dnsrecord…DNSRecords"},
		{person, "a.md", "a Foo of the Foos; foos", "a Person of the People; people"},
		{addon, "a.md", "A Foo and a `foo`; a\n// Foo; beta Foo; a: Foo; schema foo",
			"An Addon and an `addon`; an\n// Addon; beta Addon; a: Addon; schema addon"},
		{addon, "a.md", "a Deployment of a Foo", "a Deployment of an Addon"},
		{foobar, "a.txt", "newFoo Foos foos fooscheme", "newFooBar FooBars foobars foobarscheme"},
		{food, "a.txt", "newFoo Foos foos foofake", "newFood Foods foods foodfake"},
	}
	for _, test := range tests {
		imports := "\tfooscheme \"a\"\n\tfoofake \"b\"\n\tfoo \"c\"\n\tfoos \"d\"\n\tmetav1 \"e\"\n"
		got, err := renameFiles(map[string]string{test.file: test.old, "imports": imports}, []names{foo}, test.to)
		if err != nil || got[test.file] != test.want {
			t.Errorf("%s: got %q (%v), want %q", test.old, got[test.file], err, test.want)
		}
	}
	if _, err := renameFiles(map[string]string{"a.go": "package { foo"}, []names{foo}, dns); err == nil {
		t.Error("text that is not Go code gives no error")
	}
}
