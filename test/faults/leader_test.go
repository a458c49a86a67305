package faults

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// electionFlags let a controller work only while it holds the Lease.
var electionFlags = []string{"--leader-elect", "--leader-elect-lease-duration=8s",
	"--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=500ms"}

func (h *history) awaitLeader(before string) (holder string) {
	h.t.Helper()
	h.repeat(func() error {
		leases, err := kubeClient.CoordinationV1().Leases(h.namespace).List(
			context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, lease := range leases.Items {
			holder = *lease.Spec.HolderIdentity
		}
		if holder == before {
			return fmt.Errorf("the holder of the Lease is still %q", before)
		}
		return nil
	})
	return holder
}

// Behaviour 20.
func TestFrozenLeaderGivesWay(t *testing.T) {
	t.Parallel()
	inRounds(t, func(h *history) {
		leaderUser, standbyUser := h.user+"-leader", h.user+"-standby"
		leader := h.startOnce(leaderUser, electionFlags...)
		first := h.awaitLeader("")
		standby := h.startOnce(standbyUser, electionFlags...)
		h.await(standbyUser, "looked at the Lease twice", 2, func(r audit.Request) bool {
			return r.ObjectRef.Resource == "leases" && r.Verb == "get"
		})
		h.proxy.inject(true)
		worked := make(chan error, 1)
		go func() { worked <- h.users.createAndScale(leader.Exited) }()

		time.Sleep(time.Duration(h.random("freeze").IntN(1000)) * time.Millisecond) // some moment
		leader.Signal(syscall.SIGSTOP)
		h.awaitLeader(first)
		h.await(standbyUser, "written something", 1, isWrite)
		leader.Signal(syscall.SIGCONT)

		h.checkGivesWay(leader)
		must.Do(h.t, <-worked)
		h.user = standbyUser
		h.settle()
		h.checkCreatedOnce(leaderUser, standbyUser)
		select {
		case <-standby.Exited:
			h.t.Errorf("the new leader exited: %s", standby.LastLine())
		default:
		}
	})
}

// await waits until user has made that many requests for which selects returns true.
func (h *history) await(user, what string, times int, selects func(audit.Request) bool) {
	h.t.Helper()
	h.repeat(func() error {
		if n := len(h.requests(h.begin, user, selects)); n < times {
			return fmt.Errorf("%s has not %s: it made %d such requests", user, what, n)
		}
		return nil
	})
}

// checkGivesWay fails the test unless leader soon ends with an error.
func (h *history) checkGivesWay(leader *process.Process) {
	h.t.Helper()
	begin := time.Now()
	select {
	case <-leader.Exited:
		h.t.Logf("the former leader ended %v after it was thawed", time.Since(begin))
	case <-time.After(*patience):
		h.t.Fatalf("the former leader has lost the Lease, but still runs after %v", *patience)
	}
	if code := leader.ExitCode(); code != 1 {
		h.t.Errorf("the former leader exited with %d, want 1: %s", code, leader.LastLine())
	}
}

// checkCreatedOnce fails the test if these users together created a Deployment more than once.
func (h *history) checkCreatedOnce(users ...string) {
	h.t.Helper()
	times := map[string]int{}
	for _, user := range users {
		for _, creation := range h.requests(h.begin, user, isCreation) {
			if times[creation.ObjectRef.Name]++; times[creation.ObjectRef.Name] > 1 {
				h.t.Errorf("Deployment %s was created again by %s", creation.ObjectRef.Name, user)
			}
		}
	}
}

// disturb calls disturbance again and again while users work, every so often on average.
func (h *history) disturb(every time.Duration, disturbance func() error) {
	h.t.Helper()
	h.proxy.inject(true)
	var workErr error
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		workErr = h.users.work()
	}()
	err := again(worked, every, h.random("disturbances"), disturbance)
	if <-worked; workErr != nil || err != nil {
		h.t.Fatal(workErr, err)
	}
}

// Behaviour 20.
func TestRequestsFailAndTheControllerIsKilled(t *testing.T) {
	t.Parallel()
	inRounds(t, func(h *history) {
		controller := h.supervise()
		h.disturb(*killEvery, func() error {
			controller.kill()
			return nil
		})
		h.lastWave()

		h.settle()
		h.checkNeedless()
		h.checkExits(controller, noAPIServer)
	})
}

// Behaviour 20.
func TestRequestsFailAndServersAreKilled(t *testing.T) {
	inRounds(t, func(h *history) {
		h.users.newNames = true
		controller := h.supervise()
		random, server, next := h.random("servers"), "kube-apiserver", "etcd"
		h.disturb(*killEvery*3/2, func() error { // to start it again takes longer, too
			server, next = next, server
			return restart(server, time.Duration(random.IntN(1000))*time.Millisecond)
		})
		h.lastWave()
		must.Do(h.t, controlPlane.Hurry())

		h.settle()
		h.checkNeedless()
		h.checkExits(controller, noAPIServer, noFoos)
	})
}
