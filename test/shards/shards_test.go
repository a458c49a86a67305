package shards

import (
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

	"example.com/sample-controller/internal/testing/suite/audit"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	namespaces       = 12
	foosPerNamespace = 5
)

// users creates and scales Foos.
type users struct {
	t          *testing.T
	random     *rand.Rand
	namespaces []string
	foos       []*v1alpha1.Foo // with the replicas that were asked for last
}

// newUsers creates the namespaces. The hash of a name depends on its first characters: see the
// tests of internal/extra/shards.
func newUsers(t *testing.T, stream uint64) *users {
	t.Helper()
	u := &users{t: t, random: rand.New(rand.NewPCG(*seed, stream))}
	for range namespaces {
		namespace := &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%08x-team", u.random.Uint32())},
		}
		_, err := kubeClient.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u.namespaces = append(u.namespaces, namespace.Name)
	}
	return u
}

// create creates a Foo in the next namespace.
func (u *users) create() error {
	namespace := u.namespaces[len(u.foos)%namespaces]
	name := fmt.Sprintf("foo-%d", len(u.foos)/namespaces)
	foo, err := fooClient.SamplecontrollerV1alpha1().Foos(namespace).Create(u.t.Context(),
		&v1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: new(int32(1))},
		}, metav1.CreateOptions{})
	u.foos = append(u.foos, foo)
	return err
}

// scale scales some Foo.
func (u *users) scale() error {
	i, replicas := u.random.IntN(len(u.foos)), u.random.Int32N(4)
	foos := fooClient.SamplecontrollerV1alpha1().Foos(u.foos[i].Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := foos.Get(u.t.Context(), u.foos[i].Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.Spec.Replicas, u.foos[i].Spec.Replicas = &replicas, &replicas
		_, err = foos.Update(u.t.Context(), live, metav1.UpdateOptions{})
		return err
	})
}

// work creates all Foos, and scales some until done is closed.
func (u *users) work(done <-chan struct{}) (err error) {
	for err == nil {
		act := u.scale
		if len(u.foos) < namespaces*foosPerNamespace {
			act = u.create
		} else {
			select {
			case <-done:
				return nil
			default:
			}
		}
		err = act()
		time.Sleep(time.Duration(u.random.IntN(100)) * time.Millisecond) // a random pause
	}
	return err
}

// problem returns an error if a Foo does not have what it asks for.
func (u *users) problem() error {
	for _, foo := range u.foos {
		live, err := fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).Get(
			u.t.Context(), foo.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if want := *foo.Spec.Replicas; live.Status.Replicas != want ||
			live.Status.ObservedGeneration != live.Generation ||
			!meta.IsStatusConditionTrue(live.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%s/%s wants %d replicas: %+v", foo.Namespace, foo.Name, want, live.Status)
		}
	}
	return nil
}

func TestReplicasAreKilledFrozenAndStopped(t *testing.T) {
	t.Logf("-seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 1))
	u := newUsers(t, 2)
	var replicas []*replica
	for _, name := range []string{"a", "b", "c"} {
		replicas = append(replicas, startReplica(t, name))
	}
	done, worked := make(chan struct{}), make(chan error, 1)
	go func() { worked <- u.work(done) }()
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
	waitUntil(t, func() error { return imbalance(t) })
	expectQuiet(t)
	thawed := map[string]time.Time{}
	for _, r := range replicas {
		r.mu.Lock()
		maps.Copy(thawed, r.thawed)
		r.mu.Unlock()
	}
	checkRequests(t, thawed)
}

// expectQuiet fails the test if a replica writes something, although nothing changes.
func expectQuiet(t *testing.T) {
	t.Helper()
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
}

// imbalance returns an error unless each of three replicas holds two shards.
func imbalance(t *testing.T) error {
	leases, err := kubeClient.CoordinationV1().Leases("default").List(
		t.Context(), metav1.ListOptions{LabelSelector: "shards-of=sample-controller"})
	if err != nil {
		return err
	}
	held := map[string]int{} // by the name of a replica, which holds its own Lease, too
	for _, lease := range leases.Items {
		if lease.Spec.HolderIdentity != nil {
			held[*lease.Spec.HolderIdentity]++
		} else if strings.Contains(lease.Name, "-replica-") {
			held[lease.Name] = 0
		}
	}
	if len(held) == 3 && len(leases.Items) == 3+shardCount {
		for _, n := range held {
			if n != 3 {
				return fmt.Errorf("the replicas hold %v Leases, want 3 each", held)
			}
		}
		return nil
	}
	return fmt.Errorf("%d Leases, held by %v, want 9 of three replicas", len(leases.Items), held)
}

// TestAPIServerSendsOnlyTheShard says what a list has with and without the feature, and that the
// API server's hash is ours. A list of Foos does not say that it is a part, but it is one.
func TestAPIServerSendsOnlyTheShard(t *testing.T) {
	leases, err := kubeClient.CoordinationV1().Leases("default").List(t.Context(),
		metav1.ListOptions{ShardSelector: selectorOf(0).String()})
	if known := err == nil && leases.ShardInfo != nil; known != (*gates != "") {
		t.Errorf("a list of Leases has shardInfo: got %v (%v), want %v", known, err, *gates != "")
	}
	u := newUsers(t, 3)
	for range namespaces {
		if err := u.create(); err != nil {
			t.Fatal(err)
		}
	}
	list := func(options metav1.ListOptions) *v1alpha1.FooList {
		list, err := fooClient.SamplecontrollerV1alpha1().Foos("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	all := len(list(metav1.ListOptions{}).Items)
	got, total := 0, 0
	for index := range shardCount {
		part := list(metav1.ListOptions{ShardSelector: selectorOf(index).String()})
		if part.ShardInfo != nil {
			t.Errorf("the list of Foos says %v: then internal/extra/shards may ask there", part.ShardInfo)
		}
		total += len(part.Items)
		for _, item := range part.Items {
			if isIn(t, item.Namespace, index) {
				got++
			}
		}
	}
	want := all
	if *gates == "" {
		want *= shardCount // everything, for each shard
	}
	if got != all || total != want {
		t.Errorf("the lists of all shards have %d Foos, %d of them where we expect them, want %d and %d",
			total, got, want, all)
	}
}
