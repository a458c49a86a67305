package main

import (
	"encoding/base64"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"example.com/sample-controller/internal/testing/must"
	processes "example.com/sample-controller/internal/testing/suite/process"
)

var onCluster = flag.Bool("cluster", false, "test the program, on the cluster of KUBECONFIG")

const (
	// patience is how long a test waits for an expected change.
	patience = 3 * time.Minute
	// functions are what the lines of shell in this test use, in the folder of the repository.
	functions = `set -e -o pipefail
cd ../../..
PATH=$PWD/.local/bin:$PATH artifacts=docs/tutorial/14-versions/artifacts
alpha=foos.v1alpha1.samplecontroller.k8s.io beta=foos.v1beta1.samplecontroller.k8s.io
apply() { # apply VERSION SPEC FLAGS
  echo "{apiVersion: samplecontroller.k8s.io/$1, kind: Foo, metadata: {name: web}, spec: {$2}}" |
    kubectl apply --server-side -f - "${@:3}"
}
# get prints what matters here of the Foo, as it is in a version.
get() { kubectl get "$1/web" -o jsonpath='{.spec.deploymentName}{.spec.deployment.name} {.spec.replicas}'; }
`
)

// world is a cluster that has the CustomResourceDefinition and the permissions.
type world struct {
	t   *testing.T
	dir string // with the program, its kubeconfig and its certificate
}

func newWorld(t *testing.T) *world {
	w := &world{t, t.TempDir()}
	if output, err := exec.Command("go", "build", "-o", w.dir+"/program", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	must.Do(t, err)
	must.Do(t, os.WriteFile(filepath.Join(w.dir, "tls.crt"), certificate, 0o600))
	must.Do(t, os.WriteFile(filepath.Join(w.dir, "tls.key"), key, 0o600))
	w.do(`kubectl apply -f artifacts/examples/crd.yaml
		kubectl apply -k $artifacts/deploy || : # this cluster has no cert-manager, so some kinds are unknown
		kubectl apply -k $artifacts/1-added
		kubectl patch crd/foos.samplecontroller.k8s.io --type=merge -p 'spec: {conversion: {webhook: {
			clientConfig: {caBundle: ` + base64.StdEncoding.EncodeToString(certificate) + `}}}}'
		kubectl config view --raw --flatten >"$DIR/config" # with a token of the Pods
		token=$(kubectl create token -n sample-controller sample-controller)
		kubectl --kubeconfig="$DIR/config" config set-credentials pod --token="$token"
		kubectl --kubeconfig="$DIR/config" config set-context --current --user=pod`)
	return w
}

// try runs lines of shell until one fails.
func (w *world) try(lines string) (output string, err error) {
	command := exec.Command("bash", "-c", functions+lines)
	command.Env = append(os.Environ(), "DIR="+w.dir)
	printed, err := command.CombinedOutput()
	return string(printed), err
}

func (w *world) do(lines string) {
	w.t.Helper()
	if output, err := w.try(lines); err != nil {
		w.t.Fatalf("%s: %v: %s", lines, err, output)
	}
}

// eventually waits until the lines print something that contains want.
func (w *world) eventually(want, lines string) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		output, _ := w.try(lines)
		if strings.Contains(output, want) {
			return
		}
		if time.Since(begin) > patience {
			w.t.Fatalf("%s: want %q, got: %s", lines, want, output)
		}
	}
}

// start starts the program, and returns a function that stops it.
func (w *world) start() (stop func()) {
	w.t.Helper()
	program := must.Get(processes.Start(exec.Command(w.dir+"/program", "--leader-elect",
		"--metrics-bind-address=0", "--leader-elect-resource-namespace=sample-controller",
		"--webhook-cert-dir="+w.dir, "--health-probe-bind-address=0"), w.dir+"/config"))(w.t)
	stop = sync.OnceFunc(func() {
		if err := program.Stop(); err != nil || w.t.Failed() {
			w.t.Errorf("%v; the program printed:\n%s", err, program.Output())
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// TestOnCluster does what the page does not: it applies on the server, stops the webhook in both
// states, and gives the program no permissions but those in artifacts/deploy.
func TestOnCluster(t *testing.T) {
	if !*onCluster {
		t.Skip("needs -cluster")
	}
	w := newWorld(t)
	stop := w.start()
	for _, stored := range []string{"2-served", "3-stored"} {
		w.do(`kubectl apply -k $artifacts/` + stored)
		// In the first moments, the API server may not serve the new version yet.
		w.eventually("serverside-applied", `apply v1alpha1 'deploymentName: web, replicas: 2'`)
		w.eventually("web 2", `get $beta`)
		w.do(`apply v1beta1 'deployment: {name: web-2}'`) // no more replicas: the default
		w.eventually("web-2 1", `get $alpha`)
		w.do(`apply v1alpha1 'deploymentName: web, replicas: 2'`)
		w.eventually("web 2", `get $beta`)
		w.do(`kubectl wait --for=condition=Ready --timeout=2m foo/web`)

		// Without the webhook, only the version that is stored can be read, and written.
		works, fails := "$alpha", "$beta"
		if stored == "3-stored" {
			works, fails = fails, works
		}
		stop()
		w.eventually("conversion webhook", `get `+fails+` 2>&1`)
		w.do(`kubectl scale ` + works + `/web --replicas=3`)
		if stored == "3-stored" {
			w.do(`kubectl create namespace versions-gone
				apply v1beta1 'deployment: {name: web}' -n versions-gone
				kubectl delete namespace versions-gone --timeout=2m`)
		}
		stop = w.start()
		w.eventually("web 3", `get $beta`)
		w.eventually("web 3", `get $alpha`)
		w.eventually("3", `kubectl get deployment/web -o 'jsonpath={.status.availableReplicas}'`)
		w.do(`kubectl delete foo/web`)
	}

	// A Deployment that the old controller has made goes with its Foo, even without v1alpha1.
	w.do(`apply v1alpha1 'deploymentName: web'
		kubectl wait --for=condition=Ready --timeout=2m foo/web`)
	stop()
	w.do(`kubectl patch deployment/web --type=json -p '[{op: replace,
		path: /metadata/ownerReferences/0/apiVersion, value: samplecontroller.k8s.io/v1alpha1}]'`)
	stop = w.start()
	w.eventually(beta, `kubectl get deployment/web -o 'jsonpath={.metadata.ownerReferences}'`)
	w.do(`kubectl label foo/web written=again # in v1beta1
		kubectl apply -k $artifacts/4-dropped
		while kubectl api-versions | grep -q samplecontroller.k8s.io/v1alpha1; do sleep 0.1; done`)
	stop()
	// As long as managedFields name v1alpha1, an apply needs the webhook all the same.
	output, err := w.try(`apply v1beta1 'deployment: {name: web}, replicas: 2'`)
	if err == nil || !strings.Contains(output, "conversion webhook") {
		t.Errorf("applying without the webhook: got %q, want a failed conversion", output)
	}
	w.do(`kubectl label foo/web patched=yes # a patch needs none
		docs/tutorial/14-versions/forget v1alpha1
		apply v1beta1 'deployment: {name: web}, replicas: 2'
		kubectl delete foo/web
		kubectl wait --for=delete --timeout=2m deployment/web`)
}
