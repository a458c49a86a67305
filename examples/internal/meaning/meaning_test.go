package meaning

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

// exported matches the names of this package that others use.
var exported = regexp.MustCompile(`\b(ControllerName|FooKind|FooUIDLabel|ManagedByLabel|` +
	`Reason[A-Z]\w+|NewDeployment|SetOwnedFields|DesiredStatus|ReadyCondition|NotReady|RolledOut|` +
	`DesiredReplicas|NameTaken|TerminatingStatus)\b`)

func TestFooMeansTheSameEverywhere(t *testing.T) {
	want := must.Get(os.ReadFile("../../../deployment.go"))(t)
	got := must.Get(os.ReadFile("deployment.go"))(t)
	got = bytes.Replace(got, []byte("package meaning"), []byte("package main"), 1)
	got = exported.ReplaceAllFunc(got, func(name []byte) []byte {
		return []byte(strings.ToLower(string(name[:1])) + string(name[1:]))
	})
	if !bytes.Equal(got, want) {
		t.Errorf("deployment.go differs from the one in the root: copy it again, with upper-case "+
			"initials for %v", exported)
	}
}
