package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEverythingIsRenamed(t *testing.T) {
	dns := namesOf(t, "DNSRecord", "")
	dns.name, dns.module = "dns", "github.com/Acme/DNS"
	addon := namesOf(t, "Addon", "")
	person := namesOf(t, "Person", "people")
	foobar, food := namesOf(t, "FooBar", ""), namesOf(t, "Food", "")
	tests := []struct {
		to              names
		file, old, want string
	}{
		{dns, "", "pkg/apis/samplecontroller/v1alpha1/foo.go", "pkg/apis/things/v1beta1/dnsrecord.go"},
		{dns, "a.go", "newFoo(fooClient, foos, isFoo, foosByName)",
			"newDNSRecord(dnsrecordClient, dnsrecords, isDNSRecord, dnsrecordsByName)"},
		{dns, "a.go", "TestNewFooGetsOneOfManyFoos", "TestNewDNSRecordGetsOneOfManyDNSRecords"},
		{dns, "a.go", "fooscheme.AddToScheme(foofake)", "dnsrecordscheme.AddToScheme(dnsrecordfake)"},
		{dns, "a.go", `import "example.com/sample-controller/pkg"`, `import "github.com/Acme/DNS/pkg"`},
		{dns, "a.go", "-name example.com/sample-controller:v1", "-name github.com/acme/dns:v1"},
		{dns, "a.yaml", "newName: example.com/sample-controller", "newName: github.com/acme/dns"},
		{dns, "a.md", "registry.example.com/sample-controller", "registry.example.com/dns"},
		{dns, "a.mod", "module example.com/sample-controller/test", "module github.com/Acme/DNS/test"},
		{dns, "a.sh", "crd/foos.samplecontroller.k8s.io", "crd/dnsrecords.things.acme.dev"},
		{dns, "a.go", "f.Samplecontroller().V1alpha1()", "f.Things().V1beta1()"},
		{dns, "a.yaml", "samplecontroller.k8s.io/v1alpha1", "things.acme.dev/v1beta1"},
		{dns, "a.yaml", "config.kwok.x-k8s.io/v1alpha1", "config.kwok.x-k8s.io/v1alpha1"},
		{dns, "a.yaml", "node.k8s.io/v1alpha1 v1alpha12", "node.k8s.io/v1alpha1 v1alpha12"},
		{dns, "a.go", "path=foos,shortName=fo,categories=all",
			"path=dnsrecords,shortName=dr,categories=all"},
		{dns, "a.sum", "SgsVHtfooshd footprint", "SgsVHtfooshd footprint"},
		{dns, "a.md", "a Foo's, “Foo”—foo…Foos", "a DNSRecord's, “DNSRecord”—dnsrecord…DNSRecords"},
		{person, "a.md", "a Foo of the Foos; foos", "a Person of the People; people"},
		{addon, "a.md", "A Foo and a `foo`; a\n// Foo; beta Foo; a: Foo; schema foo",
			"An Addon and an `addon`; an\n// Addon; beta Addon; a: Addon; schema addon"},
		{addon, "a.md", "a Deployment of a Foo", "a Deployment of an Addon"},
		{addon, "a.md", "TestOfAFoo [a](#a-foo-is) data-foo", "TestOfAnAddon [a](#an-addon-is) data-addon"},
		{foobar, "a.go", "newFoo Foos foos fooscheme", "newFooBar FooBars foobars foobarscheme"},
		{food, "a.go", "newFoo Foos foos foofake", "newFood Foods foods foodfake"},
	}
	for _, test := range tests {
		r := newRenamer([]names{old}, test.to, []string{"fooscheme", "foofake", "foo", "foos", "metav1"})
		if got := r.rename(test.file, test.old); got != test.want {
			t.Errorf("%s: got %q, want %q", test.old, got, test.want)
		}
	}
}

func TestRenamedCodeIsFormatted(t *testing.T) {
	const text = "package a\n\ntype b struct {\n\tfoo int\n\tlonger string\n}\n"
	r := newRenamer([]names{old}, namesOf(t, "Gadget", ""), nil)
	const want = "package a\n\ntype b struct {\n\tgadget int\n\tlonger string\n}\n"
	if got, err := r.renameFile("a.go", text); err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	if _, err := r.renameFile("a.go", "package { foo"); err == nil {
		t.Error("text that is not Go code gives no error")
	}
}

// promtool tests the alerts of Foos. Those of Websites have the same expressions.
func TestAlertsOfTheWebsiteAreTested(t *testing.T) {
	r := thisRepository(t)
	const file = "artifacts/monitoring/prometheusrule.yaml"
	alert := regexp.MustCompile(`- alert: .*? labels: `)
	paused := strings.NewReplacer(` reason!="DeploymentPaused",`, "", `, reason!="DeploymentPaused"`, "")
	alerts := func(text string) []string {
		return alert.FindAllString(paused.Replace(strings.Join(strings.Fields(text), " ")), -1)
	}
	tested := alerts(newRenamer([]names{r.names}, r.example, nil).rename(file, r.files[file]))
	found := alerts(r.files[example+"/"+file])
	for _, one := range found {
		if !slices.Contains(tested, one) {
			t.Errorf("no test knows %s", one)
		}
	}
	if len(found) == 0 {
		t.Error("found no alerts")
	}
}
