package main

import (
	"encoding/base64"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/process"
)

var (
	onCluster = flag.Bool("cluster", false, "test policies and webhook, on the cluster of KUBECONFIG")
	patience  = flag.Duration("patience", 3*time.Minute, "how long to wait for an expected change")
)

const (
	account = "system:serviceaccount:foo-webhook:foo-webhook" // in in-cluster.yaml
	dryRun  = " --dry-run=server"
	// functions are what the lines of shell in this test use.
	functions = `set -o pipefail
PATH=$PWD/../../../.local/bin:$PATH
kubectl() { command kubectl --kubeconfig="$DIR/kubeconfig" ${WHO:+--as="$WHO"} "$@"; }
foo() { # foo NAME SPEC FLAGS
  echo "{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, metadata: {name: $1}, spec: {$2}}" |
    sed 's/name: any-/generateName: any-/' | kubectl create -f - "${@:3}"
}
rename() { kubectl patch "foo/$1" --type=merge -p "spec: {deploymentName: $2}" "${@:3}"; }
`
)

// world is a cluster. The kubeconfig of an administrator and the webhook's certificate are in dir.
type world struct {
	t            *testing.T
	dir, address string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if !*onCluster {
		t.Skip("needs -cluster, and a cluster in KUBECONFIG")
	}
	w := &world{t: t, dir: t.TempDir(), address: freeport.Address(t)}
	t.Cleanup(func() { // the suites that come next want a cluster without rules
		w.do(`kubectl delete --ignore-not-found --wait=false namespace foo-admission
			kubectl delete --ignore-not-found --wait=false -f limit.yaml -f default-name.yaml \
				-f unique-name.yaml -f webhook.yaml -f in-cluster.yaml`)
	})
	w.do(`command kubectl config view --raw --flatten >"$DIR/kubeconfig"
		kubectl config set-context --current --namespace=foo-admission
		kubectl apply -f ../../../artifacts/examples/crd.yaml -f limit.yaml -f default-name.yaml \
			-f ../../../artifacts/deploy/base/rbac-users.yaml
		kubectl wait --for=condition=Established --timeout=2m crd/foos.samplecontroller.k8s.io
		kubectl apply -k . || : # this cluster has no cert-manager, so some kinds are unknown
		kubectl get -o yaml validatingwebhookconfiguration/foo-webhook | grep 'name: foo-webhook$'
		kubectl delete -f webhook.yaml
		# Pod Security lets the Pods be created.
		kubectl -n foo-webhook wait --for=jsonpath={.status.replicas}=2 --timeout=2m deployment/foo-webhook
		kubectl create namespace foo-admission
		for role in viewer editor; do
			kubectl create rolebinding alice-$role --clusterrole=foo-$role --user=alice
		done`)
	return w
}

// bash runs lines of shell as somebody, or as the administrator if who is "".
func (w *world) bash(who, lines string) (output string, err error) {
	command := exec.Command("bash", "-c", functions+lines)
	command.Env = append(os.Environ(), "DIR="+w.dir, "WHO="+who)
	printed, err := command.CombinedOutput()
	return string(printed), err
}

// do runs lines of which each must succeed.
func (w *world) do(lines string) (output string) {
	w.t.Helper()
	output, err := w.bash("", "set -e\n"+lines)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", lines, err, output)
	}
	return output
}

// try returns nil if the line is refused, or causes a warning, with a text that contains want. If
// want is "", the line must succeed in silence.
func (w *world) try(who, line, want string) error {
	output, err := w.bash(who, line)
	refused := err != nil || strings.Contains(output, "Warning: ")
	if refused != (want != "") || !strings.Contains(output, want) {
		return fmt.Errorf("%s %s: got %q, want %q", who, line, output, want)
	}
	return nil
}

// eventually tries until the result is as it should be.
func (w *world) eventually(who, line, want string) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := w.try(who, line, want)
		if err == nil {
			return
		}
		if time.Since(begin) > *patience {
			w.t.Fatalf("waited %v: %v", *patience, err)
		}
	}
}

// attempt is what somebody tries once, and a part of the refusal or the warning.
type attempt struct{ who, line, want string }

func (w *world) are(attempts ...attempt) {
	w.t.Helper()
	for _, a := range attempts {
		if err := w.try(a.who, a.line, a.want); err != nil {
			w.t.Error(err)
		}
	}
}

func TestOnCluster(t *testing.T) {
	w := newWorld(t)
	run := func(name string, test func(*world)) {
		t.Run(name, func(t *testing.T) { test(&world{t, w.dir, w.address}) })
	}
	run("mutating policy", (*world).mutatingPolicy)
	run("validating policy", (*world).validatingPolicy)
	run("unique name", (*world).uniqueName)
	run("webhook", (*world).webhook)
	run("outage", (*world).outage)
}

func (w *world) mutatingPolicy() {
	// The policy knows the schema of Foos some seconds after the API server does.
	w.eventually("", "foo web 'replicas: 1'", "")
	w.are(
		attempt{"", "kubectl get foo/web -o jsonpath={.spec.deploymentName} | grep -x web", ""},
		attempt{"", "foo own 'deploymentName: another, replicas: 9'", ""},
		attempt{"", "kubectl get foo/own -o jsonpath={.spec.deploymentName} | grep -x another", ""},
		attempt{"", "foo any- ''", "spec.deploymentName: Required value"},
		attempt{"", "foo wrong 'deploymentName: Web'", "must be a valid Deployment name"},
	)
}

func (w *world) validatingPolicy() {
	const limited = "spec.replicas is 5, but a Foo in namespace foo-admission " +
		"may have 3: write 3 or less, or ask for a higher limit"
	const label = "kubectl label --overwrite ns foo-admission samplecontroller.k8s.io/max-replicas"
	w.are(attempt{"alice", "foo four 'replicas: 4'", ""})
	w.do(label + "=3")
	w.eventually("alice", "foo five 'replicas: 5'"+dryRun, "Warning: Validation failed for "+
		"ValidatingAdmissionPolicy 'foo-replicas' with binding 'foo-replicas': "+limited)
	w.do(`kubectl patch validatingadmissionpolicybinding/foo-replicas --type=merge \
		-p 'spec: {validationActions: [Deny]}'`)
	w.eventually("alice", "foo five 'replicas: 5'"+dryRun, "denied request: "+limited)
	w.are(
		attempt{"", "foo five 'replicas: 5'", ""},
		attempt{"alice", "foo three 'replicas: 3'", ""},
		attempt{"alice", "foo none 'replicas: 0'", ""},
		attempt{"alice", "kubectl scale foo/three --replicas=5", limited},
		attempt{"alice", "kubectl patch foo/three --type=merge -p 'spec: {replicas: 5}'", limited},
		attempt{"alice", "kubectl scale foo/none --replicas=3", ""},
		attempt{"alice", "kubectl label foo/five a=b", ""}, // above the limit
		attempt{"alice", "kubectl scale foo/five --replicas=4", ""},
		attempt{"alice", "kubectl scale foo/five --replicas=5", limited},
	)
	w.do(`kubectl create role exceed-limit --verb=exceed-limit --resource=foos.samplecontroller.k8s.io
		kubectl create rolebinding bob-exceeds --role=exceed-limit --user=bob
		kubectl create rolebinding bob --clusterrole=foo-editor --user=bob`)
	w.eventually("bob", "foo bob 'replicas: 5'", "")
	w.do(label + "=many")
	w.eventually("alice", "kubectl scale foo/none --replicas=4",
		`is "many": ask for a number there, such as "3"`)
	w.do(label + "-")
	w.eventually("alice", "foo more 'replicas: 9'"+dryRun, "")
}

// taken is what policy and webhook say of a name that is another Foo's.
func taken(foo string) string {
	return fmt.Sprintf("is the Deployment of Foo %q: choose another name, or delete that Foo", foo)
}

func (w *world) uniqueName() {
	w.do("kubectl delete --ignore-not-found -f unique-name.yaml") // a reader's
	defer w.do("kubectl delete -f unique-name.yaml")              // the webhook has this rule, too
	w.are(attempt{"", "foo first 'deploymentName: one'", ""})
	w.eventually("", "foo second 'deploymentName: one'"+dryRun, "")
	w.do("kubectl apply -f unique-name.yaml")
	w.eventually("", "foo second 'deploymentName: one'"+dryRun, taken("first"))
	w.are(
		attempt{"", "foo second 'deploymentName: two'", ""},
		attempt{"", "rename second one", taken("first")},
		attempt{"", "foo any- 'deploymentName: one'", taken("first")},
		attempt{"", "kubectl label foo/second a=b", ""},
		attempt{"", "rename first another-one", ""},
		attempt{"", "rename first one", ""},
		attempt{"", "foo second 'deploymentName: one' --namespace=default" + dryRun, ""},
	)
	w.do(`kubectl patch foo/first --type=merge -p 'metadata: {finalizers: [example.com/hold]}'
		kubectl delete foo/first --wait=false`)
	w.eventually("", "rename second one", "") // the name becomes free
	w.do(`kubectl patch foo/first --type=merge -p 'metadata: {finalizers: null}'
		kubectl delete foo/second`)
}

// certify writes a new certificate for the webhook, and configures the API server: webhook.yaml,
// with the certificate as its caBundle, and with other words.
func (w *world) certify(replacements ...string) {
	w.t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	must.Do(w.t, err)
	must.Do(w.t, os.WriteFile(filepath.Join(w.dir, "tls.crt"), certificate, 0o600))
	must.Do(w.t, os.WriteFile(filepath.Join(w.dir, "tls.key"), key, 0o600))
	text := string(must.Get(os.ReadFile("webhook.yaml"))(w.t))
	replacements = append(replacements, "url: https://127.0.0.1:9444/", fmt.Sprintf(
		"url: https://%s/\n    caBundle: %s", w.address, base64.StdEncoding.EncodeToString(certificate)))
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			w.t.Fatalf("webhook.yaml does not contain %q", replacements[i])
		}
	}
	w.do("kubectl delete --ignore-not-found -f webhook.yaml\nkubectl create -f - <<'END'\n" +
		strings.NewReplacer(replacements...).Replace(text) + "\nEND")
}

func (w *world) webhook() {
	w.are(attempt{"", "foo second 'deploymentName: second'", ""})
	w.certify()
	w.do(`go build -o "$DIR/" .
		kubectl config view --raw >"$DIR/program" # with a token of the Pods
		command kubectl --kubeconfig="$DIR/program" config set-credentials pod \
			--token="$(kubectl create token -n foo-webhook foo-webhook)"
		command kubectl --kubeconfig="$DIR/program" config set-context --current --user=pod`)
	program := must.Get(process.Start(exec.Command(w.dir+"/13-admission",
		"--webhook-bind-address="+w.address, "--webhook-cert-dir="+w.dir,
		"--health-probe-bind-address=0"), w.dir+"/program"))(w.t)
	defer func() {
		if err := program.Stop(); err != nil || w.t.Failed() {
			w.t.Errorf("%v; the program printed:\n%s", err, program.Output())
		}
		w.are(attempt{"", "foo unanswered 'deploymentName: web'", ""})
	}()

	w.eventually("", "rename second web"+dryRun, taken("web"))
	w.are(
		attempt{"", "rename second web", taken("web")},
		attempt{"", "foo third 'deploymentName: web'", taken("web")},
		attempt{"", "rename second free", ""},
		attempt{"", "kubectl label foo/second a=b", ""},
		attempt{account, "kubectl annotate a=b -f webhook.yaml", "forbidden"},
		attempt{account, "kubectl get secrets -n foo-webhook", "forbidden"},
		attempt{account, "kubectl label foo/web a=b", "forbidden"},
	)
	w.certify() // as cert-manager does: the program goes on
	w.eventually("", "foo third 'deploymentName: web'"+dryRun, taken("web"))
	w.do(`kubectl patch foo/web --type=merge -p 'metadata: {finalizers: [example.com/hold]}'
		kubectl delete foo/web --wait=false`)
	w.eventually("", "rename second web",
		`Warning: Deployment "web" is that of Foo "web", which is being deleted`)
	w.do(`kubectl patch foo/web --type=merge -p 'metadata: {finalizers: null}'`)

	// The controller of this repository works beside the webhook. What is left out would need an
	// image, or expects that nothing refuses a second Foo.
	w.do(`go -C ../../../test test -count=1 -timeout 30m ./conformance -patience ` + patience.String() +
		` -skip Image -run 'TestNewFoo|TestScaledFoo|TestRenamedDeployment|TestFooDeletedInForeground|` +
		`TestStatusSays|TestForeignDeployment'`)
}

// outage expects that nobody listens at the address of the webhook. The page tries the rest.
func (w *world) outage() {
	// This one would refuse its own deletion, if the API server asked it.
	w.certify("Ignore", "Fail", "[samplecontroller.k8s.io]",
		"[samplecontroller.k8s.io, admissionregistration.k8s.io]", "[v1alpha1]", "['*']", "[foos]",
		"['*']", "Namespaced", "'*'", "[CREATE, UPDATE]", "['*']", "oldObject == null ||", "true ||")
	w.eventually("", "foo new 'deploymentName: new'"+dryRun, "failed calling webhook")
	w.do("kubectl delete -f webhook.yaml")

	// A program that accepts connections, and answers nothing.
	listener := must.Get(net.Listen("tcp", w.address))(w.t)
	defer listener.Close()
	w.certify("Ignore", "Fail")
	w.eventually("", "foo slow 'deploymentName: slow'"+dryRun, "context deadline exceeded")
	w.certify()
	w.eventually("", "SECONDS=0; foo slow 'deploymentName: slow'"+dryRun+" && ((SECONDS >= 1))", "")
}
