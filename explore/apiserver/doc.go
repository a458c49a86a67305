// Package apiserver is a Kubernetes API server in memory, behind an http.RoundTripper.
package apiserver
