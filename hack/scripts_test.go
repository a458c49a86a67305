// Package hack has only tests: they check that the scripts beside them do what they promise.
package hack

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// script runs a script of this folder, or any command, at the root of the repository, and returns
// what it prints.
func script(t *testing.T, stdin, name string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = ".."
	command.Stdin = strings.NewReader(stdin)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err = command.Run()
	return out.String(), problems.String(), err
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	stdout, stderr, err := script(t, "", name, args...)
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, stderr)
	}
	return stdout
}

func TestKubeconfigOfAClusterThatIsNotUpLeadsNowhere(t *testing.T) {
	t.Setenv("KUBECONFIG", "of the user")
	for command, want := range map[string]string{
		"hack/cluster kubeconfig never-was": "hack/cluster up never-was", "make -s kubeconfig CLUSTER=A_b": "a-z",
		"HACK_JOB=1 hack/cluster kubeconfig": "no setting", "HACK_JOB=1 make -s kubeconfig": "no setting",
	} {
		path, problem, err := script(t, "", "bash", "-c",
			`lines=$(`+command+`) && failed=0 || failed=1; eval "$lines"; printf %s "$KUBECONFIG"; exit $failed`)
		_, nowhere := clientcmd.BuildConfigFromFlags("", path)
		if err == nil || !strings.Contains(problem, want) || !strings.Contains(fmt.Sprint(nowhere), "is-not-up") {
			t.Errorf("%s: %v, %s; kubectl would use %q: %v", command, err, problem, path, nowhere)
		}
	}
}

// If you type at once what make says, the API server serves Foos already.
func TestHintFollowsTheCustomResourceDefinition(t *testing.T) {
	for _, target := range []string{"run", "lens", "cluster-foos"} {
		before, _, hinted := strings.Cut(output(t, "make", "-n", target), "to use it, type in any terminal:")
		if !hinted || !strings.Contains(before, "--for=condition=Established") {
			t.Errorf("make %s waits for no CustomResourceDefinition before its hint, or has none", target)
		}
	}
}

func TestSecondControllerIsRefused(t *testing.T) {
	for _, target := range []string{"run", "lens"} {
		_, problem, err := script(t, "", "bash", "-c", `. hack/env; lock "controller on never-was"
			make CLUSTER=never-was -o up -o build -o lens-build -o foos `+target)
		if err == nil || !strings.Contains(problem, "stop that one") {
			t.Errorf("make %s: got %v, %q; want an error that says what to do", target, err, problem)
		}
	}
}

// startCluster starts a cluster, once. It stops with this process.
var startCluster = sync.OnceValues(func() (*cluster.Cluster, error) {
	return cluster.Start("..", cluster.NewName())
})

// onCluster makes kubectl lead t to that cluster: it is the one in .local/bin, with a cache of its
// own. Such a test is long.
func onCluster(t *testing.T) {
	t.Helper()
	setting.Long(t)
	t.Setenv("KUBECONFIG", must.Get(startCluster())(t).Kubeconfig())
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("PATH", must.Get(filepath.Abs("../.local/bin"))(t)+":"+os.Getenv("PATH"))
}

// The API server accepts what the controller writes for random Foos.
func TestRandomFoosOnTheAPIServer(t *testing.T) {
	onCluster(t)
	kubeconfig := os.Getenv("KUBECONFIG")
	output(t, "make", "foos", "CLUSTER="+filepath.Base(filepath.Dir(kubeconfig)))
	output(t, "go", "test", "-count=1", "-run", "^FuzzWhatIsWritten$", ".", "-fuzz-kubeconfig", kubeconfig,
		"-fuzz-random", "300")
	output(t, "kubectl", "delete", "-f", "artifacts/examples/crd.yaml")
}

func TestDemoLeavesNothingBehind(t *testing.T) {
	onCluster(t)
	all := func() string {
		t.Helper()
		found := output(t, "bash", "-c",
			"kubectl get namespaces,crds -o name; kubectl get foos -A -o name || :")
		if !strings.Contains(found, "namespace/default") {
			t.Fatalf("got %q, want at least the namespace default", found)
		}
		return found
	}
	local := filepath.Base(filepath.Dir(os.Getenv("KUBECONFIG")))
	for _, first := range []string{"", "kubectl create -f artifacts/examples/crd.yaml"} {
		output(t, "bash", "-c", first)
		before := all()
		stdout, stderr, err := script(t, "", "hack/demo", local)
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, stderr, stdout)
		}
		if !strings.Contains(stdout, "deployment.apps/example-foo   3/3") {
			t.Errorf("the Foo was not scaled:\n%s", stdout)
		}
		if after := all(); after != before {
			t.Errorf("the demo changed\n%sto\n%s", before, after)
		}
	}
	output(t, "bash", "-c", "kubectl delete -f artifacts/examples/crd.yaml")
}

// fakes stand for what hack/e2e and hack/demo call, and log it. As programs in Go do, the controller takes
// SIGINT back, and kubectl ends if it prints where nobody reads. To delete takes a controller.
var fakes = map[string]string{
	"hack/cluster": "", ".local/clusters/dev/kubeconfig.yaml": "", ".local/bin/make": "",
	".local/bin/sample-controller": `exec perl -e '$| = 1; open(STDOUT, ">>log"); print "started\n";
		$SIG{INT} = $SIG{TERM} = sub { print "ended\n"; exit }; sleep 1 while 1'`,
	".local/bin/kubectl": `[[ $1 != config ]] || { echo here; exit; }
		[[ $1 == get ]] || echo done || exit
		[[ $* != "get namespace/"*-demo* ]] || echo namespace/left
		[[ $* != "delete namespace "* ]] || until grep -qs started log || ((SECONDS > 5)); do sleep 0.1; done
		echo "$*" >>log
		[[ $* != *"$AT"* ]] || eval "$DO"`,
}

// Scripts change no cluster that they may not use, and remove what is theirs. Ctrl-C ends tee, too, so that
// nobody reads any more what they print.
func TestScriptsRemoveOnlyWhatIsTheirs(t *testing.T) {
	folder := place(t, "a")
	output(t, "cp", "-R", "artifacts", folder)
	for file, text := range fakes {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(folder, file), []byte("#!/usr/bin/env bash\n"+text), 0o700))
	}
	t.Setenv("PATH", folder+"/.local/bin:"+os.Getenv("PATH"))
	for _, test := range []struct{ command, at, do, want string }{
		{"hack/e2e another true", "", "", `^$`}, // it is not the current context
		{"hack/e2e here true", "get -k", "echo crd/foos", `^(get .*\n)+$`},
		{`. hack/env; lock "controller on dev"; hack/demo || exit`, "", "", `^$`},
		{"hack/e2e here true", "create namespace", "exit 1", `create namespace.*\n$`}, // it is another run's
		{"hack/e2e here true", "apply", "kill -INT 0", `delete -k (?s:.*)delete namespace/`},
		{"hack/e2e here true", "apply", "kill -HUP 0", `delete -k (?s:.*)delete namespace/`},
		{"hack/demo", "condition=Ready", "kill -INT 0",
			`(?s)started.*delete namespace.*create namespace.*delete namespace.*\nended\n.*delete crd/`},
	} {
		t.Setenv("AT", test.at)
		t.Setenv("DO", test.do)
		printed, problem, err := script(t, "", "bash", "-c",
			`cd "$0" && >log && set -m && { { `+test.command+`; } | tee out & wait $!; }`, folder)
		log := string(must.Get(os.ReadFile(folder + "/log"))(t))
		if !regexp.MustCompile(test.want).MatchString(log) {
			t.Errorf("%s, %s: %v, %s%s\nIt did:\n%s", test.command, test.do, err, printed, problem, log)
		}
	}
}

// Every user of a machine sees the arguments of a command, and reads a file that is written without
// a umask.
func TestScriptsAndPagesHideTokensAndKeys(t *testing.T) {
	found := output(t, "grep", "-rnE", "--exclude=*.go",
		`Bearer \$|--token="?\$|create token.*>|config view.*--raw`, "docs", "hack", "README.md")
	for line := range strings.Lines(found) {
		if !strings.Contains(line, "umask 077") && !strings.Contains(line, `<<<"Auth`) {
			t.Errorf("others can read a token or a key: %s", line)
		}
	}
}

// With the same versions, what they use is compiled once.
func TestControllerControlPlaneAndExamplesShareTheirModules(t *testing.T) {
	versions := func(module, program string) map[string]string {
		found := map[string]string{}
		for line := range strings.Lines(output(t, "go", "-C", module, "list", "-deps", "-f",
			"{{with .Module}}{{.Path}} {{.Version}}{{end}}", program)) {
			path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
			found[path] = version
		}
		return found
	}
	controller := versions(".", ".")
	for module, programs := range map[string]string{"hack/tools": "k8s.io/kubernetes/cmd/kube-apiserver",
		"examples": "./..."} {
		shared := 0
		for path, version := range versions(module, programs) {
			if controller[path] == "" || version == "" {
				continue
			}
			if shared++; version != controller[path] {
				t.Errorf("%s: go.mod has %s, %s/go.mod %s", path, controller[path], module, version)
			}
		}
		if shared < 20 {
			t.Errorf("the controller and %s share only %d modules", module, shared)
		}
	}
}
