package faults

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// The ways in which the next controller gets an old state, or does not.
const (
	lists   = "lists"   // it lists with resourceVersion=0, as before client-go 1.35
	streams = "streams" // it begins with a watch that sends all objects first
	stands  = "stands"  // it stands by, with its caches filled, until it becomes the leader
)

// lagBatchSize is how many cases run at the same time. They mostly wait.
const lagBatchSize = 16

// lagHolds has what the API server shows late.
var lagHolds = map[string][]string{
	"both": {fooKeys, deploymentKeys}, "Foos": {fooKeys}, "Deployments": {deploymentKeys},
}

// fewLags has the cases that run without -every.
var fewLags = []string{
	"rename/after-2-steps/lists", "rename/after-3-steps/lists",
	"rename-and-back/after-5-steps/lists", "rename-and-back/after-5-steps/streams",
	"rename-and-back/after-5-steps/stands", "rename-and-back-unseen/after-5-steps/lists",
	"rename-to-a-name-that-fails/after-5-steps/lists",
	"delete/after-1-steps/lists", "delete-before-it-is-seen/after-2-steps/lists",
	"delete-without-its-Deployment/after-3-steps/lists",
	"delete-and-create/after-1-steps/lists",
}

// TestEveryLagOfAnAPIServer kills the controller at the end of each scenario, and starts the next
// one with an API server that shows an older state: that after each step. Without -every, it takes
// only a few of them.
func TestEveryLagOfAnAPIServer(t *testing.T) {
	t.Parallel()
	server := lagging(t)
	for _, held := range []string{"both", "Foos", "Deployments"} {
		cases := slices.DeleteFunc(newLagCases(server), func(c *lagCase) bool {
			return !*every && (held != "both" || !slices.Contains(fewLags, c.String()))
		})
		for batch := range slices.Chunk(cases, lagBatchSize) {
			runLags(t, server, held, batch)
		}
	}
}

// newLagCases returns a case for each state of each scenario and each way.
func newLagCases(server *laggingServer) (cases []*lagCase) {
	for _, s := range lagScenarios {
		for after := range s.steps {
			for _, way := range []string{lists, streams, stands} {
				c := &lagCase{lagScenario: s, server: server, after: after, way: way}
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// lagBatch has what the cases wait for that run at the same time.
type lagBatch struct {
	old, acted     sync.WaitGroup // all have come to the old state; all have acted on it
	held, released chan struct{}  // closed when the API server lags, and when it does not any more
}

// runLags runs the cases at the same time, so that one lag is enough.
func runLags(t *testing.T, server *laggingServer, held string, cases []*lagCase) {
	t.Helper()
	b := &lagBatch{held: make(chan struct{}), released: make(chan struct{})}
	b.old.Add(len(cases))
	b.acted.Add(len(cases))
	var all sync.WaitGroup
	for _, c := range cases {
		all.Go(func() {
			c.old, c.acted = sync.OnceFunc(b.old.Done), sync.OnceFunc(b.acted.Done)
			defer c.old() // if -run does not select the case, or if it fails
			defer c.acted()
			t.Run(fmt.Sprintf("%v/%s-behind", c, held), func(t *testing.T) { c.run(t, b) })
		})
	}
	b.old.Wait()
	err := waitUntil(server.catchUp)
	server.hold(lagHolds[held]...)
	close(b.held)
	b.acted.Wait()
	server.release()
	close(b.released)
	all.Wait()
	if err != nil {
		t.Error(err)
	}
}
