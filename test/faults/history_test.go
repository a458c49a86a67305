package faults

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/scenarios"
	"example.com/sample-controller/internal/testing/suite/audit"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// history is what happens in one namespace.
type history struct {
	t           *testing.T
	namespace   string
	foos        fooclient.FooInterface
	deployments appsclient.DeploymentInterface
	user        string // the controller's
	begin       audit.Mark
	proxy       *proxy
	users       *users
	round       int
}

// inRounds runs test once for each round, each in a history of its own.
func inRounds(t *testing.T, test func(*history)) {
	for round := range *rounds {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) {
			test(newHistory(t, round))
		})
	}
}

// newHistory returns a history that has not begun. Its namespace is deleted when the test ends.
func newHistory(t *testing.T, round int) *history {
	t.Helper()
	t.Logf("-seed %d", *seed)
	namespaces := kubeClient.CoreV1().Namespaces()
	created := must.Get(namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		err := namespaces.Delete(context.Background(), created.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			t.Errorf("deleting the namespace: %v", err)
		}
	})
	h := &history{
		t: t, namespace: created.Name, user: created.Name, begin: now(t), round: round,
		foos:        fooClient.SamplecontrollerV1alpha1().Foos(created.Name),
		deployments: kubeClient.AppsV1().Deployments(created.Name),
	}
	h.proxy = startProxy(t, h.random("network"))
	h.users = &users{
		h: h, random: h.random("users"), names: map[string]string{}, deleted: map[int]int{},
	}
	return h
}

// random returns the source of the random choices of one party in this history.
func (h *history) random(party string) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprint(hash, h.t.Name(), h.round, party)
	return rand.New(rand.NewPCG(*seed, hash.Sum64()))
}

// What a controller says if it finds no API server when it starts, or one that is itself starting
// and does not serve Foos yet. The last one is what a leader says that could not renew its Lease.
const (
	noAPIServer = "does not answer"
	noFoos      = "does not serve foos"
	lostLease   = "the Lease was lost"
)

// checkExits fails the test if the controller ended by itself for another reason than these. The
// next call looks only at what has ended since.
func (h *history) checkExits(s *supervisor, reasons ...string) {
	h.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.ended {
		says := func(reason string) bool { return strings.Contains(line, reason) }
		if !slices.ContainsFunc(reasons, says) {
			h.t.Errorf("the controller ended by itself: %s", line)
		}
	}
	s.ended = nil
}

// again calls do again and again until ended is closed. The pauses are random: 0.5 to 1.5 times
// every.
func again(ended <-chan struct{}, every time.Duration, random *rand.Rand, do func() error) error {
	for {
		select {
		case <-ended:
			return nil
		case <-time.After(every/2 + time.Duration(random.Int64N(int64(every)))):
			if err := do(); err != nil {
				return err
			}
		}
	}
}

// lastWave changes all Foos while requests fail, but nothing is killed any more: a controller that
// starts again syncs every Foo, which would hide that it had given one up.
func (h *history) lastWave() {
	h.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(h.users.names)) {
		h.repeat(h.users.scale(name))
	}
	time.Sleep(time.Second) // requests fail for this long
}

// repeat calls do until it succeeds.
func (h *history) repeat(do func() error) {
	h.t.Helper()
	must.Do(h.t, waitUntil(do))
}

func (h *history) right() error {
	is, err := h.look()
	if err == nil && len(is.problems) > 0 {
		err = errors.New(strings.Join(is.problems, "\n"))
	}
	return err
}

// settle waits until everything is as it must be, and checks that it stays so.
func (h *history) settle() {
	h.t.Helper()
	if h.proxy.inject(false) == 0 {
		h.t.Error("the proxy made no request fail")
	}
	begin := time.Now()
	if err := waitUntil(h.right); err != nil {
		if err := controlPlane.Check(); err != nil {
			h.t.Fatal(err) // the control plane failed, not the controller
		}
		h.t.Fatalf("still wrong %v after the last fault: %v\nthe control plane works: look at the "+
			"controller; if this machine is slow or busy, try again with -patience %v -timeout 60m",
			*patience, err, 4**patience)
	}
	h.t.Logf("settled %v after the last fault", time.Since(begin).Round(time.Millisecond))
	h.repeat(func() error {
		if late := h.writesInAWhile(); len(late) > 0 {
			return fmt.Errorf("the controller still writes: %v", late)
		}
		return nil
	})
	if late := h.writesInAWhile(); len(late) > 0 {
		h.t.Errorf("the controller wrote in %v of quiet: %v", *quiet, late)
	}
}

// writesInAWhile returns what is written from now on. Events come after all other writes, and a
// Deployment may change once more when its Pods do.
func (h *history) writesInAWhile() []audit.Request {
	last := now(h.t)
	time.Sleep(*quiet)
	return h.requests(last, h.user, isWrite)
}

// checkNeedless fails the test if the controller created or deleted more Deployments than the users
// gave reason for.
func (h *history) checkNeedless() {
	h.t.Helper()
	check := func(what string, writes []audit.Request, reasons int) {
		if len(writes) > reasons {
			h.t.Errorf("%d Deployments were %s, but there was reason for %d", len(writes), what, reasons)
		}
	}
	check("created", h.requests(h.begin, h.user, isCreation), h.users.reasonsToCreate)
	check("deleted", h.requests(h.begin, h.user, isDeletion), h.users.reasonsToDelete)
}

// state is what the API server stores in a namespace.
type state struct {
	foos        []*v1alpha1.Foo
	deployments []*appsv1.Deployment
	problems    []string // what is wrong when it is quiet
}

// look reads all Foos and Deployments, and finds out what is wrong. The Foos must be those that the
// users have created and not deleted.
func (h *history) look() (*state, error) {
	foos, err := h.foos.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	deployments, err := h.deployments.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	is, missing, owners := &state{}, maps.Clone(h.users.names), map[types.UID]bool{}
	for i := range foos.Items {
		foo := &foos.Items[i]
		is.foos, owners[foo.UID] = append(is.foos, foo), true
		if missing[foo.Name] == "" {
			is.report("Foo %s was deleted, but still exists", foo.Name)
		}
		delete(missing, foo.Name)
	}
	for name := range missing {
		is.report("Foo %s is gone, but nobody deleted it", name)
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		is.deployments = append(is.deployments, d)
		if owner := metav1.GetControllerOf(d); owner != nil && !owners[owner.UID] {
			is.report("Deployment %s belongs to no Foo: %+v", d.Name, owner)
		}
		if d.DeletionTimestamp != nil {
			is.report("Deployment %s is being deleted", d.Name)
		} else if !scenarios.IsAvailable(d) {
			is.report("Deployment %s is not rolled out: %+v", d.Name, d.Status)
		}
	}
	is.problems = append(is.problems, scenarios.Problems(is.foos, is.deployments)...)
	return is, nil
}

func (s *state) report(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// pending returns how many Deployments Foos wait for, because another one has the name, and how
// many former ones are there because of that.
func (s *state) pending() (toCreate, toDelete int) {
	for _, foo := range s.foos {
		has := slices.ContainsFunc(s.deployments, func(d *appsv1.Deployment) bool {
			return d.Name == foo.Spec.DeploymentName && metav1.IsControlledBy(d, foo)
		})
		if !has {
			toCreate++
		}
	}
	return toCreate, len(s.deployments) - (len(s.foos) - toCreate)
}
