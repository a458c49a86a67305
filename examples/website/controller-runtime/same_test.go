package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/examples/website/sites"
)

// patience is how long a test waits for an expected change.
const patience = 3 * time.Minute

// world is an API server, a registry and a running program, which works in a namespace of its own.
type world struct {
	client.Client
	t         *testing.T
	namespace string
	down      atomic.Bool // the registry refuses all requests
	registry  *httptest.Server
}

// startAPIServer starts an etcd and a kube-apiserver that serves Websites, and stops them when the
// test ends. It returns a client, and the path of a kubeconfig.
func startAPIServer(t *testing.T) (c client.Client, kubeconfig string) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("set KUBEBUILDER_ASSETS to the absolute path of a folder with kube-apiserver, etcd and " +
			"kubectl: that of .local/bin, after 'hack/cluster build'")
	}
	environment := &envtest.Environment{
		UseExistingCluster:       new(false), // whatever the environment variables say
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
		CRDInstallOptions: envtest.CRDInstallOptions{
			Paths: []string{"../artifacts/crd.yaml"}, ErrorIfPathMissing: true, MaxTime: patience,
		},
	}
	t.Cleanup(func() { // also if half of it has started
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig.yaml")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, v1alpha1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return c, kubeconfig
}

// newWorld starts the program whose source is in folder, and a registry.
func newWorld(t *testing.T, c client.Client, kubeconfig, namespace, folder string) *world {
	t.Helper()
	w := &world{Client: c, t: t, namespace: namespace}
	known := sites.NewServer()
	w.registry = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.down.Load() && r.Method != http.MethodGet {
			http.Error(rw, "down", http.StatusServiceUnavailable)
			return
		}
		known.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.registry.Close)
	w.must(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))

	binary := filepath.Join(t.TempDir(), "controller")
	if text, err := exec.Command("go", "build", "-o", binary, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	program := exec.Command(binary, "--namespace="+w.namespace, "--registry="+w.registry.URL,
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
	program.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output := &strings.Builder{}
	program.Stdout, program.Stderr = output, output
	w.must(program.Start())
	t.Cleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM)
		if err := program.Wait(); err != nil {
			t.Errorf("the program failed: %v", err)
		}
		if t.Failed() {
			t.Logf("output of the program:\n%s", output)
		}
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits until check returns nil.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			w.t.Fatalf("waited %v, but this did not happen: %s\nlast seen: %v", patience, what, err)
		}
	}
}

// meta returns the metadata of an object in the namespace.
func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// get reads the object of that name.
func (w *world) get(name string, object client.Object) error {
	return w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, object)
}

// create creates a Website.
func (w *world) create(name string) {
	w.t.Helper()
	w.must(w.Create(w.t.Context(), &v1alpha1.Website{
		ObjectMeta: w.meta(name), Spec: v1alpha1.WebsiteSpec{Content: "Hello"},
	}))
}

// patch changes an object as somebody else.
func (w *world) patch(object client.Object, name, patch string) {
	w.t.Helper()
	object.SetNamespace(w.namespace)
	object.SetName(name)
	w.must(w.Patch(w.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// rollOut makes the one replica of a Deployment available, as the Deployment controller would.
func (w *world) rollOut(name string) {
	w.t.Helper()
	deployment := &appsv1.Deployment{}
	w.must(w.get(name, deployment))
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1,
		AvailableReplicas: 1,
	}
	w.must(w.Status().Update(w.t.Context(), deployment))
}

// expect waits until the conditions of a Website have these reasons, and are about its newest
// generation.
func (w *world) expect(name, ready, registered string) {
	w.t.Helper()
	want := map[string]string{v1alpha1.ConditionReady: ready, v1alpha1.ConditionRegistered: registered}
	w.eventually(fmt.Sprintf("%s: Ready is %s and Registered %s", name, ready, registered),
		func() error {
			website := &v1alpha1.Website{}
			if err := w.get(name, website); err != nil {
				return err
			}
			for condition, reason := range want {
				got := meta.FindStatusCondition(website.Status.Conditions, condition)
				if got == nil || got.Reason != reason || got.ObservedGeneration != website.Generation {
					return fmt.Errorf("generation %d, status %+v", website.Generation, website.Status)
				}
			}
			return nil
		})
}

// varying matches what differs between two runs of the same program: UIDs, times and addresses.
var varying = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|` +
	`\d{4}-\d\d-\d\dT[0-9:]+Z|\b10\.\d+\.\d+\.\d+`)

// seen returns everything that a user sees: the Websites, their children, and what the registry
// knows.
func (w *world) seen() string {
	w.t.Helper()
	var text strings.Builder
	for _, list := range []client.ObjectList{
		&v1alpha1.WebsiteList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}, &appsv1.DeploymentList{},
	} {
		w.must(w.List(w.t.Context(), list, client.InNamespace(w.namespace)))
		objects, err := meta.ExtractList(list)
		w.must(err)
		for _, object := range objects {
			object := object.(client.Object)
			object.SetResourceVersion("")
			object.SetManagedFields(nil)
			content, err := json.MarshalIndent(object, "", " ")
			w.must(err)
			fmt.Fprintf(&text, "%T %s\n", object, content)
		}
	}
	response, err := http.Get(w.registry.URL + "/sites")
	w.must(err)
	defer response.Body.Close()
	known, err := io.ReadAll(response.Body)
	w.must(err)
	fmt.Fprintf(&text, "registry %s\n", known)
	return varying.ReplaceAllString(strings.ReplaceAll(text.String(), w.namespace, "NAMESPACE"), "...")
}

// events returns what the Events say, each once.
func (w *world) events() string {
	w.t.Helper()
	var list eventsv1.EventList
	w.must(w.List(w.t.Context(), &list, client.InNamespace(w.namespace)))
	var lines []string
	for _, event := range list.Items {
		if event.Regarding.Kind != "Website" {
			continue // the API server's, about a Service whose address it has to repair
		}
		lines = append(lines, fmt.Sprintln(event.Regarding.Kind, event.Regarding.Name, event.Type,
			event.Reason, event.Action, event.Note))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

// live goes through the lives of some Websites, and returns what is seen after each step.
func (w *world) live() (steps []string) {
	w.t.Helper()
	step := func(name string) { steps = append(steps, name+":\n"+w.seen()) }

	w.create("web")
	w.expect("web", meaning.ReasonProgressing, meaning.ReasonRegistered)
	step("created")
	w.rollOut("web")
	w.expect("web", meaning.ReasonAvailable, meaning.ReasonRegistered)
	step("rolled out")

	w.patch(&v1alpha1.Website{}, "web", `{"spec": {"content": "Bye", "port": 8000, "replicas": 1}}`)
	w.expect("web", meaning.ReasonProgressing, meaning.ReasonRegistered)
	w.rollOut("web")
	w.expect("web", meaning.ReasonAvailable, meaning.ReasonRegistered)
	step("changed")

	w.patch(&corev1.Service{}, "web", `{"metadata": {"labels": null}, "spec": {"selector": null}}`)
	w.eventually("the Service has its label back", func() error {
		service := &corev1.Service{}
		if err := w.get("web", service); err != nil {
			return err
		}
		if service.Labels[meaning.ManagedByLabel] == "" {
			return fmt.Errorf("got labels %v", service.Labels)
		}
		return nil
	})
	step("repaired")

	w.must(w.Create(w.t.Context(), &corev1.ConfigMap{ObjectMeta: w.meta("taken")}))
	w.create("taken")
	w.expect("taken", "ConfigMapNameTaken", meaning.ReasonNoService)
	step("taken")

	w.down.Store(true)
	w.create("late")
	w.expect("late", meaning.ReasonProgressing, meaning.ReasonRegistrationFailed)
	w.must(w.Delete(w.t.Context(), &v1alpha1.Website{ObjectMeta: w.meta("web")}))
	w.expect("web", meaning.ReasonWebsiteTerminating, meaning.ReasonDeregistrationFailed)
	step("without registry")

	w.down.Store(false)
	w.expect("late", meaning.ReasonProgressing, meaning.ReasonRegistered)
	w.eventually("the Website is gone", func() error {
		if err := w.get("web", &v1alpha1.Website{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there, or error %w", err)
		}
		return nil
	})
	step("with registry")
	return steps
}

// TestBothProgramsDoTheSame lets this program and that in examples/website work for the same
// Websites, one after the other. No other controller runs, so nothing becomes ready by itself, and
// nobody collects garbage.
func TestBothProgramsDoTheSame(t *testing.T) {
	c, kubeconfig := startAPIServer(t)
	var want []string
	var wantEvents string
	t.Run("client-go", func(t *testing.T) {
		w := newWorld(t, c, kubeconfig, "as-client-go", "..")
		want = w.live()
		const last = "Website late Warning RegistrationFailed"
		w.eventually("the last Event is written", func() error {
			if wantEvents = w.events(); !strings.Contains(wantEvents, last) {
				return fmt.Errorf("got\n%s", wantEvents)
			}
			return nil
		})
	})
	t.Run("controller-runtime", func(t *testing.T) {
		w := newWorld(t, c, kubeconfig, "as-controller-runtime", ".")
		for i, got := range w.live() {
			lines, wanted := strings.Split(got, "\n"), strings.Split(want[i], "\n")
			for j := range min(len(lines), len(wanted)) {
				if lines[j] != wanted[j] {
					t.Errorf("%s line %d: got %s, want %s, as examples/website does", lines[0], j, lines[j],
						wanted[j])
				}
			}
			if len(lines) != len(wanted) {
				t.Errorf("got\n%s\nwant, as examples/website does,\n%s", got, want[i])
			}
		}
		w.eventually("the Events are the same", func() error {
			if got := w.events(); got != wantEvents {
				return fmt.Errorf("got\n%s\nwant\n%s", got, wantEvents)
			}
			return nil
		})
	})
}
