package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/must"
	processes "example.com/sample-controller/internal/testing/suite/process"
)

var onCluster = flag.Bool("cluster", false, "test the program, on the cluster of KUBECONFIG")

const (
	// patience is how long a test waits for an expected change.
	patience = 3 * time.Minute
	// account is the ServiceAccount whose permissions are in artifacts/deploy.
	account = "system:serviceaccount:sample-controller:sample-controller"
	// root is the repository, seen from the folder in which the program is put together.
	root      = "../../../"
	artifacts = root + "docs/tutorial/14-versions/artifacts/"
)

// world is a cluster that has the CustomResourceDefinition and the permissions.
type world struct {
	t          *testing.T
	program    string
	kubeconfig string // of the program: it acts as its ServiceAccount
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	w := &world{t: t, program: filepath.Join(dir, "program"), kubeconfig: filepath.Join(dir, "config")}
	if output, err := exec.Command("go", "build", "-o", w.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	config := must.Get(clientcmd.NewDefaultClientConfigLoadingRules().Load())(t)
	for _, user := range config.AuthInfos {
		user.Impersonate = account
	}
	must.Do(t, clientcmd.WriteToFile(*config, w.kubeconfig))
	w.kubectl("", "apply", "-f", root+"artifacts/examples/crd.yaml")
	w.kubectl("", "apply", "-k", artifacts+"deploy")
	return w
}

// try runs kubectl, with stdin as its input, and returns what it prints.
func (w *world) try(stdin string, args ...string) (string, error) {
	kubectl := root + ".local/bin/kubectl"
	if _, err := os.Stat(kubectl); err != nil {
		kubectl = "kubectl"
	}
	command := exec.Command(kubectl, args...)
	command.Stdin = strings.NewReader(stdin)
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

func (w *world) kubectl(stdin string, args ...string) string {
	w.t.Helper()
	output, err := w.try(stdin, args...)
	if err != nil {
		w.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, output)
	}
	return output
}

// eventually waits until kubectl prints something that contains want.
func (w *world) eventually(want string, args ...string) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		output, _ := w.try("", args...)
		if strings.Contains(output, want) {
			return
		}
		if time.Since(begin) > patience {
			w.t.Fatalf("kubectl %s: want %q, got: %s", strings.Join(args, " "), want, output)
		}
	}
}

// start starts the program, and returns a function that stops it.
func (w *world) start() (stop func()) {
	w.t.Helper()
	program := must.Get(processes.Start(exec.Command(w.program, "--leader-elect",
		"--metrics-bind-address=0", "--leader-elect-resource-namespace=sample-controller",
		"--health-probe-bind-address=0"), w.kubeconfig))(w.t)
	stop = sync.OnceFunc(func() {
		if err := program.Stop(); err != nil || w.t.Failed() {
			w.t.Errorf("%v; the program printed:\n%s", err, program.Output())
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// fields prints the fields of the Foo "web" that matter here, as they are in a version.
func fields(version, path string) []string {
	return []string{"get", "foos." + version + ".samplecontroller.k8s.io/web", "-o",
		"jsonpath={.spec" + path + "} {.spec.replicas}"}
}

func foo(version, spec string) string {
	return fmt.Sprintf("{apiVersion: samplecontroller.k8s.io/%s, kind: Foo, metadata: {name: web}, "+
		"spec: %s}", version, spec)
}

// TestOnCluster does what the page does not: it applies on the server, overwrites the caBundle, and
// stops the webhook in both states.
func TestOnCluster(t *testing.T) {
	if !*onCluster {
		t.Skip("needs -cluster")
	}
	w := newWorld(t)
	w.kubectl("", "apply", "-k", artifacts+"1-added")
	stop := w.start()
	getBundle := []string{"get", "crd/foos.samplecontroller.k8s.io", "-o",
		"jsonpath={.spec.conversion.webhook.clientConfig.caBundle}"}
	w.eventually("LS0t", getBundle...)
	w.kubectl("", "apply", "-k", artifacts+"2-served")
	asAlpha, asBeta := fields("v1alpha1", ".deploymentName"), fields("v1beta1", ".deployment.name")

	apply := func(version, spec string) {
		t.Helper()
		// In the first moments, the API server may not serve the new version yet.
		for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			output, err := w.try(foo(version, spec), "apply", "--server-side", "-f", "-")
			if err == nil {
				break
			}
			if time.Since(begin) > patience {
				t.Fatalf("applying %s of %s: %s", spec, version, output)
			}
		}
	}
	for _, stored := range []string{"2-served", "3-stored"} {
		w.kubectl("", "apply", "-k", artifacts+stored)
		apply("v1alpha1", "{deploymentName: web, replicas: 2}")
		w.eventually("web 2", asBeta...)
		apply("v1beta1", "{deployment: {name: web-2}}") // no more replicas: the default
		w.eventually("web-2 1", asAlpha...)
		apply("v1alpha1", "{deploymentName: web, replicas: 2}")
		w.eventually("web 2", asBeta...)
		w.kubectl("", "wait", "--for=condition=Ready", "--timeout=2m", "foo/web")

		// Somebody overwrites the caBundle.
		w.kubectl("", "patch", "crd/foos.samplecontroller.k8s.io", "--type=merge", "-p",
			`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`)
		w.eventually("LS0t", getBundle...)
		w.eventually("web 2", asBeta...)
		w.eventually("web 2", asAlpha...)

		// Without the webhook, only the version that is stored can be read, and written.
		works, fails := "v1alpha1", asBeta
		if stored == "3-stored" {
			works, fails = "v1beta1", asAlpha
		}
		stop()
		w.eventually("conversion webhook", fails...)
		w.kubectl("", "scale", "foos."+works+".samplecontroller.k8s.io/web", "--replicas=3")
		if stored == "3-stored" {
			w.kubectl("", "create", "namespace", "versions-gone")
			w.kubectl(foo("v1beta1", "{deployment: {name: web}}"), "create", "-n", "versions-gone",
				"-f", "-")
			w.kubectl("", "delete", "namespace", "versions-gone", "--timeout=2m")
		}
		stop = w.start()
		w.eventually("web 3", asBeta...)
		w.eventually("web 3", asAlpha...)
		w.eventually("3", "get", "deployment/web", "-o", "jsonpath={.status.availableReplicas}")
		w.kubectl("", "delete", "foo/web")
	}

	// A Deployment that the old controller has made goes with its Foo, even without v1alpha1.
	apply("v1alpha1", "{deploymentName: web}")
	w.kubectl("", "wait", "--for=condition=Ready", "--timeout=2m", "foo/web")
	stop()
	w.kubectl("", "patch", "deployment/web", "--type=json", "-p", `[{"op": "replace",
		"path": "/metadata/ownerReferences/0/apiVersion", "value": "`+alpha+`"}]`)
	stop = w.start()
	w.eventually(beta, "get", "deployment/web", "-o", "jsonpath={.metadata.ownerReferences}")
	w.drop(stop)
	w.kubectl("", "delete", "foo/web")
	w.kubectl("", "wait", "--for=delete", "--timeout=2m", "deployment/web")
}

// drop stops serving v1alpha1, and stops the program. As long as managedFields name v1alpha1, an
// apply needs the webhook all the same.
func (w *world) drop(stop func()) {
	w.kubectl("", "label", "foo/web", "written=again") // in v1beta1
	w.kubectl("", "apply", "-k", artifacts+"4-dropped")
	for served := alpha; strings.Contains(served, alpha); served = w.kubectl("", "api-versions") {
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	manifest := foo("v1beta1", "{deployment: {name: web}, replicas: 2}")
	output, err := w.try(manifest, "apply", "--server-side", "-f", "-")
	if err == nil || !strings.Contains(output, "conversion webhook") {
		w.t.Errorf("applying without the webhook: got %q, want a failed conversion", output)
	}
	w.kubectl("", "label", "foo/web", "patched=yes") // a patch needs none
	forget := exec.Command(root+"docs/tutorial/14-versions/forget", "v1alpha1")
	path := must.Get(filepath.Abs(root + ".local/bin"))(w.t)
	forget.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	if output, err := forget.CombinedOutput(); err != nil {
		w.t.Fatalf("forget: %v: %s", err, output)
	}
	w.kubectl(manifest, "apply", "--server-side", "-f", "-")
}
