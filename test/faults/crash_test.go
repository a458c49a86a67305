package faults

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/scenarios"
	"example.com/sample-controller/internal/testing/suite/process"
	"example.com/sample-controller/test/internal/cluster"
)

var allScenarios = flag.Bool("all-scenarios", false, "run TestEveryCrash in all of its scenarios")

// crashScenarios has the scenarios of TestEveryCrash in which a cluster does what an API server in
// memory does not: its garbage collector, its controller of Deployments and its finalizers work
// when they want to. Without -all-scenarios, only the first two run.
var crashScenarios = []string{
	"rename", "delete and create", "scale", "deleted", "rename twice", "rename and delete", "held",
	"taken", "two Foos", "two Foos that swap", "terminating", "namespace",
}

// isWriteOfScenario matches what run.note gets for a write of a Foo or a Deployment.
var isWriteOfScenario = regexp.MustCompile("^(post|put|patch|delete)-(foos|deployments)")

// crash is the death of a process at a write: before it, or after it and before the answer.
type crash struct {
	write string // such as put-foos-a-status-1
	after bool
}

// TestEveryCrash lets the controller die once at each write of a scenario, and starts a new one at
// once. That must find what is to be done, and nothing may be created or deleted twice. It does on
// a cluster what TestExplore/Crash in the root's folder does in virtual time.
//
// Behaviour 20.
func TestEveryCrash(t *testing.T) {
	t.Parallel()
	for i, name := range crashScenarios {
		s := slices.IndexFunc(scenarios.All, func(s explore.Scenario) bool { return s.Name == name })
		if s < 0 {
			t.Errorf("there is no scenario %q", name)
		} else if i < 2 || *allScenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dieAtEach(t, &scenarios.All[s])
			})
		}
	}
}

// dieAtEach runs a scenario undisturbed, and then lets the controller die at each of the writes.
func dieAtEach(t *testing.T, s *explore.Scenario) {
	calm := play(t, s, crash{})
	t.Logf("undisturbed: %v; in the end %s", calm.writes, calm.end)
	for _, write := range calm.writes {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%t", write, after), func(t *testing.T) {
				t.Parallel()
				got := play(t, s, crash{write, after})
				if !got.crashed {
					t.Skip("the controller did not make this request this time")
				}
				total.count("crashes at a write")
				if got.created > calm.created || got.deleted > calm.deleted {
					total.count(needless)
					t.Errorf("%d Deployments were created and %d deleted, but %d and %d without a crash",
						got.created, got.deleted, calm.created, calm.deleted)
				}
				if got.end != calm.end && !s.AnyEnd {
					total.count(wrong)
					t.Errorf("in the end: got %s, want %s", got.end, calm.end)
				}
			})
		}
	}
}

// run is one run of a scenario, with a controller of its own.
type run struct {
	space
	crash      crash
	supervisor *supervisor
	next       http.RoundTripper // to the API server
	end        string            // what there is in the end

	mu               sync.Mutex
	crashed          bool
	writes           []string       // of Foos and Deployments, by the controller
	times            map[string]int // how often there was a write
	created, deleted int            // Deployments, by the controller
}

// play lets a scenario happen, and the controller die once if c is not empty. At the end of each
// step, everything must become as it must be.
func play(t *testing.T, s *explore.Scenario, c crash) *run {
	t.Helper()
	r := &run{space: newSpace(t), crash: c, times: map[string]int{}}
	config := must.Get(controlPlane.Config())(t)
	take := must.Get(explore.OnCluster(config, r.namespace, root+"artifacts/examples/crd.yaml"))(t)
	url := serveProxy(t, func(next http.RoundTripper) http.RoundTripper {
		r.next = next
		return r
	})
	path := writeKubeconfig(t, r.namespace, r.namespace, url)
	r.supervisor = supervise(t, func() (*process.Process, error) {
		return startProgram(path, r.namespace)
	})
	r.await("the start", false)
	for _, step := range s.Steps {
		must.Do(t, take(step))
		r.await(step.Name, false)
	}
	r.await("the last step", true)
	r.supervisor.stop()
	for _, line := range r.supervisor.ended {
		total.count(unexplained)
		t.Errorf("the controller ended by itself: %s", line)
	}
	return r
}

// await waits until the controller works, and everything is as it must be. If quiet is true, it
// also waits until the controller writes nothing for longer than it takes to look at a write again.
func (r *run) await(after string, quiet bool) {
	r.t.Helper()
	err := cluster.WaitUntil(*patience, 200*time.Millisecond, func() error {
		if !r.supervisor.works() {
			return errors.New("the controller does not work yet")
		}
		r.mu.Lock()
		writes := len(r.writes)
		r.mu.Unlock()
		is, err := r.state()
		if err != nil || len(is.problems) > 0 || !quiet {
			return errors.Join(err, is.err())
		}
		r.end = is.String()
		time.Sleep(2 * time.Second) // nothing may be written in this time
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.writes) > writes {
			return fmt.Errorf("the controller has just written: %v", r.writes[writes:])
		}
		return nil
	})
	if err != nil {
		total.count(wrong)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.t.Fatalf("%s: still wrong after %v: %v\nwrites: %v\noutput of the last controller:\n%s",
			after, *patience, err, r.writes, r.supervisor.output())
	}
}

// String says which objects there are.
func (s *state) String() string {
	var all []string
	for _, foo := range s.foos {
		all = append(all, fmt.Sprintf("Foo %s with %d", foo.Name, foo.Status.Replicas))
	}
	for _, d := range s.deployments {
		owner := "nobody"
		if ref := metav1.GetControllerOf(d); ref != nil {
			owner = ref.Name
		}
		text := fmt.Sprintf("Deployment %s of %s with %d", d.Name, owner, d.Status.Replicas)
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// RoundTrip sends a request to the API server. If the process is to die at it, it dies there.
func (r *run) RoundTrip(request *http.Request) (*http.Response, error) {
	_, what, _ := strings.Cut(request.URL.Path, "/namespaces/"+r.namespace+"/")
	what = strings.ToLower(request.Method) + "-" + strings.ReplaceAll(what, "/", "-")
	if !isWriteOfScenario.MatchString(what) {
		return r.next.RoundTrip(request)
	}
	dies := r.note(what)
	if dies && !r.crash.after {
		<-r.supervisor.kill()
		return nil, errCut
	}
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusMultipleChoices {
		r.mu.Lock()
		switch verb, resource, _ := strings.Cut(what, "-"); {
		case verb == "post" && resource == "deployments":
			r.created++
		case verb == "delete": // it deletes nothing else
			r.deleted++
		}
		r.mu.Unlock()
	}
	if dies {
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		<-r.supervisor.kill()
		return nil, errCut
	}
	return response, nil
}

// note notes a write, and reports whether the process is to die at it.
func (r *run) note(what string) (dies bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[what]++
	write := fmt.Sprintf("%s-%d", what, r.times[what])
	r.writes = append(r.writes, write)
	dies = !r.crashed && write == r.crash.write
	r.crashed = r.crashed || dies
	return dies
}
