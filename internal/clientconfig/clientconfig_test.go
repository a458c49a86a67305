package clientconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/testing/must"
)

func write(t *testing.T, server, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"clusters":[{"name":"c","cluster":{"server":"` + server + `"}}],"current-context":"c",` +
		`"contexts":[{"name":"c","context":{"cluster":"c","namespace":"` + namespace + `"}}]}`
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFlagComesBeforeTheVariable(t *testing.T) {
	flag, variable := write(t, "https://flag", "a"), write(t, "https://variable", "")
	t.Setenv("KUBECONFIG", variable)
	for kubeconfig, want := range map[string]string{
		flag: "https://flag a", "": "https://variable default",
	} {
		config, namespace, err := LoadWithNamespace(kubeconfig)
		must.Do(t, err)
		if got := config.Host + " " + namespace; got != want {
			t.Errorf("--kubeconfig=%q: got %s, want %s", kubeconfig, got, want)
		}
		if config.QPS >= 0 {
			t.Errorf("got a limit of %v requests a second, want none", config.QPS)
		}
	}
}

func TestLoadSaysWhichServerItIs(t *testing.T) {
	t.Cleanup(klog.CaptureState().Restore)
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)

	must.Get(Load(write(t, "https://192.0.2.1:6443", "")))(t)

	klog.Flush()
	if got := log.String(); strings.Count(got, `server="https://192.0.2.1:6443"`) != 1 {
		t.Errorf("got the log %q, want it to name the server once", got)
	}
}

func TestNoClusterConfiguredSaysWhatToDo(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Load(""); err == nil || !strings.Contains(err.Error(), "make cluster") {
		t.Errorf("got error %v, want it to contain 'make cluster'", err)
	}
}
