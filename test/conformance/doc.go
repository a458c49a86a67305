// Package conformance tests, from the outside and on a real API server, what a controller of Foos
// has to do. The controller is a program that the tests start:
//
//	make conformance                                      # with a cluster that it starts
//	go test ./conformance                                 # with the cluster of KUBECONFIG
//	go test ./conformance -controller 'path/to/program'   # any other program
//
// What is not about Foos is in the package suite, below internal/. Its doc comment says what a
// program has to do, and in which order the tests run.
package conformance
