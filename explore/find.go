package explore

import "testing"

// Finding is what is wrong in a case.
type Finding struct {
	Case    string // the name of its test: "TestExplore/Crash/scale/update-deployments-x-1/before"
	OnFault bool   // something went wrong on purpose before
	Problem string
}

// found, if it is set, gets what is wrong, and no test fails.
var found func(Finding)

// Find explores a controller as Test does, but returns what is wrong, and does not fail. It must
// not run beside another Find or Test.
func Find(t *testing.T, c Controller) (findings []Finding) {
	t.Helper()
	found = func(f Finding) { findings = append(findings, f) }
	defer func() { found = nil }()
	Test(t, c)
	return findings
}
