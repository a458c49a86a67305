package explore

import (
	"errors"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/explore/apiserver"
)

// Actor is another part of the cluster. It acts some time after something has changed, also by itself,
// until there is nothing left to do.
type Actor struct {
	Name  string
	After time.Duration // a change
	// Act does what there is to do. If the error is a conflict or says that an object is gone, it is no
	// error: that change lets it act again.
	Act func(*World) error
}

// The actors that are ready-made. Each stands for a part of a cluster, and does as little as another
// controller can see.
var (
	// Kubelet runs the Pods that are on no node, or on one that exists. They become ready. If they are
	// not to be restarted always, they succeed after that. It has no containers.
	Kubelet = Actor{"kubelet", 1100 * time.Millisecond, func(w *World) error {
		nodes := w.names("nodes")
		return setStatus(w, "pods", func(pod *corev1.Pod) *corev1.PodStatus {
			if node := pod.Spec.NodeName; node == "" || nodes[node] {
				runPod(pod)
			}
			return &pod.Status
		})
	}}
	// PodGarbageCollector deletes the Pods that are on a node which does not exist.
	PodGarbageCollector = Actor{"pod garbage collector", 40 * time.Second, func(w *World) error {
		nodes := w.names("nodes")
		for _, pod := range w.State().all("pods") {
			if node := As[corev1.Pod](pod).Spec.NodeName; node != "" && !nodes[node] {
				w.delete(pod)
			}
		}
		return nil
	}}
	// Jobs runs Jobs, and completes them. It makes no Pods.
	Jobs = Actor{"jobs", 1200 * time.Millisecond, func(w *World) error {
		return setStatus(w, "jobs.batch", func(job *batchv1.Job) *batchv1.JobStatus {
			runJob(job)
			return &job.Status
		})
	}}
	// Rollouts makes the Pods of Deployments and StatefulSets available, as the step [RollOut] does. It
	// makes no Pods.
	Rollouts = Actor{"rollouts", 1300 * time.Millisecond, func(w *World) error {
		w.rollOut()
		return nil
	}}
)

// runPod lets a Pod run or, if it does and is not to be restarted always, succeed.
func runPod(pod *corev1.Pod) {
	now, ready := metav1.Now(), corev1.ConditionTrue
	status := &pod.Status
	switch {
	case status.Phase == corev1.PodSucceeded, status.Phase == corev1.PodFailed:
		return
	case status.Phase != corev1.PodRunning:
		status.Phase, status.StartTime = corev1.PodRunning, &now
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever,
		pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		status.Phase, ready = corev1.PodSucceeded, corev1.ConditionFalse
	default:
		return
	}
	status.Conditions = nil
	for _, name := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized,
		corev1.ContainersReady, corev1.PodReady} {
		c := corev1.PodCondition{Type: name, Status: corev1.ConditionTrue, LastTransitionTime: now}
		if name == corev1.ContainersReady || name == corev1.PodReady {
			c.Status = ready
		}
		status.Conditions = append(status.Conditions, c)
	}
}

// runJob lets a Job run or, if it does, complete.
func runJob(job *batchv1.Job) {
	now, status := metav1.Now(), &job.Status
	isOver := slices.ContainsFunc(status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue &&
			(c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
	switch {
	case isOver:
	case ptr.Deref(job.Spec.Suspend, false):
		status.StartTime, status.Active, status.Ready = nil, 0, nil
	case status.Active == 0:
		status.Active = ptr.Deref(job.Spec.Parallelism, 1)
		status.StartTime, status.Ready = &now, new(status.Active)
	default:
		status.Active, status.Ready = 0, new(int32(0))
		status.Succeeded, status.CompletionTime = ptr.Deref(job.Spec.Completions, 1), &now
		for _, name := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: name,
				Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now})
		}
	}
}

// setStatus gives each object of a resource, unless it is being deleted, the status that desired returns.
func setStatus[T, Status any](w *World, resource string, desired func(*T) *Status) (err error) {
	for _, o := range w.State().all(resource) {
		if o.GetDeletionTimestamp() != nil {
			continue
		}
		status, malformed := runtime.DefaultUnstructuredConverter.ToUnstructured(desired(As[T](o)))
		if malformed == nil {
			malformed = w.change(o, func(o *object) { o.Object["status"] = status }, "status")
		}
		err = errors.Join(err, malformed)
	}
	return err
}

func (w *World) names(resource string) map[string]bool {
	names := map[string]bool{}
	for _, o := range w.State().all(resource) {
		names[o.GetName()] = true
	}
	return names
}

// wake lets the actors act later, unless they will. w.mu must be held.
func (w *World) wake() {
	for i, actor := range w.controller.Actors {
		if w.waking[i] {
			continue
		}
		w.waking[i] = true
		time.AfterFunc(actor.After, func() {
			w.mu.Lock()
			w.waking[i] = false
			w.mu.Unlock()
			if err := actor.Act(w); !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				w.tell(actor.Name, err)
			}
		})
	}
}

// cluster returns what the cluster does after each step of users.
func (c *Controller) cluster() []Step {
	if c.Actors == nil {
		return []Step{CollectGarbage, RollOut}
	}
	return []Step{CollectGarbage}
}

// Mutate returns a step after which admission changes all objects of a resource that somebody creates
// or changes, as a MutatingAdmissionPolicy does. It stays so until the end, unless another step
// Mutate for the resource has no function.
func Mutate(resource, what string, mutate func(*unstructured.Unstructured)) Step {
	return onLine("admission: "+what+" in ", resource, func(_ *World, l *line) { l.mutate = mutate })
}

// Insist returns a step after which another writer patches an object, as [Patch] does, each time
// somebody has changed it. It ends with Relent, and in the end.
func Insist(object, patch string) Step {
	step := patchAs("another-writer", "another writer insists on", object, patch)
	resource, _, _ := strings.Cut(object, "/")
	return Step{step.Name, func(w *World) {
		gvr, _, _ := w.server.Lookup(resource)
		w.mu.Lock()
		w.insist = func(r *apiserver.Request) {
			if r.Resource.GroupResource() == gvr.GroupResource() {
				time.AfterFunc(10*time.Millisecond, func() { step.Do(w) })
			}
		}
		w.mu.Unlock()
		step.Do(w)
	}}
}

// Relent is a step that ends Insist.
var Relent = network("the other writer relents", func(w *World) { w.insist = nil })

// admit changes an object as admission does.
func (w *World) admit(r *apiserver.Request, object *unstructured.Unstructured) {
	w.mu.Lock()
	mutate := w.line(r.Resource.Resource).mutate
	w.mu.Unlock()
	if mutate != nil && r.Subresource == "" {
		mutate(object)
	}
}
