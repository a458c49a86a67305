package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/must"
)

// useCluster makes a kubeconfig that leads to server the current one.
func useCluster(t *testing.T, file, server string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", Namespace: "mine"}
	config.Contexts["other"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	must.Do(t, clientcmd.WriteToFile(*config, file))
	t.Setenv("KUBECONFIG", file)
}

func TestClusterElsewhereIsRefused(t *testing.T) {
	useCluster(t, filepath.Join(t.TempDir(), "kubeconfig"), "https://cluster.example.com")
	started := filepath.Join(t.TempDir(), "started")
	err := run(t.Context(), []string{"--", "touch", started})
	if err == nil || !strings.Contains(err.Error(), "-any-cluster") {
		t.Errorf("got error %v, want one that says what allows it", err)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the program was started")
	}
}

func TestKubeconfigsLeadToTheProxyAndToOneCluster(t *testing.T) {
	folder := t.TempDir()
	useCluster(t, filepath.Join(folder, "kubeconfig"), "https://127.0.0.1:1")
	t.Setenv("PATH", os.Getenv("PATH")) // makeFolder changes it
	t.Setenv("KUBECACHEDIR", "")
	t.Setenv("KUBERC", "hostile")
	c := must.Get(findCluster())(t)
	made, undo, err := c.makeFolder(folder)
	must.Do(t, err)
	forProgram := filepath.Join(made, "program.yaml")
	must.Do(t, c.writeProxyConfig(forProgram, "http://127.0.0.1:2"))
	for file, want := range map[string]string{
		os.Getenv("KUBECONFIG"): "https://127.0.0.1:1", forProgram: "http://127.0.0.1:2",
	} {
		config := must.Get(clientcmd.LoadFromFile(file))(t)
		current := config.Contexts[config.CurrentContext]
		if got := config.Clusters[current.Cluster].Server; got != want {
			t.Errorf("%s leads to %s, want %s", file, got, want)
		}
		if len(config.Contexts) != 1 || current.Namespace != "mine" {
			t.Errorf("%s has %d contexts, the namespace is %q", file, len(config.Contexts),
				current.Namespace)
		}
	}
	if got := os.Getenv("KUBERC"); got != "off" {
		t.Errorf("the kuberc of the buttons is %q, want none", got)
	}
	undo()
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestCleanUpUndoesWhatIsNoted(t *testing.T) {
	root, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	fakeKubectl(t, `echo "kubectl $*" >>`+calls)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBECACHEDIR", "")
	t.Setenv("KUBERC", "")
	for _, test := range []struct{ namespace, want string }{
		{"", ""},
		{"lens", `kubectl -n lens patch foo/example-foo --type=merge -p {"metadata":{"finalizers":null}}` +
			"\nkubectl delete namespace lens --timeout=2m\n"},
	} {
		c := &cluster{kubeconfig: clientcmdapi.NewConfig()}
		folder, undo, err := c.makeFolder(root)
		must.Do(t, err)
		s := &session{folder: folder}
		must.Do(t, s.noteNamespace(test.namespace))
		undo()
		if got, _ := os.ReadFile(calls); string(got) != test.want {
			t.Errorf("%+v: called %q", test, got)
		}
	}
}

func TestFlags(t *testing.T) {
	o, err := parseFlags([]string{"-program", "./lens/", "-burst=7", "--", "go", "run", "-x"})
	if err != nil || !exists(o.root+"/lens/web") || o.program != "lens" || o.burst != 7 ||
		strings.Join(o.command, " ") != "go run -x" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range []string{"-program ../elsewhere", "-scenario none", "-record x.js",
		"-scenario create -record none/x.js"} {
		if _, err := parseFlags(strings.Fields(args)); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	o = must.Get(parseFlags([]string{"--", "/bin/echo", "a"}))(t)
	if p := must.Get(build(t.Context(), o, ""))(t); o.program != "" || p.title != "echo a" {
		t.Errorf("of a command, got %+v, %+v", o, p)
	}
}
