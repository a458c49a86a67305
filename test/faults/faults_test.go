package faults

import (
	"testing"
	"time"
)

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

		h.settle()
		h.checkNeedless()
		h.checkExits(controller, noAPIServer, noFoos)
	})
}
