package lens

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/suite/audit"
	"example.com/sample-controller/internal/suite/process"
	"example.com/sample-controller/lens/wire"
)

// BenchmarkProxy measures how long it takes from a Foo to its Deployment, by the clock of the API
// server: without a lens, through its proxy alone, with a lens, and with a lens that a page shows.
// Each has a controller and a namespace of its own. They take turns, and each is quiet before the
// next begins. It reports medians and, on Linux, how much CPU time is spent for a Foo.
func BenchmarkProxy(b *testing.B) {
	p := begin(b)
	p.close() // no test comes after this, and another page that draws would disturb
	if err := sharedLens.stop(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	turns := []*turn{{name: "without"}, {name: "proxy"}, {name: "lens"}, {name: "page"}}
	for _, t := range turns {
		t.start(b)
	}
	rounds := 0
	round := func() {
		for _, i := range rand.Perm(len(turns)) { // what one does may slow down the next a little
			if err := turns[i].run(fmt.Sprintf("foo-%d", rounds)); err != nil {
				b.Fatal(err)
			}
		}
		rounds++
	}
	round() // to warm up
	logEnd, err := audit.End(controlPlane.AuditLog())
	if err != nil {
		b.Fatal(err)
	}
	chromium := &turn{name: "chromium"}
	for pid, command := range descendants(os.Getpid()) {
		if strings.Contains(command, "chrom") {
			chromium.pids = append(chromium.pids, pid)
		}
	}
	spent := map[*turn]time.Duration{}
	for _, t := range append(turns, chromium) {
		spent[t] = -t.cpuTime()
	}
	for b.Loop() {
		round()
	}
	for _, t := range append(turns, chromium) {
		if spent[t] += t.cpuTime(); spent[t] > 0 {
			b.ReportMetric(spent[t].Seconds()*1000/float64(b.N), "cpu-ms/"+t.name)
		}
	}
	b.ReportMetric(0, "ns/op") // is not reported
	without := median(b, logEnd, turns[0].namespace())
	for _, t := range turns {
		took := median(b, logEnd, t.namespace())
		b.ReportMetric(took, "ms/"+t.name)
		b.ReportMetric(took/without, t.name+"/without")
	}
}

// turn is one of those that BenchmarkProxy compares.
type turn struct {
	name string
	page *page // or nil
	pids []int // of the lens, or of the browser
}

func (t *turn) namespace() string { return "lens-" + t.name }

// start starts a controller for a namespace of its own, and what it is to be measured with.
func (t *turn) start(b *testing.B) {
	_, err := kubeClient.CoreV1().Namespaces().Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace()}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	command := []string{*controllerPath, "-v=5", "-health-probe-bind-address=0",
		"-metrics-bind-address=0", "-namespace=" + t.namespace()}
	if t.name == "lens" || t.name == "page" {
		l, err := startLens(append([]string{"--"}, command...)...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.stop(syscall.SIGTERM) })
		t.pids = []int{l.PID()}
		if t.name == "page" {
			if t.page, err = l.open(); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	kubeconfig := controlPlane.Kubeconfig()
	if t.name == "proxy" {
		kubeconfig = startProxy(b)
	}
	direct, err := process.Start(exec.Command(command[0], command[1:]...), kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(direct.Kill)
}

// startProxy starts a proxy that nobody observes, and returns a kubeconfig that leads to it.
func startProxy(b *testing.B) (kubeconfig string) {
	config, err := controlPlane.Config()
	if err != nil {
		b.Fatal(err)
	}
	config.Timeout = 0
	proxy, err := wire.New(config, func(wire.Event) {})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	b.Cleanup(server.Close)
	b.Cleanup(proxy.Close)
	through := clientcmdapi.NewConfig()
	through.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL}
	through.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	through.CurrentContext = "proxy"
	kubeconfig = filepath.Join(controlPlane.Dir, "proxy.yaml")
	if err := clientcmd.WriteToFile(*through, kubeconfig); err != nil {
		b.Fatal(err)
	}
	return kubeconfig
}

// run creates a Foo, and waits until all that follows from it has happened and was shown.
func (t *turn) run(name string) error {
	ctx := context.Background()
	if err := createFoo(ctx, t.namespace(), name); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // to ask now would disturb what is measured
	err := waitUntil(func() error {
		foo, err := fooClient.SamplecontrollerV1alpha1().Foos(t.namespace()).
			Get(ctx, name, metav1.GetOptions{})
		if err == nil && !meta.IsStatusConditionTrue(foo.Status.Conditions, "Ready") {
			err = fmt.Errorf("%s is not ready: %+v", name, foo.Status)
		}
		return err
	})
	if err == nil && t.page != nil {
		err = t.page.wait(fmt.Sprintf(`pending.length === 0 &&
			lens.entities.get("object/deployments.apps/%s/%s")?.cached &&
			![...lens.entities.keys()].some((id) => /^(flight|request)/.test(id))`, t.namespace(), name))
	}
	return err
}

// cpuTime returns how much CPU time the processes have used: 0 where there is no /proc.
func (t *turn) cpuTime() (used time.Duration) {
	const tick = time.Second / 100 // USER_HZ
	for _, pid := range t.pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 { // see proc_pid_stat(5): utime, stime
			for _, field := range fields[11:13] {
				ticks, _ := strconv.Atoi(field)
				used += time.Duration(ticks) * tick
			}
		}
	}
	return used
}

// median returns how many milliseconds there are between the answers to the create of a Foo and to
// that of its Deployment: the median of all that are noted after logEnd.
func median(b *testing.B, logEnd audit.Mark, namespace string) float64 {
	b.Helper()
	requests, _, err := audit.Read(controlPlane.AuditLog(), logEnd, "")
	if err != nil {
		b.Fatal(err)
	}
	began, took := map[string]time.Time{}, []float64{}
	for _, r := range requests {
		if r.Creates("foos") && r.ObjectRef.Namespace == namespace {
			began[r.ObjectRef.Name] = r.StageTimestamp
		}
	}
	for _, r := range requests {
		foo, found := began[r.ObjectRef.Name]
		if found && r.Creates("deployments") && r.ObjectRef.Namespace == namespace {
			took = append(took, r.StageTimestamp.Sub(foo).Seconds()*1000)
		}
	}
	if len(took) == 0 {
		b.Fatalf("in the audit log, there are no Foos with Deployments in %s", namespace)
	}
	slices.Sort(took)
	b.Logf("%s: %d Foos, 10%% in %.1f ms, 50%% in %.1f ms, 90%% in %.1f ms", namespace, len(took),
		took[len(took)/10], took[len(took)/2], took[len(took)*9/10])
	return took[len(took)/2]
}
