// Package conformance tests, from the outside and on a real API server, what a controller of
// Websites has to do. The controller is a program that the tests start:
//
//	go test ./website/conformance            # on a cluster that it starts
//	go test ./website/conformance -cluster   # on that of KUBECONFIG
//
// What is not about Websites is in the package suite, below internal/. There is one registry for
// all tests, in their own process. It can fail for one namespace alone.
package conformance
