package main

import (
	"flag"
	"os/exec"
	"sync"
	"testing"
	"time"

	"example.com/sample-controller/docs/internal/shell"
	"example.com/sample-controller/internal/testing/must"
	processes "example.com/sample-controller/internal/testing/process"
)

var onCluster = flag.Bool("cluster", false, "test the program, on the cluster of KUBECONFIG")

// functions are what the lines of shell in this test use, in the folder of the repository. The
// program, its kubeconfig and its certificate are in $DIR.
const functions = `cd ../../..
PATH=$PWD/.local/bin:$PATH artifacts=docs/tutorial/14-versions/artifacts
alpha=foos.v1alpha1.samplecontroller.k8s.io beta=foos.v1beta1.samplecontroller.k8s.io
apply() { # apply VERSION SPEC FLAGS
  echo "{apiVersion: samplecontroller.k8s.io/$1, kind: Foo, metadata: {name: web}, spec: {$2}}" |
    kubectl apply --server-side -f - "${@:3}"
}
# get prints what matters here of the Foo, as it is in a version.
get() { kubectl get "$1/web" -o jsonpath='{.spec.deploymentName}{.spec.deployment.name} {.spec.replicas}'; }
# change makes the CustomResourceDefinition that of a folder, with the address of this program.
change() { kubectl kustomize "$artifacts/$1" | sed "s/127.0.0.1:9443/$WEBHOOK/" | kubectl apply -f -; }
old_is_gone() { ! kubectl api-versions | grep -q samplecontroller.k8s.io/v1alpha1; }
`

const setUp = `
go -C docs build -o "$DIR/program" ./.local/14-versions
(cd "$DIR" && go run "$(go env GOROOT)/src/crypto/tls/generate_cert.go" -host 127.0.0.1 \
  -ecdsa-curve P256 && mv cert.pem tls.crt && mv key.pem tls.key)
kubectl apply -f artifacts/examples/crd.yaml
kubectl apply -k $artifacts/deploy || : # this cluster has no cert-manager, so some kinds are unknown
change 1-added
kubectl patch crd/foos.samplecontroller.k8s.io --type=merge -p "spec: {conversion: {webhook: {
  clientConfig: {caBundle: $(base64 <"$DIR/tls.crt" | tr -d '\n')}}}}"
kubectl config view --raw --flatten >"$DIR/config" # with a token of the Pods
kubectl --kubeconfig="$DIR/config" config set-credentials pod \
  --token="$(kubectl create token -n sample-controller sample-controller)"
kubectl --kubeconfig="$DIR/config" config set-context --current --user=pod
`

// TestOnCluster does what the page does not: it applies on the server, stops the webhook in both
// states, and gives the program no permissions but those in artifacts/deploy.
func TestOnCluster(t *testing.T) {
	if !*onCluster {
		t.Skip("left out: docs/tutorial/versions_test.go runs it")
	}
	sh := &shell.Shell{Dir: t.TempDir(), Functions: functions, Patience: 3 * time.Minute}
	address := must.Get(processes.FreeAddress())(t)
	t.Setenv("WEBHOOK", address) // of this test alone: the page's program may run beside it
	sh.Run(t, setUp)
	start := func() (stop func()) {
		program := must.Get(processes.Start(exec.Command(sh.Dir+"/program", "--leader-elect",
			"--metrics-bind-address=0", "--leader-elect-resource-namespace=sample-controller",
			"--webhook-cert-dir="+sh.Dir, "--webhook-bind-address="+address,
			"--health-probe-bind-address=0"), sh.Dir+"/config"))(t)
		stop = sync.OnceFunc(func() {
			if err := program.Stop(); err != nil || t.Failed() {
				t.Errorf("%v; the program printed:\n%s", err, program.Output())
			}
		})
		t.Cleanup(stop)
		return stop
	}

	stop := start()
	for _, stored := range []string{"2-served", "3-stored"} {
		sh.Run(t, `change `+stored+`
			# In the first moments, the API server may not serve the new version yet.
			eventually apply v1alpha1 'deploymentName: web, replicas: 2'
			eventually prints 'web 2' get $beta
			apply v1beta1 'deployment: {name: web-2}' # no more replicas: the default
			eventually prints 'web-2 1' get $alpha
			apply v1alpha1 'deploymentName: web, replicas: 2'
			eventually prints 'web 2' get $beta
			kubectl wait --for=condition=Ready --timeout=2m foo/web`)

		// Without the webhook, only the version that is stored can be read, and written.
		stop()
		if stored == "2-served" {
			sh.Run(t, `eventually prints 'conversion webhook' get $beta
				kubectl scale $alpha/web --replicas=3
				kubectl create namespace versions-stay
				apply v1alpha1 'deploymentName: web' -n versions-stay
				kubectl delete namespace versions-stay --wait=false
				eventually prints 'conversion webhook' kubectl get namespace versions-stay -o jsonpath={.status}`)
		} else {
			sh.Run(t, `eventually prints 'conversion webhook' get $alpha
				kubectl scale $beta/web --replicas=3
				kubectl create namespace versions-gone
				apply v1beta1 'deployment: {name: web}' -n versions-gone
				kubectl delete namespace versions-gone --timeout=2m`)
		}
		stop = start()
		sh.Run(t, `eventually prints 'web 3' get $beta
			eventually prints 'web 3' get $alpha
			eventually prints 3 kubectl get deployment/web -o jsonpath={.status.availableReplicas}
			kubectl wait --for=delete --timeout=2m namespace/versions-stay
			kubectl delete foo/web`)
	}

	// A Deployment that the old controller has made goes with its Foo, even without v1alpha1.
	sh.Run(t, `apply v1alpha1 'deploymentName: web'
		kubectl wait --for=condition=Ready --timeout=2m foo/web`)
	stop()
	sh.Run(t, `kubectl patch deployment/web --type=json -p '[{op: replace,
		path: /metadata/ownerReferences/0/apiVersion, value: samplecontroller.k8s.io/v1alpha1}]'`)
	stop = start()
	sh.Run(t, `eventually prints v1beta1 kubectl get deployment/web -o jsonpath={.metadata.ownerReferences}
		kubectl label foo/web written=again # in v1beta1
		change 4-dropped
		eventually old_is_gone`)
	stop()
	// As long as managedFields name v1alpha1, an apply needs the webhook all the same.
	sh.Run(t, `refuses 'conversion webhook' apply v1beta1 'deployment: {name: web}, replicas: 2'
		kubectl label foo/web patched=yes # a patch needs none
		docs/tutorial/14-versions/forget v1alpha1
		apply v1beta1 'deployment: {name: web}, replicas: 2'
		docs/tutorial/14-versions/forget v1beta1 # which is all that is left
		test -z "$(kubectl get foo/web --show-managed-fields -o jsonpath={.metadata.managedFields})"
		kubectl delete foo/web
		kubectl wait --for=delete --timeout=2m deployment/web`)
}
