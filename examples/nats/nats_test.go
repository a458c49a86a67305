package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const patience = 3 * time.Minute

// world is a real NATS server, and an API server in memory or a real one.
type world struct {
	*testing.T
	flags  []string
	o      *options
	config *rest.Config
	kube   kubernetes.Interface
	foos   jetstream.KeyValue // as users see it
}

func newWorld(t *testing.T, config *rest.Config) *world {
	flags := []string{"--nats-url=nats://" + must.Get(process.FreeAddress())(t), "--serve=" + t.TempDir(),
		"--health-probe-bind-address=" + must.Get(process.FreeAddress())(t), "--metrics-bind-address=0",
		"--leader-elect-resource-namespace=default", "--workers=1", "--resync=1s"}
	return &world{T: t, flags: flags, o: must.Get(parseFlags(flags, nil))(t), config: config,
		kube: must.Get(kubernetes.NewForConfig(config))(t)}
}

// serve starts the NATS server.
func (w *world) serve() (stop func()) {
	end := must.Get(serve(w.o.url, w.o.folder))(w)
	c := must.Get(connect(w.o))(w)
	w.foos = must.Get(c.Bucket(w.Context(), fooBucket))(w).(jetstream.KeyValue)
	stop = func() { c.conn.Close(); end() }
	w.Cleanup(stop)
	return stop
}

// start starts the controller, and starts it again when it ends, as a kubelet does.
func (w *world) start(flags ...string) (stop func()) {
	o := must.Get(parseFlags(append(w.flags, flags...), nil))(w)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			s := must.Get(connect(o, nats.RetryOnFailedConnect(true)))(w)
			w.Log(must.Get(NewController(ctx, w.config, o, s))(w).Run(ctx))
			s.conn.Close()
		}
	})
	stop = func() { cancel(); done.Wait() }
	w.Cleanup(stop) // also after a failure: a test that has ended must not log
	return stop
}

func (w *world) put(name string) {
	must.Do(w, put(w.Context(), w.foos, "default."+name, `{"deploymentName":"`+name+`"}`))
}

func (w *world) version(deployment string) string {
	d, _ := w.kube.AppsV1().Deployments("default").Get(w.Context(), deployment, metav1.GetOptions{})
	return d.GetResourceVersion() // without a Deployment, ""
}

func (w *world) status() uint64 {
	if entry, err := w.foos.Get(w.Context(), "status.default.a"); err == nil {
		return entry.Revision()
	}
	return 0 // Foo a has none
}

func (w *world) eventually(what string, check func() bool) {
	w.Helper()
	for begin := time.Now(); !check(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > patience {
			w.Fatalf("waited %v, but this did not happen: %s", patience, what)
		}
	}
}

func (w *world) appears(deployment string) {
	w.eventually(deployment+" appears", func() bool { return w.version(deployment) != "" })
}

func (w *world) readiness(want bool) {
	w.eventually("the readiness changes", func() bool {
		response, err := http.Get("http://" + w.o.HealthAddress + "/readyz")
		return err == nil && response.Body.Close() == nil && (response.StatusCode == http.StatusOK) == want
	})
}

func TestNATSIsAway(t *testing.T) {
	w := newWorld(t, apiserver.New().Config(nil))
	w.start()
	w.readiness(false)
	stop := w.serve()
	w.put("a")
	w.appears("a")

	stop()
	w.readiness(false)
	before := w.version("a")
	w.serve()
	w.readiness(true)
	w.put("b")
	w.appears("b")
	if w.version("a") != before {
		t.Error("the Deployment has changed")
	}
}

// logins refuses the first three.
type logins struct{ atomic.Int32 }

func (l *logins) Check(natsserver.ClientAuthentication) bool { return l.Add(1) > 3 }

func TestRefusedLoginIsTriedAgain(t *testing.T) {
	server := must.Get(natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1",
		Port: natsserver.RANDOM_PORT, NoSigs: true, CustomClientAuthentication: new(logins)}))(t)
	server.Start()
	defer server.Shutdown()
	c := must.Get(connect(&options{url: server.ClientURL()}, nats.RetryOnFailedConnect(true)))(t)
	defer c.conn.Close()

	(&world{T: t}).eventually("it is connected, or gives up", func() bool {
		return c.conn.IsConnected() || c.conn.IsClosed()
	})
	must.Do(t, c.Check(nil))
}

func TestPasswordIsNotPrinted(t *testing.T) {
	for _, url := range []string{"nats://me:secret/@a", "nats://me:secret@127.0.0.1:1,nats://secret@127.0.0.1:2"} {
		var printed strings.Builder
		t.Setenv("NATS_URL", url)
		_, helpErr := parseFlags([]string{"--help"}, &printed)
		_, connectErr := connect(must.Get(parseFlags(nil, nil))(t))
		_, serveErr := serve("nats://me:secret", "")
		if fmt.Fprint(&printed, helpErr, connectErr, serveErr); strings.Contains(printed.String(), "secret") {
			t.Error(printed.String())
		}
	}
}

func TestRestart(t *testing.T) {
	w := newWorld(t, apiserver.New().Config(nil))
	w.serve()
	stop := w.start()
	w.put("a")
	w.eventually("there is a status", func() bool { return w.status() > 0 })
	stop()

	version, revision := w.version("a"), w.status()
	stop = w.start()
	w.put("b") // the one worker comes to it when it is through with the other
	w.appears("b")
	stop()
	if w.version("a") != version || w.status() != revision {
		t.Error("the new process has written something")
	}

	must.Do(t, w.foos.Delete(t.Context(), "spec.default.a"))
	w.start()
	w.eventually("what it had goes", func() bool { return w.version("a") == "" && w.status() == 0 })
	w.appears("b")
	must.Do(t, w.foos.Purge(t.Context(), "spec.default.b"))
	w.eventually("that of the purged Foo goes", func() bool { return w.version("b") == "" })
}

func TestWhatIsNewIsNotOverwritten(t *testing.T) {
	w := newWorld(t, apiserver.New().Config(nil))
	w.serve()
	for key, spec := range map[string]string{"web": "{}", "default.Web": "{}",
		"default.a": `{"replica":2}`, "default.b": `{"replicas":2}}`} {
		if err := put(t.Context(), w.foos, key, spec); err == nil {
			t.Errorf("put %s %s: got no error", key, spec)
		}
	}
	for _, want := range []error{jetstream.ErrKeyExists, jetstream.ErrKeyRevisionMismatch} {
		err := put(t.Context(), late{w.foos}, "default.a", `{"replicas":2}`)
		if !errors.Is(err, want) {
			t.Errorf("put: got %v, want %v", err, want)
		}
	}

	// c is a replica that has seen neither the Foo, which is there again, nor its status.
	c := must.Get(NewController(t.Context(), w.config, w.o, must.Get(connect(w.o))(t)))(t)
	must.Do(t, c.openBuckets(t.Context()))
	foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	foo.DeletionTimestamp, foo.Status.ObservedGeneration = new(metav1.Now()), 1
	must.Do(t, c.updateStatus(t.Context(), foo, &foo.Status))
	if err := c.updateStatus(t.Context(), foo, &foo.Status); !apierrors.IsConflict(err) {
		t.Errorf("updateStatus: got %v, want a conflict", err)
	}
	if err := c.finalize(t.Context(), foo); err != nil || w.status() == 0 {
		t.Errorf("finalize: got %v and status %d, want no error, and one", err, w.status())
	}
}

func TestDeploymentThatIsTakenAwayIsNotDeleted(t *testing.T) {
	server := fakes.New(t)
	w := newWorld(t, server.Config)
	w.serve()
	w.start()
	w.put("a")
	w.appears("a")
	server.Before("delete", "deployments", 1, func(ctx context.Context) error {
		_, err := kubernetes.NewForConfigOrDie(server.Others).AppsV1().Deployments("default").Patch(ctx, "a",
			types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
		return err
	})

	must.Do(t, w.foos.Delete(t.Context(), "spec.default.a"))
	w.eventually("a deletion is tried", func() bool {
		return len(server.Requests("delete", "deployments")) > 0
	})
	w.put("b") // the one worker comes to it when it is through with the other
	w.appears("b")
	if w.version("a") == "" {
		t.Error("the Deployment that belongs to nobody is gone")
	}
}

func TestEmptiedBucket(t *testing.T) {
	w := newWorld(t, apiserver.New().Config(nil))
	w.serve()
	stop := w.start("--resync=10s")
	w.put("a")
	w.eventually("there is a status", func() bool { return w.status() > 0 })

	c := must.Get(connect(w.o))(t)
	must.Do(t, must.Get(c.Stream(t.Context(), "KV_"+fooBucket))(t).Purge(t.Context()))
	w.eventually("an Event says that the Foo is missing", func() bool {
		events := must.Get(w.kube.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{}))(t)
		return strings.Contains(fmt.Sprint(events.Items), `delete marker: kept Deployment "a"`)
	})
	for i := range 10 {
		must.Get(w.kube.AppsV1().Deployments("default").Patch(t.Context(), "a", types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"i":"%d"}}}`, i), metav1.PatchOptions{}))(t)
	}
	w.put("b") // the one worker comes to it when it is through with the other
	w.appears("b")
	stop()
	told := 0
	for _, event := range must.Get(w.kube.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{}))(t).Items {
		if event.Reason == "FooMissing" {
			told++
		}
	}
	if told > 2 {
		t.Errorf("got %d Events, want one each 10s", told)
	}
	w.appears("a")
	w.start("--delete-missing")
	w.eventually("the Deployment goes", func() bool { return w.version("a") == "" })
}

// TestKubernetesIsAway has two replicas, on a real API server.
func TestKubernetesIsAway(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("set KUBEBUILDER_ASSETS to the absolute path of .local/bin, after 'hack/cluster build'")
	}
	env := &envtest.Environment{UseExistingCluster: new(false),
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience}
	t.Cleanup(func() { must.Do(t, env.Stop()) })
	w := newWorld(t, must.Get(env.Start())(t))
	var away, missed atomic.Bool
	w.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fake.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
			if away.Load() {
				missed.CompareAndSwap(false, r.Method == http.MethodPost && path.Base(r.URL.Path) == "deployments")
				return nil, errors.New("Kubernetes is away")
			}
			return next.RoundTrip(r)
		}).Transport
	})
	w.serve()
	stop := w.start("--leader-elect", "--resync=1h")
	w.put("a")
	w.appears("a")
	w.start("--leader-elect", "--resync=1h", "--health-probe-bind-address=0")

	away.Store(true)
	w.put("b")
	w.eventually("a Deployment cannot be made", missed.Load)
	away.Store(false)
	w.appears("b")

	stop()
	w.put("c")
	w.appears("c")
	leases := w.kube.CoordinationV1().Leases("default") // else both would work
	must.Get(leases.Get(t.Context(), controllerName, metav1.GetOptions{}))(t)
}
