package main

import (
	"flag"
	"net"
	"os/exec"
	"testing"

	"example.com/sample-controller/docs/internal/shell"
	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/setting"
)

var (
	onCluster = flag.Bool("cluster", false, "test on the cluster of KUBECONFIG, and not on one that is started")
	patience  = flag.Duration("patience", setting.Patience(), "how long to wait for an expected change")
)

// functions are what the lines of shell in this test use. The kubeconfig of an administrator and the
// certificate of the webhook are in $DIR.
const functions = `PATH=$PWD/../../../.local/bin:$PATH
dry=--dry-run=server
limit='kubectl label --overwrite ns foo-admission samplecontroller.k8s.io/max-replicas'
kubectl() { command kubectl --kubeconfig="$DIR/kubeconfig" ${WHO:+--as="$WHO"} "$@"; }
as() { local WHO=$1; "${@:2}"; }
foo() { # foo NAME SPEC FLAGS
  echo "{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, metadata: {name: $1}, spec: {$2}}" |
    sed 's/name: any-/generateName: any-/' | kubectl create -f - "${@:3}"
}
rename() { kubectl patch "foo/$1" --type=merge -p "spec: {deploymentName: $2}" "${@:3}"; }
finalizers() { kubectl patch "foo/$1" --type=merge -p "metadata: {finalizers: $2}"; }
above() { refuses "spec.replicas is 5, but a Foo in namespace foo-admission may have 3: write 3 or less, or ask for a higher limit" "$@"; }
taken() { # taken FOO COMMAND...: policy and webhook say that the name is that Foo's
  refuses "is the Deployment of Foo \"$1\": choose another name, or delete that Foo" "${@:2}"
}
certify() { # certify [FLAGS OF SED]: a new certificate, and the configuration with it
  (cd "$DIR" && go run "$(go env GOROOT)/src/crypto/tls/generate_cert.go" -host 127.0.0.1 \
    -ecdsa-curve P256 && mv cert.pem tls.crt && mv key.pem tls.key)
  kubectl delete --ignore-not-found -f webhook.yaml
  sed -e "s|url: .*|url: https://$ADDRESS/\n    caBundle: $(base64 <"$DIR/tls.crt" | tr -d '\n')|" \
    "$@" webhook.yaml | kubectl create -f -
}
`

const (
	setUp = `command kubectl config view --raw --flatten >"$DIR/kubeconfig"
kubectl config set-context --current --namespace=foo-admission
kubectl apply -f ../../../artifacts/examples/crd.yaml -f limit.yaml -f default-name.yaml \
  -f ../../../artifacts/deploy/base/rbac-users.yaml
kubectl wait --for=condition=Established --timeout=2m crd/foos.samplecontroller.k8s.io
kubectl create namespace foo-admission
for role in viewer editor; do
  kubectl create rolebinding alice-$role --clusterrole=foo-$role --user=alice
done
`
	tearDown = `kubectl delete --ignore-not-found --wait=false namespace foo-admission
kubectl delete --ignore-not-found --wait=false -f limit.yaml -f default-name.yaml \
  -f unique-name.yaml -f webhook.yaml
`
	mutatingPolicy = `
eventually accepts foo web 'replicas: 1' # it knows the schema of Foos some seconds later
prints web kubectl get foo/web -o jsonpath={.spec.deploymentName}
accepts foo own 'deploymentName: another, replicas: 9'
prints another kubectl get foo/own -o jsonpath={.spec.deploymentName}
refuses 'spec.deploymentName: Required value' foo any- ''
refuses 'must be a valid Deployment name' foo wrong 'deploymentName: Web'
`
	validatingPolicy = `
accepts as alice foo four 'replicas: 4'
$limit=3
eventually above as alice foo five 'replicas: 5' $dry
kubectl patch validatingadmissionpolicybinding/foo-replicas --type=merge \
  -p 'spec: {validationActions: [Deny]}'
eventually refuses 'denied request' as alice foo five 'replicas: 5' $dry
accepts foo five 'replicas: 5'
accepts as alice foo three 'replicas: 3'
accepts as alice foo none 'replicas: 0'
above as alice kubectl scale foo/three --replicas=5
above as alice kubectl patch foo/three --type=merge -p 'spec: {replicas: 5}'
accepts as alice kubectl scale foo/none --replicas=3
accepts as alice kubectl label foo/five a=b # above the limit
accepts as alice kubectl scale foo/five --replicas=4
above as alice kubectl scale foo/five --replicas=5
kubectl create role exceed-limit --verb=exceed-limit --resource=foos.samplecontroller.k8s.io
kubectl create rolebinding bob-exceeds --role=exceed-limit --user=bob
kubectl create rolebinding bob --clusterrole=foo-editor --user=bob
eventually accepts as bob foo bob 'replicas: 5'
$limit=many
eventually refuses 'is "many": ask for a number there, such as "3"' as alice kubectl scale foo/none --replicas=4
$limit-
eventually accepts as alice foo more 'replicas: 9' $dry
`
	uniqueName = `
kubectl delete --ignore-not-found -f unique-name.yaml # a reader's
accepts foo first 'deploymentName: one'
eventually accepts foo second 'deploymentName: one' $dry
kubectl apply -f unique-name.yaml
eventually taken first foo second 'deploymentName: one' $dry
accepts foo second 'deploymentName: two'
taken first rename second one
taken first foo any- 'deploymentName: one'
accepts kubectl label foo/second a=b
accepts rename first another-one
accepts rename first one
accepts foo second 'deploymentName: one' --namespace=default $dry
finalizers first '[example.com/hold]'
kubectl delete foo/first --wait=false
eventually accepts rename second one # the name becomes free
finalizers first null
kubectl delete foo/second
kubectl delete -f unique-name.yaml # the webhook has this rule, too
`
	startWebhook = `
accepts foo second 'deploymentName: second'
certify
go build -o "$DIR/" .
`
	webhookAnswers = `
eventually taken web rename second web $dry
taken web rename second web
taken web foo third 'deploymentName: web'
accepts rename second free
accepts kubectl label foo/second a=b
certify # as cert-manager does: the program goes on
eventually taken web foo third 'deploymentName: web' $dry
finalizers web '[example.com/hold]'
kubectl delete foo/web --wait=false
eventually refuses 'Deployment "web" is that of Foo "web", which is being deleted' rename second web
finalizers web null
# The controller of this repository works beside the webhook. What is left out would need an image,
# or expects that nothing refuses a second Foo.
go -C ../../../test test -count=1 -timeout 30m ./conformance -patience "${PATIENCE}s" -skip Image \
  -run 'TestNewFoo|TestScaledFoo|TestRenamedDeployment|TestFooDeletedInForeground|TestStatusSays|TestForeignDeployment'
`
	outage = `
accepts foo unanswered 'deploymentName: web'
# This one would refuse its own deletion, if the API server asked it.
certify -e 's/Ignore/Fail/; s/oldObject == null/true/; s/Namespaced/"*"/; s/\[CREATE, UPDATE\]/["*"]/' \
  -e 's/apiGroups: .*/apiGroups: [samplecontroller.k8s.io, admissionregistration.k8s.io], %/' \
  -e 's/%/apiVersions: ["*"], resources: ["*"],/'
eventually refuses 'failed calling webhook' foo new 'deploymentName: new' $dry
kubectl delete -f webhook.yaml
`
	hangs = `
certify -e s/Ignore/Fail/
eventually refuses 'context deadline exceeded' foo slow 'deploymentName: slow' $dry
certify
waits() { SECONDS=0; accepts foo slow 'deploymentName: slow' $dry && ((SECONDS >= 1)); }
eventually waits
`
)

// TestOnCluster tries each rule from both sides. The page tries the rest.
func TestOnCluster(t *testing.T) {
	if !*onCluster {
		setting.Long(t)
		c := must.Get(cluster.Start("../../..", cluster.NewName()))(t)
		t.Cleanup(c.Stop)
		t.Setenv("KUBECONFIG", c.Kubeconfig())
	}
	address, sh := must.Get(process.FreeAddress())(t), &shell.Shell{Dir: t.TempDir(), Patience: *patience}
	sh.Functions = "ADDRESS=" + address + "\n" + functions
	t.Cleanup(func() { sh.Run(t, tearDown) }) // the suites that come next want a cluster without rules
	sh.Run(t, setUp)
	t.Run("mutating policy", func(t *testing.T) { sh.Run(t, mutatingPolicy) })
	t.Run("validating policy", func(t *testing.T) { sh.Run(t, validatingPolicy) })
	t.Run("unique name", func(t *testing.T) { sh.Run(t, uniqueName) })
	t.Run("webhook", func(t *testing.T) {
		sh.Run(t, startWebhook)
		program := must.Get(process.Start(exec.Command(sh.Dir+"/13-admission",
			"--webhook-bind-address="+address, "--webhook-cert-dir="+sh.Dir,
			"--health-probe-bind-address=0"), sh.Dir+"/kubeconfig"))(t)
		defer func() {
			if err := program.Stop(); err != nil || t.Failed() {
				t.Errorf("%v; the program printed:\n%s", err, program.Output())
			}
		}()
		sh.Run(t, webhookAnswers)
	})
	t.Run("outage", func(t *testing.T) {
		sh.Run(t, outage)
		// A program that accepts connections, and answers nothing.
		listener := must.Get(net.Listen("tcp", address))(t)
		defer listener.Close()
		sh.Run(t, hangs)
	})
}
