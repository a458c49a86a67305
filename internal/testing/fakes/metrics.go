package fakes

import (
	"fmt"
	"strings"
	"testing"

	k8smetrics "k8s.io/component-base/metrics"

	"example.com/sample-controller/internal/testing/must"
)

// Gather returns what a registry serves, by name and labels: `name{label="value"}`.
func Gather(t *testing.T, registry k8smetrics.KubeRegistry) map[string]float64 {
	t.Helper()
	families := must.Get(registry.Gather())(t)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return values
}
