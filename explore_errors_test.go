package main

import "example.com/sample-controller/explore"

// What the controller does about each error must be what the table in docs/reliability.md says. With
// -explore.every, each request gets each error.
func init() {
	checkOutcomes = explore.ErrorTable{
		Page: "docs/reliability.md",
		Columns: []explore.ErrorColumn{
			{Name: "discovery", Kinds: []string{"get-apis-samplecontroller.k8s.io-v1alpha1"}},
			{Name: "list", Kinds: []string{"list-foos", "list-deployments"}},
			{Name: "watch", Kinds: []string{"watch-foos", "watch-deployments"}},
			{Name: "get Foo", Kinds: []string{"get-foos"}},
			{Name: "get Deployment", Kinds: []string{"get-deployments"}},
			{Name: "create", Kinds: []string{"create-deployments"}},
			{Name: "patch", Kinds: []string{"patch-deployments"}},
			{Name: "delete", Kinds: []string{"delete-deployments"}},
			{Name: "status", Kinds: []string{"update-foos-status"}},
			{Name: "Event", Kinds: []string{"create-events"}},
		},
		Reported: blockedRetryDelay,
	}.Check
}
