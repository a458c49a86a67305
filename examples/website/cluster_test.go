package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	clientset "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned"
	websiteclient "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned/typed/website/v1alpha1"
	"example.com/sample-controller/examples/website/sites"
	"example.com/sample-controller/internal/freeport"
)

var onCluster = flag.Bool("cluster", false, "test the program, on the cluster of KUBECONFIG")

// patience is how long a test waits for an expected change.
const patience = 3 * time.Minute

// account is the ServiceAccount in rbac.yaml.
const account = "system:serviceaccount:website-controller:website-controller"

// world is a cluster and a registry, which is a process of its own.
type world struct {
	t         *testing.T
	namespace string
	kube      kubernetes.Interface
	websites  websiteclient.WebsiteInterface
	binary    string // of the registry
	address   string // of the registry
}

// newWorld installs what artifacts/ has, and makes a namespace that admits only restricted Pods.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, namespace: fmt.Sprintf("website-%d", time.Now().UnixNano()),
		binary: filepath.Join(t.TempDir(), "registry"), address: freeport.Address(t),
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	w.kube = kubernetes.NewForConfigOrDie(config)
	w.websites = clientset.NewForConfigOrDie(config).WebsiteV1alpha1().Websites(w.namespace)
	w.run("go", "build", "-o", w.binary, "./registry")
	w.kubectl("apply", "-f", "artifacts/crd.yaml", "-f", "artifacts/rbac.yaml")
	w.kubectl("wait", "--for", "condition=Established", "--timeout", "2m", "-f", "artifacts/crd.yaml")
	w.kubectl("create", "namespace", w.namespace)
	w.kubectl("label", "namespace", w.namespace, "pod-security.kubernetes.io/enforce=restricted")
	t.Cleanup(func() {
		_ = w.kube.CoreV1().Namespaces().Delete(context.Background(), w.namespace,
			metav1.DeleteOptions{})
	})
	return w
}

// run runs a program to its end, and returns what it prints. It prefers the tools of hack/cluster.
func (w *world) run(name string, args ...string) string {
	w.t.Helper()
	text, err := w.try(name, args...)
	if err != nil {
		w.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
	}
	return text
}

func (w *world) try(name string, args ...string) (string, error) {
	if built, err := filepath.Abs("../../.local/bin/" + name); err == nil {
		if _, err := os.Stat(built); err == nil {
			name = built
		}
	}
	text, err := exec.Command(name, args...).CombinedOutput()
	return string(text), err
}

func (w *world) kubectl(args ...string) {
	w.t.Helper()
	w.run("kubectl", args...)
}

// startRegistry starts the registry, which knows nothing, until it is killed.
func (w *world) startRegistry() (kill func()) {
	w.t.Helper()
	command := exec.Command(w.binary, "--address", w.address)
	if err := command.Start(); err != nil {
		w.t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
		killed = true
	}
	w.t.Cleanup(kill)
	w.eventually("the registry answers", func() error {
		_, err := w.registered()
		return err
	})
	return kill
}

// registered returns what the registry knows, by UID.
func (w *world) registered() (all map[string]sites.Site, err error) {
	response, err := http.Get("http://" + w.address + "/sites")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return all, json.NewDecoder(response.Body).Decode(&all)
}

// startController runs the program with the permissions in rbac.yaml, until stop is called.
func (w *world) startController() (stop func()) {
	w.t.Helper()
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = account
	}
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--kubeconfig", kubeconfig, "--registry", "http://" + w.address,
			"--resync=2s", "--leader-elect", "--leader-elect-resource-namespace=website-controller",
			"--metrics-bind-address=0", "--health-probe-bind-address=0"})
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the program failed: %v", err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// eventually waits until check returns nil.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			w.t.Fatalf("waited %v, but this did not happen: %s\nlast seen: %v", patience, what, err)
		}
	}
}

// expect waits until the Website's status is about its newest generation, and its conditions have
// these reasons. It returns the Website.
func (w *world) expect(name, ready, registered string) (website *v1alpha1.Website) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("Ready is %s and Registered %s", ready, registered), func() (err error) {
		if website, err = w.websites.Get(w.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		for condition, reason := range map[string]string{"Ready": ready, "Registered": registered} {
			got := meta.FindStatusCondition(website.Status.Conditions, condition)
			if got == nil || got.Reason != reason || got.ObservedGeneration != website.Generation {
				return fmt.Errorf("generation %d, status %+v", website.Generation, website.Status)
			}
		}
		return nil
	})
	return website
}

// expectRegistered waits until the registry knows only these URLs.
func (w *world) expectRegistered(urls ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("the registry knows %q", urls), func() error {
		all, err := w.registered()
		if err != nil {
			return err
		}
		for _, url := range urls {
			for id, site := range all {
				if site.URL == url {
					delete(all, id)
					urls = nil
				}
			}
		}
		if len(urls) > 0 || len(all) > 0 {
			return fmt.Errorf("missing %q, besides that it knows %v", urls, all)
		}
		return nil
	})
}

// expectGone waits until the Website and its children are gone.
func (w *world) expectGone(name string) {
	w.t.Helper()
	gone := func(_ any, err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	}
	w.eventually("all is gone", func() error {
		ctx, get := w.t.Context(), metav1.GetOptions{}
		return errors.Join(gone(w.websites.Get(ctx, name, get)),
			gone(w.kube.CoreV1().ConfigMaps(w.namespace).Get(ctx, name, get)),
			gone(w.kube.CoreV1().Services(w.namespace).Get(ctx, name, get)),
			gone(w.kube.AppsV1().Deployments(w.namespace).Get(ctx, name, get)))
	})
}

// TestOnCluster runs the program with the permissions in rbac.yaml, on a real control plane.
func TestOnCluster(t *testing.T) {
	if !*onCluster {
		t.Skip("needs -cluster, and the KUBECONFIG of a cluster")
	}
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged // the program runs twice
	w := newWorld(t)
	t.Run("what the API server refuses", w.testRefusals)
	kill := w.startRegistry()
	stop := w.startController()
	const name = "example-website" // as in the file
	url := fmt.Sprintf("http://%s.%s.svc:80", name, w.namespace)

	w.kubectl("-n", w.namespace, "apply", "-f", "artifacts/example-website.yaml")
	if got := w.expect(name, "Available", "Registered").Status; got.ReadyReplicas != 2 ||
		got.URL != url || got.RegisteredURL != url {
		t.Errorf("created: got status %+v", got)
	}
	w.expectRegistered(url)

	before := w.versions(name)
	w.forget()
	w.expectRegistered(url)
	if after := w.versions(name); after != before {
		t.Errorf("resync: got versions %s, want those from before: %s", after, before)
	}
	kill()
	kill = w.startRegistry() // it has lost everything, and may have been missed
	w.expectRegistered(url)

	w.kubectl("-n", w.namespace, "patch", "website", name, "--type=merge",
		"--patch", `{"spec": {"content": "Bye"}}`)
	w.expect(name, "Available", "Registered")
	replicaSets, err := w.kube.AppsV1().ReplicaSets(w.namespace).List(t.Context(),
		metav1.ListOptions{})
	if err != nil || len(replicaSets.Items) != 2 {
		t.Errorf("changed content: got %d ReplicaSets, %v, want 2", len(replicaSets.Items), err)
	}
	w.kubectl("-n", w.namespace, "scale", "website", name, "--replicas=3")
	if got := w.expect(name, "Available", "Registered").Status.ReadyReplicas; got != 3 {
		t.Errorf("scaled: got %d ready replicas, want 3", got)
	}

	kill()
	w.kubectl("-n", w.namespace, "delete", "website", name, "--wait=false")
	w.expect(name, "WebsiteTerminating", "DeregistrationFailed")
	stop() // the next process finds what this one has left
	kill = w.startRegistry()
	defer kill()
	stop = w.startController()
	w.expectGone(name)
	w.expectRegistered()
	stop()
}

// versions returns the versions of a Website and its children, which each write changes.
func (w *world) versions(name string) string {
	w.t.Helper()
	return w.run("kubectl", "-n", w.namespace, "get", "website/"+name, "configmap/"+name,
		"service/"+name, "deployment/"+name, "-o", `jsonpath={.items[*].metadata.resourceVersion}`)
}

// forget makes the registry forget everything, as if it had lost its state.
func (w *world) forget() {
	w.t.Helper()
	all, err := w.registered()
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := sites.NewClient("http://"+w.address, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for id := range all {
		if err := client.Delete(w.t.Context(), id); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) testRefusals(t *testing.T) {
	create := func(name string, spec v1alpha1.WebsiteSpec) error {
		_, err := w.websites.Create(t.Context(), &v1alpha1.Website{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := create("web", v1alpha1.WebsiteSpec{Content: "x"}); err != nil {
		t.Errorf("only content: got error %v", err)
	}
	for want, spec := range map[string]v1alpha1.WebsiteSpec{
		"spec.content in body should be at least 1 chars long": {},
		"Too long: may not be more than 65536":                 {Content: strings.Repeat("x", 65537)},
		"spec.port in body should be greater than or equal to": {Content: "x", Port: -1},
		"spec.port in body should be less than or equal to":    {Content: "x", Port: 65536},
		"spec.replicas in body should be greater than":         {Content: "x", Replicas: new(int32(-1))},
		"must be the name of an image, without spaces":         {Content: "x", Image: "a b"},
	} {
		if err := create("web", spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to contain %q", err, want)
		}
	}
	for _, name := range []string{"1web", "web.example", strings.Repeat("a", 64)} {
		err := create(name, v1alpha1.WebsiteSpec{Content: "x"})
		if err == nil || !strings.Contains(err.Error(), "metadata.name must be a valid Service name") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
