// Package apiserver holds the API server in memory, of explore/apiserver, to a real one: random
// sequences of requests go to both, and the answers and the events of watches are compared, but for
// UIDs, times, and the values of resourceVersions. The real one is on a control plane of its own,
// whose controllers are stopped.
package apiserver
