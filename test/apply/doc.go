// Package apply shows on a real API server what docs/server-side-apply.md says, and measures what a
// status costs that is applied. It starts a control plane of its own.
package apply
