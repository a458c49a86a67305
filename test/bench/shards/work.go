package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/suite/audit"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// writers is how many Foos are created at a time.
const writers = 16

// createNamespaces makes namespaces whose names differ in the first characters. Names that differ
// only in the last ones would share few shards.
func (m *measurement) createNamespaces(ctx context.Context) error {
	random := rand.New(rand.NewPCG(1, 1))
	for range *namespaces {
		name := fmt.Sprintf("%08x-team", random.Uint32())
		_, err := m.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		m.namespaces = append(m.namespaces, name)
	}
	return nil
}

// wait calls check until it returns nil.
func (m *measurement) wait(ctx context.Context, check func() error) error {
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil || time.Since(begin) > *patience || ctx.Err() != nil {
			return err
		}
	}
}

// measureWork creates all Foos, and measures until everything is written.
func (m *measurement) measureWork(ctx context.Context, all []*replica) error {
	before, err := usages(all)
	if err != nil {
		return err
	}
	serverBefore, err := m.serverCPU()
	if err != nil {
		return err
	}
	mark, err := audit.End(m.cluster.AuditLog())
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := m.createFoos(ctx); err != nil {
		return err
	}
	last, err := m.awaitWrites(ctx, mark, 3*(*foos)) // Deployment, Event, status
	if err != nil {
		return err
	}
	after, err := usages(all)
	if err != nil {
		return err
	}
	server, err := m.serverCPU()
	if err != nil {
		return err
	}
	var cpus []time.Duration
	var sum time.Duration
	for i := range after {
		cpus = append(cpus, after[i].cpu-before[i].cpu)
		sum += cpus[i]
	}
	m.tables[0] = append(m.tables[0], fmt.Sprintf("| %d | %s | %s | %s | %s | %.1f s |", len(all),
		between(after, func(a, b usage) int { return cmp.Compare(a.memory, b.memory) },
			func(u usage) string { return fmt.Sprintf("%d MiB", u.memory>>20) }),
		between(cpus, cmp.Compare[time.Duration], seconds), seconds(sum),
		seconds(server-serverBefore), last.Sub(begin).Seconds()))
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (m *measurement) createFoos(ctx context.Context) error {
	numbers, failed := make(chan int), make(chan error, writers)
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for i := range numbers {
				name := fmt.Sprintf("foo-%d", i)
				_, err := m.foo.SamplecontrollerV1alpha1().Foos(m.namespaces[i%len(m.namespaces)]).
					Create(ctx, &v1alpha1.Foo{
						ObjectMeta: metav1.ObjectMeta{Name: name},
						Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: new(int32(1))},
					}, metav1.CreateOptions{})
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for i := range *foos {
		select {
		case numbers <- i:
		case err := <-failed:
			return err
		}
	}
	close(numbers)
	group.Wait()
	return nil
}

// awaitWrites waits until the replicas have made that many writes, and returns when the last one
// was answered.
func (m *measurement) awaitWrites(
	ctx context.Context, mark audit.Mark, count int,
) (last time.Time, err error) {
	writes := 0
	err = m.wait(ctx, func() error {
		requests, end, err := audit.Read(m.cluster.AuditLog(), mark, "bench-")
		if err != nil {
			return err
		}
		mark = end
		for _, r := range requests {
			if isWork(r) && r.Succeeded() {
				writes++
				last = r.StageTimestamp
			}
		}
		if writes < count {
			return fmt.Errorf("the replicas have made %d writes of %d", writes, count)
		}
		return nil
	})
	return last, err
}

// isWork reports whether r is a write to anything but a Lease.
func isWork(r audit.Request) bool { return r.IsWrite() && r.ObjectRef.Resource != "leases" }

// deleteFoos deletes everything: kube-controller-manager is paused, and collects no garbage.
func (m *measurement) deleteFoos(ctx context.Context) error {
	for _, namespace := range m.namespaces {
		err := m.foo.SamplecontrollerV1alpha1().Foos(namespace).DeleteCollection(
			ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return err
		}
		err = m.kube.AppsV1().Deployments(namespace).DeleteCollection(
			ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// measureMoves stops one replica, starts it again, and kills it.
func (m *measurement) measureMoves(ctx context.Context, all []*replica) error {
	for i, way := range []struct {
		name   string
		signal syscall.Signal
	}{{"SIGTERM", syscall.SIGTERM}, {"SIGKILL", syscall.SIGKILL}} {
		if i > 0 {
			for _, r := range all {
				r.Kill()
			}
			next, err := m.startReplicas(ctx, len(all))
			copy(all, next)
			if err != nil {
				return err
			}
		}
		if err := m.measureMove(ctx, all, way.name, way.signal); err != nil {
			return err
		}
	}
	return nil
}

// measureMove ends the first replica, changes a Foo in each of its shards, and waits until others
// have worked on all of them.
func (m *measurement) measureMove(
	ctx context.Context, all []*replica, name string, signal syscall.Signal,
) error {
	victim, others := all[0], all[1:]
	held, err := m.held(ctx)
	if err != nil {
		return err
	}
	changed, err := m.oneNamespaceOfEach(held[victim.name])
	if err != nil {
		return err
	}
	before, err := usages(others)
	if err != nil {
		return err
	}
	mark, err := audit.End(m.cluster.AuditLog())
	if err != nil {
		return err
	}
	begin := time.Now()
	victim.Signal(signal)
	<-victim.Exited // it does not see what changes now
	if err := m.scaleOneFooIn(ctx, changed); err != nil {
		return err
	}
	first, last, err := m.awaitUpdates(ctx, mark, changed)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // the rest: statuses, and syncs that find nothing to do
	after, err := usages(others)
	if err != nil {
		return err
	}
	reads, writes, err := m.countRequests(mark, others)
	if err != nil {
		return err
	}
	var cpu time.Duration
	for i := range after {
		cpu += after[i].cpu - before[i].cpu
	}
	m.tables[1] = append(m.tables[1], fmt.Sprintf("| %d | %s | %d | %.1f s | %.1f s | %d | %d | %s |",
		len(all), name, len(held[victim.name]), first.Sub(begin).Seconds(), last.Sub(begin).Seconds(),
		reads+writes, writes, seconds(cpu)))
	return nil
}

// countRequests counts what the replicas have requested, without Leases. A watch is a read.
func (m *measurement) countRequests(
	mark audit.Mark, replicas []*replica,
) (reads, writes int, err error) {
	requests, _, err := audit.Read(m.cluster.AuditLog(), mark, "bench-")
	for _, r := range requests {
		mine := slices.ContainsFunc(replicas, func(o *replica) bool { return o.user == r.User() })
		switch {
		case !mine || r.ObjectRef.Resource == "leases":
		case r.IsWrite():
			writes++
		default:
			reads++
		}
	}
	return reads, writes, err
}
