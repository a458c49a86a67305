// Package monitoring has only tests. They check what artifacts/monitoring has: with promtool and,
// on a control plane, with a real Prometheus that reads the metrics of the real controller.
package monitoring
