package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/suite/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/cluster"
)

// The resources that the controller watches.
const deploymentsResource = "deployments.apps"

var foosResource = v1alpha1.Resource("foos").String()

// play is one run of a scenario, with a controller of its own.
type play struct {
	space
	expected   // in the end of the step
	crash      crash
	supervisor *supervisor
	held       *witness // whose watch a step has held
	// How often the controller had reason to create a Deployment, and to delete one.
	reasonsToCreate, reasonsToDelete int

	mu               sync.Mutex
	crashed          bool
	witnesses        []*witness // one for each process
	requests         []request
	created, deleted int // Deployments, by the controller
}

// play lets a scenario happen, and checks at the end of each step that everything is as it must be.
// If c is not empty, the controller dies once.
func (s scenario) play(t *testing.T, c crash) *play {
	t.Helper()
	p := &play{space: newSpace(t), crash: c}
	p.names, p.foreign = map[string]bool{}, map[string]bool{}
	p.awaitServiceAccount()
	p.supervisor = &supervisor{start: p.startProgram, done: make(chan struct{})}
	p.supervisor.begin(t)
	t.Cleanup(p.explain)
	p.await("the start", allRight)
	for _, step := range s.steps {
		if err := step.do(p); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		p.await(step.what, step.until)
	}
	p.checkQuiet()
	p.stop()
	return p
}

// explain logs what has happened if the test has failed.
func (p *play) explain() {
	if !p.t.Failed() {
		return
	}
	p.mu.Lock()
	requests := slices.Clone(p.requests)
	p.mu.Unlock()
	p.t.Logf("requests: %v\noutput of the last controller:\n%s", requests, p.supervisor.output())
}

// stop ends the controller and all of its requests.
func (p *play) stop() {
	p.t.Helper()
	p.supervisor.stop()
	for _, w := range p.witnesses {
		w.Close()
	}
	for _, line := range p.supervisor.ended {
		total.count(unexplained)
		p.t.Errorf("the controller ended by itself: %s", line)
	}
}

// startProgram starts a controller and its witness.
func (p *play) startProgram() (*process.Process, error) {
	w, err := p.startWitness()
	if err != nil {
		return nil, err
	}
	path, err := writeKubeconfig(p.namespace, p.namespace, w.url)
	if err != nil {
		return nil, err
	}
	return startProgram(path, p.namespace)
}

// awaitServiceAccount waits until Pods can be created. Otherwise, the first of them might fail.
func (p *play) awaitServiceAccount() {
	p.t.Helper()
	err := waitUntil(func() error {
		_, err := kubeClient.CoreV1().ServiceAccounts(p.namespace).Get(
			context.Background(), "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// await waits until the controller runs, and check returns nil.
func (p *play) await(after string, check func(*play) error) {
	p.t.Helper()
	err := cluster.WaitUntil(*patience, 200*time.Millisecond, func() error {
		if err := p.running(); err != nil {
			return err
		}
		return check(p)
	})
	if err == nil {
		return
	}
	for _, problem := range p.wrong() {
		total.count(problem.kind)
	}
	if err := controlPlane.Check(); err != nil {
		p.t.Fatal(err) // the control plane failed, not the controller
	}
	p.t.Fatalf("%s: still wrong after %v: %v", after, *patience, err)
}

// last returns the witness of the newest process.
func (p *play) last() *witness {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.witnesses[len(p.witnesses)-1]
}

// running returns an error until the newest process watches what it has to.
func (p *play) running() error {
	w := p.last()
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.dead || !w.watching[foosResource] || !w.watching[deploymentsResource] {
		return fmt.Errorf("process %d of the controller does not watch yet", w.process)
	}
	return nil
}

// wrong returns what is wrong.
func (p *play) wrong() []problem {
	problems, err := p.problems(p.expected)
	if err != nil {
		p.t.Error(err)
	}
	return problems
}

// allRight returns an error that says what is wrong.
func allRight(p *play) error {
	problems, err := p.problems(p.expected)
	for _, problem := range problems {
		err = errors.Join(err, errors.New(problem.String()))
	}
	return err
}

// checkQuiet fails the test if the controller writes Foos or Deployments once all is right. Events
// may still come: nothing waits for them. There are many plays, so each one is short, but longer
// than the time after which the controller looks at what it wrote again.
func (p *play) checkQuiet() {
	p.t.Helper()
	quiet := min(*quiet, 2*time.Second)
	for begin := time.Now(); ; {
		versions := p.versions()
		p.await("the last step", allRight)
		seen := p.seen()
		time.Sleep(quiet) // nothing may be written in this time
		writes := p.writesSince(seen)
		if len(writes) == 0 {
			return
		}
		// The Deployment controller may have seen more Pods come and go.
		statuses := !slices.ContainsFunc(writes, func(r request) bool {
			return strings.Contains(r.what, "-deployments-")
		})
		if !statuses || maps.Equal(p.versions(), versions) || time.Since(begin) > *patience {
			total.add(lateWrites, len(writes))
			p.t.Errorf("the controller wrote in %v of quiet: %v", quiet, writes)
			return
		}
	}
}

// versions returns the resourceVersions of all Deployments.
func (p *play) versions() map[string]string {
	p.t.Helper()
	list, err := p.deployments.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	versions := map[string]string{}
	for _, deployment := range list.Items {
		versions[deployment.Name] = deployment.ResourceVersion
	}
	return versions
}

// seen returns how many requests there were.
func (p *play) seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// writesSince returns the writes of Foos and Deployments after that many requests.
func (p *play) writesSince(seen int) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.requests[seen:]), func(r request) bool {
		return !r.isWrite()
	})
}

// expectAtMost fails the test if the controller created or deleted more Deployments than that.
func (p *play) expectAtMost(created, deleted int, because string) {
	p.t.Helper()
	if p.created <= created && p.deleted <= deleted {
		return
	}
	total.count(needless)
	p.t.Errorf("the controller created %d Deployments and deleted %d, but %s %d and %d",
		p.created, p.deleted, because, created, deleted)
}
