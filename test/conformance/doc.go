// Package conformance tests, from the outside and on a real API server, what a controller of Foos
// has to do. The controller is a program that the tests start:
//
//	make conformance                                      # with a cluster that it starts
//	go test ./conformance                                 # with the cluster of KUBECONFIG
//	go test ./conformance -controller 'path/to/program'   # any other program
//
// The program finds the cluster through KUBECONFIG and exits with 0 on SIGTERM. It must be the only
// controller of Foos in the cluster. The tests of how a program starts and ends run one after the
// other, each with its own processes. Then all other tests share one process and run in parallel,
// each in its own namespace.
package conformance
