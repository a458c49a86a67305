package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/freeport"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/process"
)

var (
	onCluster = flag.Bool("cluster", false, "test policies and webhook, on the cluster of KUBECONFIG")
	whole     = flag.Bool("whole", false, "with -cluster, run all of the conformance suite")
	patience  = flag.Duration("patience", 3*time.Minute, "how long to wait for an expected change")
)

const (
	root      = "../../../"
	namespace = "foo-admission"
	account   = "system:serviceaccount:foo-webhook:foo-webhook" // in in-cluster.yaml
)

// world is a cluster.
type world struct {
	t          *testing.T
	kubeconfig string // of an administrator, in the namespace
	address    string // of the webhook
}

// newKubeconfig writes a kubeconfig of somebody else, or of the administrator if user is "".
func newKubeconfig(t *testing.T, user, namespace string) (path string) {
	t.Helper()
	config := must.Get(clientcmd.NewDefaultClientConfigLoadingRules().Load())(t)
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	for _, entry := range config.Contexts {
		entry.Namespace = namespace
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	must.Do(t, clientcmd.WriteToFile(*config, path))
	return path
}

// try runs kubectl, and returns what it prints.
func (w *world) try(stdin string, args ...string) (string, error) {
	command := exec.Command(root+".local/bin/kubectl", append(args, "--kubeconfig", w.kubeconfig)...)
	command.Stdin = strings.NewReader(stdin)
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// kubectl is try with a command that must succeed.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	output, err := w.try("", args...)
	if err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// eventually waits until check returns nil.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > *patience {
			w.t.Fatalf("waited %v, but this did not happen: %s\nlast seen: %v", *patience, what, err)
		}
	}
}

// attempt is a write, and what its result says.
type attempt struct {
	name, who string
	foo       string // the manifest for "create -f -"
	args      []string
	want      string // a part of the refusal or of a warning; if "", it is accepted in silence
}

// result returns nil if the attempt ends as it should.
func (w *world) result(a attempt) error {
	args := a.args
	if a.foo != "" {
		args = append([]string{"create", "-f", "-"}, args...)
	}
	if a.who != "" {
		args = append(args, "--as="+a.who)
	}
	output, err := w.try(a.foo, args...)
	refused := err != nil || strings.Contains(output, "Warning: ")
	if refused != (a.want != "") || !strings.Contains(output, a.want) {
		return fmt.Errorf("%s: got %q, want %q", a.name, output, a.want)
	}
	return nil
}

// are fails the test for each attempt that does not end as it should.
func (w *world) are(attempts []attempt) {
	w.t.Helper()
	for _, a := range attempts {
		if err := w.result(a); err != nil {
			w.t.Error(err)
		}
	}
}

// dryRun is the attempt without effect.
func dryRun(a attempt) attempt {
	a.args = append([]string{"--dry-run=server"}, a.args...)
	if a.foo == "" { // the command must be first
		a.args[0], a.args[1] = a.args[1], a.args[0]
	}
	return a
}

func foo(name, spec string) string {
	return fmt.Sprintf("{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, "+
		"metadata: {name: %s}, spec: {%s}}", name, spec)
}

func patch(name, json string) []string {
	return []string{"patch", "foo/" + name, "--type=merge", "-p", json}
}

// configure creates a ValidatingWebhookConfiguration or replaces it: webhook.yaml, with the address
// of the webhook and with other words. It has no caBundle.
func (w *world) configure(replacements ...string) {
	w.t.Helper()
	text := must.Get(os.ReadFile("webhook.yaml"))(w.t)
	replacements = append(replacements, "127.0.0.1:9444", w.address)
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(string(text), replacements[i]) {
			w.t.Fatalf("webhook.yaml does not contain %q", replacements[i])
		}
	}
	manifest := strings.NewReplacer(replacements...).Replace(string(text))
	w.kubectl("delete", "validatingwebhookconfiguration", programName, "--ignore-not-found")
	if output, err := w.try(manifest, "create", "-f", "-"); err != nil {
		w.t.Fatalf("%v: %s", err, output)
	}
}

// start runs the program with the permissions in in-cluster.yaml, until stop is called.
func (w *world) start() (stop func()) {
	w.t.Helper()
	binary := filepath.Join(w.t.TempDir(), programName)
	if output, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, output)
	}
	program := must.Get(process.Start(exec.Command(binary, "--webhook-bind-address="+w.address,
		"--health-probe-bind-address=0"),
		newKubeconfig(w.t, account, programName)))(w.t) // as in the Pod
	stop = sync.OnceFunc(func() {
		if err := program.Stop(); err != nil || w.t.Failed() {
			w.t.Errorf("%v; the program printed:\n%s", err, program.Output())
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// conformance runs parts of the conformance suite on the repository's controller: some tests, or
// with -whole all but those that skip names. Two need an image.
func (w *world) conformance(run, skip string) {
	w.t.Helper()
	if *whole {
		run = "."
	}
	suite := exec.Command("go", "-C", root+"test", "test", "-count=1", "-timeout", "30m",
		"./conformance", "-patience", patience.String(), "-run", run, "-skip", skip)
	if output, err := suite.CombinedOutput(); err != nil {
		w.t.Errorf("the conformance suite: %v\n%s", err, output)
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if !*onCluster {
		t.Skip("needs -cluster, and a cluster in KUBECONFIG")
	}
	w := &world{
		t: t, kubeconfig: newKubeconfig(t, "", namespace), address: freeport.Address(t),
	}
	t.Cleanup(func() { // the suites that come next want a cluster without rules
		w.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "in-cluster.yaml", "-f",
			"limit.yaml", "-f", "default-name.yaml")
		w.kubectl("delete", "--ignore-not-found", "--wait=false", "namespace", namespace)
	})
	w.kubectl("apply", "-f", root+"artifacts/examples/crd.yaml", "-f", "limit.yaml", "-f",
		"default-name.yaml", "-f", root+"artifacts/deploy/base/rbac-users.yaml", "-f", "in-cluster.yaml")
	w.kubectl("delete", "validatingwebhookconfiguration", programName)
	// Pod Security lets the Pods be created.
	w.kubectl("-n", programName, "wait", "--for=jsonpath={.status.replicas}=2", "--timeout=2m",
		"deployment/"+programName)
	w.kubectl("wait", "--for=condition=Established", "--timeout=2m", "-f",
		root+"artifacts/examples/crd.yaml")
	w.kubectl("create", "namespace", namespace)
	w.kubectl("create", "rolebinding", "alice-views", "--clusterrole=foo-viewer", "--user=alice")
	w.kubectl("create", "rolebinding", "alice-edits", "--clusterrole=foo-editor", "--user=alice")
	return w
}

// in returns w for a part of the test.
func (w *world) in(t *testing.T) *world {
	part := *w
	part.t = t
	return &part
}

func TestOnCluster(t *testing.T) {
	w := newWorld(t)
	t.Run("mutating policy", func(t *testing.T) { w.in(t).mutatingPolicy() })
	t.Run("validating policy", func(t *testing.T) { w.in(t).validatingPolicy() })
	t.Run("unique name", func(t *testing.T) { w.in(t).uniqueName() })
	t.Run("webhook", func(t *testing.T) { w.in(t).webhook() })
	t.Run("outage", func(t *testing.T) { w.in(t).outage() })
}

func (w *world) mutatingPolicy() {
	// The policy knows the schema of Foos some seconds after the API server does.
	w.eventually("a Foo gets its name", func() error {
		return w.result(attempt{name: "no name", foo: foo("web", "replicas: 1")})
	})
	name := w.kubectl("get", "foo/web", "-o", "jsonpath={.spec.deploymentName} {.spec.replicas}")
	if name != "web 1" {
		w.t.Errorf("deploymentName and replicas: got %q, want %q", name, "web 1")
	}
	w.are([]attempt{
		{name: "a name of its own", foo: foo("own", "deploymentName: another, replicas: 9")},
		{name: "no spec", foo: "{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Foo, " +
			"metadata: {name: bare}}"},
		{name: "a generated name", want: "spec.deploymentName: Required value",
			foo: strings.Replace(foo("any-", ""), "name:", "generateName:", 1)},
		{name: "a name that is wrong", foo: foo("wrong", "deploymentName: Web"),
			want: `must be a valid Deployment name`},
	})
	if got := w.kubectl("get", "foo/own", "-o", "jsonpath={.spec.deploymentName}"); got != "another" {
		w.t.Errorf("the name that the user wrote: got %q, want %q", got, "another")
	}
}

func (w *world) validatingPolicy() {
	const limited = "spec.replicas is 5, but a Foo in namespace " + namespace +
		" may have 3: write 3 or less, or ask for a higher limit"
	label := func(value string) {
		w.kubectl("label", "namespace", namespace, "--overwrite",
			"samplecontroller.k8s.io/max-replicas"+value)
	}
	five := attempt{name: "five", who: "alice", foo: foo("five", "replicas: 5"), want: limited}
	w.are([]attempt{{name: "no limit", who: "alice", foo: foo("four", "replicas: 4")}})
	label("=3")
	w.eventually("the policy warns", func() error {
		warning := dryRun(five)
		warning.want = "Warning: Validation failed for ValidatingAdmissionPolicy 'foo-replicas' with " +
			"binding 'foo-replicas': " + limited
		return w.result(warning)
	})
	w.kubectl("patch", "validatingadmissionpolicybinding", "foo-replicas", "--type=merge", "-p",
		`{"spec": {"validationActions": ["Deny"]}}`)
	w.eventually("the policy refuses", func() error {
		refusal := dryRun(five)
		refusal.want = "denied request: " + limited
		return w.result(refusal)
	})
	scale := func(name, count string) []string {
		return []string{"scale", "foo/" + name, "--replicas=" + count}
	}
	w.are([]attempt{
		five,
		{name: "the admin", foo: foo("five", "replicas: 5")},
		{name: "three", who: "alice", foo: foo("three", "replicas: 3")},
		{name: "none", who: "alice", foo: foo("none", "replicas: 0")},
		{name: "scaled up", who: "alice", args: scale("three", "5"), want: limited},
		{name: "scaled up by a patch", who: "alice", args: patch("three", `{"spec": {"replicas": 5}}`),
			want: limited},
		{name: "scaled up from none", who: "alice", args: scale("none", "5"), want: limited},
		{name: "scaled up within the limit", who: "alice", args: scale("none", "3")},
		{name: "scaled to none", who: "alice", args: scale("none", "0")},
		{name: "above the limit, labeled", who: "alice", args: []string{"label", "foo/five", "a=b"}},
		{name: "above the limit, scaled down", who: "alice", args: scale("five", "4")},
		{name: "and up again", who: "alice", args: scale("five", "5"), want: limited},
	})
	w.kubectl("create", "role", "exceed-limit", "--verb=exceed-limit",
		"--resource=foos.samplecontroller.k8s.io")
	w.kubectl("create", "rolebinding", "bob-exceeds", "--role=exceed-limit", "--user=bob")
	w.kubectl("create", "rolebinding", "bob-edits", "--clusterrole=foo-editor", "--user=bob")
	w.eventually("bob may exceed the limit", func() error {
		return w.result(attempt{name: "bob", who: "bob", foo: foo("bob", "replicas: 5")})
	})
	label("=many")
	w.eventually("a wrong label is named", func() error {
		return w.result(attempt{name: "many", who: "alice", args: scale("none", "1"),
			want: `is "many": ask for a number there, such as "3"`})
	})
	label("-")
	w.eventually("the limit is gone", func() error {
		return w.result(dryRun(attempt{name: "no limit", who: "alice", foo: foo("more", "replicas: 9")}))
	})
}

func (w *world) uniqueName() {
	w.kubectl("delete", "--ignore-not-found", "-f", "unique-name.yaml") // a reader's
	defer w.kubectl("delete", "-f", "unique-name.yaml")                 // the webhook has this rule, too
	const taken = `"one" is the Deployment of Foo "first": choose another name, or delete that Foo`
	rename := func(name, deploymentName string) []string {
		return patch(name, `{"spec": {"deploymentName": "`+deploymentName+`"}}`)
	}
	w.are([]attempt{{name: "the first Foo", foo: foo("first", "deploymentName: one")}})
	second := attempt{name: "second", foo: foo("second", "deploymentName: one")}
	w.eventually("without the rule, a name is shared", func() error { return w.result(dryRun(second)) })
	w.kubectl("apply", "-f", "unique-name.yaml")
	second.want = taken
	w.eventually("a name that is taken is refused", func() error { return w.result(dryRun(second)) })
	w.are([]attempt{
		{name: "another name", foo: foo("second", "deploymentName: two")},
		{name: "a name that is taken", args: rename("second", "one"), want: taken},
		{name: "a generated name", want: taken,
			foo: strings.Replace(foo("any-", "deploymentName: one"), "name:", "generateName:", 1)},
		{name: "labels", args: []string{"label", "foo/second", "a=b"}},
		{name: "the first Foo gets another name", args: rename("first", "another-one")},
		{name: "and its own again", args: rename("first", "one")},
		{name: "another namespace", foo: foo("second", "deploymentName: one"),
			args: []string{"--namespace=default", "--dry-run=server"}},
	})
	w.kubectl(patch("first", `{"metadata": {"finalizers": ["example.com/hold"]}}`)...)
	w.kubectl("delete", "foo/first", "--wait=false")
	w.eventually("a name that becomes free can be taken", func() error {
		return w.result(attempt{name: "waits", args: rename("second", "one")})
	})
	w.kubectl(patch("first", `{"metadata": {"finalizers": null}}`)...)
	w.kubectl("delete", "foo/second")
}

// refused is what the webhook says to a Foo that names the Deployment of Foo web.
const refused = `is the Deployment of Foo "web": choose another name, or delete that Foo`

func (w *world) webhook() {
	w.are([]attempt{{name: "before", foo: foo("second", "deploymentName: second")}})
	stop := w.start()
	w.configure()
	rename := func(name, deploymentName string) []string {
		return patch(name, `{"spec": {"deploymentName": "`+deploymentName+`"}}`)
	}
	taken := attempt{name: "a name that is taken", args: rename("second", "web"), want: refused}
	w.eventually("the webhook refuses", func() error { return w.result(dryRun(taken)) })
	w.are([]attempt{
		taken,
		{name: "a new Foo", foo: foo("third", "deploymentName: web"), want: refused},
		{name: "a free name", args: rename("second", "free")},
		{name: "labels", args: []string{"label", "foo/second", "a=b"}},
	})
	w.kubectl(patch("web", `{"metadata": {"finalizers": ["example.com/hold"]}}`)...)
	w.kubectl("delete", "foo/web", "--wait=false")
	w.eventually("a name that becomes free causes a warning", func() error {
		return w.result(attempt{name: "waits", args: rename("second", "web"),
			want: `Warning: Deployment "web" is that of Foo "web", which is being deleted`})
	})
	w.kubectl(patch("web", `{"metadata": {"finalizers": null}}`)...)

	w.configure() // without the caBundle
	w.eventually("the caBundle comes back", func() error {
		return w.result(dryRun(attempt{name: "again", foo: foo("web", ""),
			want: `is the Deployment of Foo "second"`}))
	})
	w.conformance("TestNewFoo|TestScaledFoo|TestRenamedDeployment|TestFooDeletedInForeground|"+
		"TestStatusSays|TestForeignDeployment",
		"Image|TestSecondFoo|TestBadSpec/no_spec|TestBadSpec/no_name|TestBadSpec/null_name")
	stop()
	w.are([]attempt{{name: "nobody answers", foo: foo("web", "")}})
	// Without this policy, too: the suite knows no Foo without a name.
	w.kubectl("delete", "-f", "default-name.yaml")
	w.eventually("nobody fills in the name", func() error {
		return w.result(dryRun(attempt{name: "no name", foo: foo("nameless", ""),
			want: "spec.deploymentName: Required value"}))
	})
	w.conformance("TestNewFoo|TestSecondFoo|TestBadSpec", "Image")
}

// outage expects that nobody listens at the address of the webhook.
func (w *world) outage() {
	w.configure("Ignore", "Fail")
	const failed = `failed calling webhook "deployment-name.samplecontroller.k8s.io"`
	create := dryRun(attempt{name: "a new Foo", foo: foo("new", "deploymentName: new"), want: failed})
	w.eventually("nothing can be created", func() error { return w.result(create) })
	label := attempt{name: "labels", args: []string{"label", "foo/second", "--overwrite", "a=c"}}
	w.are([]attempt{label})

	w.configure("Ignore", "Fail", "oldObject == null ||", "true ||") // as without matchConditions
	label.args[3], label.want = "a=d", failed                        // the same again would send nothing
	w.eventually("nothing can be changed", func() error { return w.result(dryRun(label)) })
	refusals := func() int {
		w.t.Helper()
		log, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")),
			"logs/kube-controller-manager.log"))
		must.Do(w.t, err)
		return strings.Count(string(log), "deployment-name.samplecontroller.k8s.io")
	}
	before := refusals()
	w.kubectl("delete", "foo/second", "--cascade=foreground", "--wait=false")
	w.eventually("the garbage collector is refused", func() error {
		if refusals() == before {
			return errors.New("its log does not name the webhook")
		}
		return nil
	})
	finalizers := w.kubectl("get", "foo/second", "-o", "jsonpath={.metadata.finalizers}")
	if want := `["foregroundDeletion"]`; finalizers != want {
		w.t.Errorf("finalizers: got %s, want %s", finalizers, want)
	}

	w.kubectl("delete", "validatingwebhookconfiguration", programName)
	w.eventually("the garbage collector is done", func() error {
		output, err := w.try("", "get", "foo/second")
		if err == nil || !strings.Contains(output, "NotFound") {
			return fmt.Errorf("got %q", output)
		}
		return nil
	})

	// This one would refuse its own deletion, if the API server asked it.
	w.configure("Ignore", "Fail", "[samplecontroller.k8s.io]",
		"[samplecontroller.k8s.io, admissionregistration.k8s.io]", "[v1alpha1]", "['*']", "[foos]",
		"['*']", "Namespaced", "'*'", "[CREATE, UPDATE]", "['*']", "oldObject == null ||", "true ||")
	w.eventually("the API server knows it", func() error { return w.result(create) })
	w.kubectl("delete", "validatingwebhookconfiguration", programName)
	w.hang()
}

// hang accepts connections, and answers nothing.
func (w *world) hang() {
	listener := must.Get(net.Listen("tcp", w.address))(w.t)
	defer listener.Close()
	for _, policy := range []string{"Fail", "Ignore"} {
		w.configure("Ignore", policy)
		a := attempt{name: policy, foo: foo("slow", "deploymentName: slow")}
		if policy == "Fail" {
			a.want = "context deadline exceeded"
		}
		w.eventually("a request waits until the timeout", func() error {
			begin := time.Now()
			err := w.result(dryRun(a))
			if took := time.Since(begin); err == nil && took < 2*time.Second {
				err = fmt.Errorf("it took %v, want 2s or more", took)
			}
			return err
		})
	}
	w.kubectl("delete", "validatingwebhookconfiguration", programName)
}
