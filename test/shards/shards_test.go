package shards

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"example.com/sample-controller/internal/suite/audit"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	namespaces       = 12
	foosPerNamespace = 5
)

// foo is a Foo that the users have created, and the count that they asked for last.
type foo struct {
	namespace, name string
	replicas        int32
}

// users creates and scales Foos.
type users struct {
	t      *testing.T
	random *rand.Rand
	foos   []*foo
}

func (u *users) createNamespaces() (names []string) {
	u.t.Helper()
	for range namespaces {
		// The hash of a name depends on its first characters: see the tests of internal/shards.
		namespace, err := kubeClient.CoreV1().Namespaces().Create(u.t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%08x-team", u.random.Uint32())},
		}, metav1.CreateOptions{})
		if err != nil {
			u.t.Fatal(err)
		}
		names = append(names, namespace.Name)
	}
	return names
}

func (u *users) createFoo(namespace, name string) error {
	created := &foo{namespace: namespace, name: name, replicas: 1}
	u.foos = append(u.foos, created)
	_, err := fooClient.SamplecontrollerV1alpha1().Foos(namespace).Create(context.Background(),
		&v1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: &created.replicas},
		}, metav1.CreateOptions{})
	return err
}

func (u *users) scale(f *foo) error {
	f.replicas = u.random.Int32N(4)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		foos := fooClient.SamplecontrollerV1alpha1().Foos(f.namespace)
		live, err := foos.Get(context.Background(), f.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.Spec.Replicas = &f.replicas
		_, err = foos.Update(context.Background(), live, metav1.UpdateOptions{})
		return err
	})
}

// work creates all Foos, and scales some until done is closed.
func (u *users) work(names []string, done <-chan struct{}) error {
	for i := 0; ; i++ {
		var err error
		if i < namespaces*foosPerNamespace {
			err = u.createFoo(names[i%namespaces], fmt.Sprintf("foo-%d", i/namespaces))
		} else {
			err = u.scale(u.foos[u.random.IntN(len(u.foos))])
		}
		if err != nil {
			return err
		}
		select {
		case <-done:
			if i >= namespaces*foosPerNamespace {
				return nil
			}
		case <-time.After(time.Duration(u.random.IntN(100)) * time.Millisecond): // a random pause
		}
	}
}

// problem returns an error if a Foo does not have what it asks for.
func (u *users) problem() error {
	for _, f := range u.foos {
		live, err := fooClient.SamplecontrollerV1alpha1().Foos(f.namespace).Get(
			context.Background(), f.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(live.Status.Conditions, "Ready") ||
			live.Status.ObservedGeneration != live.Generation || live.Status.Replicas != f.replicas {
			return fmt.Errorf("foo %s/%s wants %d replicas: %+v", f.namespace, f.name, f.replicas,
				live.Status)
		}
	}
	return nil
}

func TestReplicasAreKilledFrozenAndStopped(t *testing.T) {
	t.Logf("-seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	u := &users{t: t, random: rand.New(rand.NewPCG(*seed, 2))}
	names := u.createNamespaces()
	var replicas []*replica
	for _, name := range []string{"a", "b", "c"} {
		replicas = append(replicas, startReplica(t, name))
	}
	done, worked := make(chan struct{}), make(chan error, 1)
	go func() { worked <- u.work(names, done) }()
	for i := range *faults {
		time.Sleep(*every/2 + time.Duration(random.Int64N(int64(*every)))) // a random pause
		disturb := []func(*replica){(*replica).kill, (*replica).freeze, (*replica).terminate}[i%3]
		disturb(replicas[random.IntN(len(replicas))])
	}
	close(done)
	if err := <-worked; err != nil {
		t.Fatal(err)
	}

	waitUntil(t, u.problem)
	awaitBalance(t)
	end, err := audit.End(controlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(*quiet) // nothing may be written in this time
	late, _, err := audit.Read(controlPlane.AuditLog(), end, "shards-")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range late {
		if r.IsWrite() && r.ObjectRef.Resource != "leases" && r.ObjectRef.Resource != "events" {
			t.Errorf("written although nothing changed: %v", r)
		}
	}
	thawed := map[string]time.Time{}
	for _, r := range replicas {
		r.mu.Lock()
		maps.Copy(thawed, r.thawed)
		r.mu.Unlock()
	}
	all := requests(t)
	checkWriters(t, all, thawed)
	checkCreatedOnce(t, all)
}

// awaitBalance waits until each of the three replicas holds two shards.
func awaitBalance(t *testing.T) {
	t.Helper()
	waitUntil(t, func() error {
		leases, err := kubeClient.CoordinationV1().Leases("default").List(
			t.Context(), metav1.ListOptions{LabelSelector: "shards-of=sample-controller"})
		if err != nil {
			return err
		}
		held, replicas := map[string]int{}, []string{}
		for _, lease := range leases.Items {
			if strings.Contains(lease.Name, "-replica-") {
				replicas = append(replicas, lease.Name)
			} else if lease.Spec.HolderIdentity != nil {
				held[*lease.Spec.HolderIdentity]++
			}
		}
		if len(replicas) != 3 {
			return fmt.Errorf("there are the Leases of %d replicas, want 3: %v", len(replicas), replicas)
		}
		for _, replica := range replicas {
			if held[replica] != 2 {
				return fmt.Errorf("%s holds %d shards, want 2", replica, held[replica])
			}
		}
		return nil
	})
}

// TestAPIServerSendsOnlyTheShard says what a list has with and without the feature, and that the
// API server's hash is ours. A list of Foos does not say that it is a part, but it is one.
func TestAPIServerSendsOnlyTheShard(t *testing.T) {
	leases, err := kubeClient.CoordinationV1().Leases("default").List(t.Context(),
		metav1.ListOptions{ShardSelector: selectorOf(0).String()})
	if err != nil {
		t.Fatal(err)
	}
	if known := leases.ShardInfo != nil; known != (*gates != "") {
		t.Errorf("a list of Leases has shardInfo: got %v, want %v", known, *gates != "")
	}
	u := &users{t: t, random: rand.New(rand.NewPCG(*seed, 3))}
	names := u.createNamespaces()
	for _, name := range names {
		if err := u.createFoo(name, "listed"); err != nil {
			t.Fatal(err)
		}
	}
	got, total := 0, 0
	for index := range len(bounds) - 1 {
		list, err := fooClient.SamplecontrollerV1alpha1().Foos("").List(t.Context(),
			metav1.ListOptions{ShardSelector: selectorOf(index).String()})
		if err != nil {
			t.Fatal(err)
		}
		if list.ShardInfo != nil {
			t.Errorf("the list of Foos says %v: then internal/shards may ask there", list.ShardInfo)
		}
		total += len(list.Items)
		for _, item := range list.Items {
			if shardOf(t, item.Namespace) == fmt.Sprintf("%d-of-6", index) {
				got++
			}
		}
	}
	all, err := fooClient.SamplecontrollerV1alpha1().Foos("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := len(all.Items)
	if *gates == "" {
		want *= len(bounds) - 1 // everything, for each shard
	}
	if got != len(all.Items) || total != want {
		t.Errorf("the lists of all shards have %d Foos, %d of them where we expect them, want %d and %d",
			total, got, want, len(all.Items))
	}
}
