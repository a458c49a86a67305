// Package faults runs a controller of Foos while everything around it fails. Then the tests check
// that, when it is quiet again, every Foo has exactly its Deployment, statuses are true, nothing is
// orphaned, and nothing more is written.
//
//	make faults-long                    # the long version
//	go test ./faults -v                 # the short one
//	go test ./faults -v -seed 7         # the random choices of seed 7
//
// The tests start a cluster of their own, because they kill its etcd and its API server. Between
// the controller and the API server, a proxy injects faults. Users who create, change and delete
// Foos and Deployments talk to the API server directly. All random choices come from the seed, but
// when they take effect depends on the machine: a replay is similar, not identical.
//
// TestEveryCrash leaves less to chance: the controller dies at each of its writes.
package faults
