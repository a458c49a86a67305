// Package conformance holds a controller of Foos against a real API server and proves, from the
// outside, what such a controller has to do. The controller is a program that the tests start:
//
//	make test                                             # everything, with a cluster of its own
//	go test ./conformance                                 # with the cluster of KUBECONFIG
//	go test ./conformance -controller 'path/to/program'   # any other program
//
// The program finds the cluster through KUBECONFIG and ends with 0 on SIGTERM. It must be the
// only controller of Foos in the cluster. Tests of how a program starts and ends run one after
// the other, each with processes of its own. All other tests then share one process and run in
// parallel, each in a namespace of its own.
package conformance
