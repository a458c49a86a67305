package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// grafanaTypes are packages of npm that need no others: the types that Grafana makes of its own
// schema, and the compiler that checks them.
var grafanaTypes = []string{"@grafana/grafana-foundation-sdk@0.0.21", "typescript@5.9.3"}

// The compiler reports each field of a literal that its type does not have.
func TestDashboardHasGrafanasTypes(t *testing.T) {
	folder, err := filepath.Abs(root + ".local/grafana")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	npm := exec.Command("npm", append([]string{"install", "--prefix=" + folder, "--no-save",
		"--ignore-scripts", "--no-audit", "--no-fund", "--cache=" + folder + "/cache",
		"--prefer-offline"}, grafanaTypes...)...)
	if output, err := npm.CombinedOutput(); err != nil {
		t.Skipf("not compared with Grafana's types, which npm has: %v\n%s", err, output)
	}
	for name, text := range map[string]string{
		"type.ts": readFile(t, "dashboard.ts"),
		"dashboard.ts": "import type { Dashboard } from './type';\nexport const dashboard: Dashboard = " +
			readFile(t, root+"artifacts/monitoring/dashboard.json"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tsc := exec.Command(folder+"/node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
		"--target", "es2022", "--module", "nodenext", "dashboard.ts")
	tsc.Dir = folder
	if output, err := tsc.CombinedOutput(); err != nil {
		t.Errorf("dashboard.json, after one line more: %v\n%s", err, output)
	}
}
