// Command shards measures what replicas with shards cost, and what a move costs:
//
//	go -C test/bench run ./shards                                  # 200 Foos, in a few minutes
//	go -C test/bench run ./shards -foos 20000 -namespaces 200      # for docs/performance.md
//	go -C test/bench run ./shards -gates ''                        # without shard selectors
//
// It starts a control plane of its own, runs 1, 2 and 4 replicas on it, one number after the other,
// and prints two tables. The other controllers of the control plane are paused.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/internal/cluster"
)

var (
	foos       = flag.Int("foos", 200, "number of Foos")
	namespaces = flag.Int("namespaces", 20, "number of namespaces that they are in")
	counts     = flag.String("replicas", "1,2,4", "numbers of replicas")
	shards     = flag.Int("shards", 12, "number of shards")
	gates      = flag.String("gates", "ShardedListAndWatch=true",
		"`feature gates` of the API server")
	patience = flag.Duration("patience", 10*time.Minute, "how long to wait for an expected change")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

// measurement is the state of a run of this program.
type measurement struct {
	cluster    *cluster.Cluster
	kube       kubernetes.Interface
	foo        clientset.Interface
	dir        string // of the kubeconfigs
	program    string
	namespaces []string
	tables     [2][]string // rows: what the work costs, what a move costs
}

func run(ctx context.Context) (err error) {
	m := &measurement{}
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	if m.dir, err = os.MkdirTemp("", "shards"); err != nil {
		return err
	}
	defer os.RemoveAll(m.dir)
	m.program = filepath.Join(m.dir, "shards")
	build := exec.Command("go", "build", "-o", m.program, "./docs/tutorial/15-shards")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the program: %w", err)
	}
	if err := os.Setenv("FEATURE_GATES", *gates); err != nil {
		return err
	}
	if m.cluster, err = cluster.Start(root, "bench-shards"); err != nil {
		return err
	}
	defer m.cluster.Stop()
	if err := m.prepare(ctx); err != nil {
		return err
	}
	for count := range strings.SplitSeq(*counts, ",") {
		replicas, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		if err := m.measure(ctx, replicas); err != nil {
			return fmt.Errorf("with %d replicas: %w", replicas, err)
		}
	}
	m.print()
	return nil
}

// prepare makes the namespaces, and pauses what would change Deployments.
func (m *measurement) prepare(ctx context.Context) error {
	if err := m.cluster.InstallCRD(); err != nil {
		return err
	}
	config, err := m.cluster.Config()
	if err != nil {
		return err
	}
	if m.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if m.foo, err = clientset.NewForConfig(config); err != nil {
		return err
	}
	if err := m.createNamespaces(ctx); err != nil {
		return err
	}
	for _, component := range []string{
		"kube-controller-manager", "kube-scheduler", "kwok-controller",
	} {
		pid, _, err := m.cluster.Process(component)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	return nil
}

// measure measures one number of replicas.
func (m *measurement) measure(ctx context.Context, count int) error {
	fmt.Fprintf(os.Stderr, "%d replicas\n", count)
	all, err := m.startReplicas(ctx, count)
	defer func() {
		for _, r := range all {
			r.Kill()
		}
	}()
	if err != nil {
		return err
	}
	if err := m.measureWork(ctx, all); err != nil {
		return err
	}
	if count > 1 {
		if err := m.measureMoves(ctx, all); err != nil {
			return err
		}
	}
	return m.deleteFoos(ctx)
}

func (m *measurement) print() {
	fmt.Printf("`go -C test/bench run ./shards -foos %d -namespaces %d -replicas %s -shards %d "+
		"-gates '%s'`, on %s\n\n", *foos, *namespaces, *counts, *shards, *gates,
		time.Now().Format(time.DateOnly))
	fmt.Println("| replicas | memory of each | CPU of each | CPU of all | " +
		"CPU of API server and etcd | until all was written |")
	fmt.Println("|---|---|---|---|---|---|")
	fmt.Println(strings.Join(m.tables[0], "\n"))
	fmt.Println()
	fmt.Println("| replicas | one goes by | shards that move | until the first one is worked on | " +
		"until all are | requests, without Leases | of them writes | CPU of the others |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	fmt.Println(strings.Join(m.tables[1], "\n"))
}
