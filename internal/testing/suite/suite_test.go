package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

func TestClusterWithoutAnAuditLogIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig.yaml")
	must.Do(t, os.WriteFile(file, []byte(`{current-context: a, contexts: [{name: a, context: {cluster: a}}],
		clusters: [{name: a, cluster: {server: "https://127.0.0.1"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	if err := connect(); err == nil || !strings.Contains(err.Error(), "no cluster for tests") {
		t.Errorf("got %v, want that it is no cluster for tests", err)
	}
}
