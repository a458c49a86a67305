package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	psprocess "github.com/shirou/gopsutil/v4/process"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/suite/kubeconfig"
	"example.com/sample-controller/internal/suite/process"
)

// replica is a process that acts as a user of its own.
type replica struct {
	*process.Process
	name, user string
}

// started counts processes, so that each has another name and another user.
var started int

// startReplicas starts that many replicas, and waits until all have their share of the shards.
func (m *measurement) startReplicas(ctx context.Context, count int) (all []*replica, err error) {
	for range count {
		r := &replica{name: fmt.Sprint("r", started), user: fmt.Sprintf("bench-%d-", started)}
		started++
		config, err := clientcmd.LoadFromFile(m.cluster.Kubeconfig())
		if err != nil {
			return all, err
		}
		path, err := kubeconfig.Write(m.dir, config, r.user, nil)
		if err != nil {
			return all, err
		}
		r.Process, err = process.Start(exec.Command(m.program, "--replica-name="+r.name,
			"--shards="+strconv.Itoa(*shards), "--metrics-bind-address=0",
			"--health-probe-bind-address=0"), path)
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, m.wait(ctx, func() error {
		held, err := m.held(ctx)
		if err != nil {
			return err
		}
		for _, r := range all {
			n := len(held[r.name])
			if n < *shards/count || n > (*shards+count-1)/count {
				return fmt.Errorf("replica %s holds %d of %d shards; it says: %s",
					r.name, n, *shards, r.LastLine())
			}
		}
		return nil
	})
}

// held returns the shards that each replica holds, by its name.
func (m *measurement) held(ctx context.Context) (map[string][]string, error) {
	leases, err := m.kube.CoordinationV1().Leases("default").List(ctx,
		metav1.ListOptions{LabelSelector: "shards-of=sample-controller"})
	if err != nil {
		return nil, err
	}
	held := map[string][]string{}
	for _, lease := range leases.Items {
		_, shard, ok := strings.Cut(lease.Name, "-shard-")
		if holder := lease.Spec.HolderIdentity; ok && holder != nil {
			_, name, _ := strings.Cut(*holder, "-replica-")
			name, _, _ = strings.Cut(name, "-")
			held[name] = append(held[name], shard)
		}
	}
	return held, nil
}

// usage is what a process has used so far.
type usage struct {
	cpu    time.Duration
	memory uint64 // resident, in bytes
}

func usageOf(pid int) (u usage, err error) {
	p, err := psprocess.NewProcess(int32(pid))
	if err != nil {
		return u, err
	}
	times, err := p.Times()
	if err != nil {
		return u, err
	}
	memory, err := p.MemoryInfo()
	if err != nil {
		return u, err
	}
	u.cpu = time.Duration((times.User + times.System) * float64(time.Second))
	u.memory = memory.RSS
	return u, nil
}

// usages returns what each replica has used.
func usages(all []*replica) (found []usage, err error) {
	for _, r := range all {
		u, err := usageOf(r.PID())
		if err != nil {
			return nil, fmt.Errorf("replica %s: %w; it says: %s", r.name, err, r.LastLine())
		}
		found = append(found, u)
	}
	return found, nil
}

// serverCPU returns the CPU time of API server and etcd.
func (m *measurement) serverCPU() (sum time.Duration, err error) {
	for _, component := range []string{"kube-apiserver", "etcd"} {
		pid, _, err := m.cluster.Process(component)
		if err != nil {
			return 0, err
		}
		u, err := usageOf(pid)
		if err != nil {
			return 0, err
		}
		sum += u.cpu
	}
	return sum, nil
}

// between returns the smallest and the largest value, or the only one.
func between[T any](values []T, compare func(a, b T) int, format func(T) string) string {
	low, high := slices.MinFunc(values, compare), slices.MaxFunc(values, compare)
	if format(low) == format(high) {
		return format(low)
	}
	return format(low) + " to " + format(high)
}
