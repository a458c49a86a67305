package owned

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Set has the Objects of all kinds that the owners of one controller own. A kind that needs another
// one comes after it.
type Set[O Object] []interface {
	Sync(context.Context, O) (*metav1.Condition, error)
	Seen(cache.ObjectName) bool
	Forget(cache.ObjectName)
	AddEventHandler() (cache.DoneChecker, error)
	Informer() cache.SharedIndexInformer
	NotReadyReasons() []string
}

// Sync takes one step towards all objects that owner should have. It goes on if an object has
// nothing to report yet, such as after a write, so that a new owner gets all its objects in one sync.
// It stops at an object that is not ready, unless that is there and only is not kept as it was sent:
// what comes after it may need it.
//
// Sync returns the condition of the first object that is not ready. If all objects are ready, it
// returns the condition of the last one or, if the API server does not keep all fields of an object,
// the condition of that object. Nil means: nothing to report yet, after a write for example. An event
// or a delay brings the key of owner back.
func (s Set[O]) Sync(ctx context.Context, owner O) (ready *metav1.Condition, err error) {
	written := false
	for _, objects := range s {
		condition, err := objects.Sync(ctx, owner)
		if err != nil {
			return nil, err
		}
		if condition == nil {
			written = true
			continue
		}
		if ready == nil || ready.Status == metav1.ConditionTrue &&
			(condition.Status != metav1.ConditionTrue || !isNotKept(ready)) {
			ready = condition
		}
		if condition.Status != metav1.ConditionTrue && !isNotKept(condition) {
			break
		}
	}
	if written {
		return nil, nil
	}
	return ready, nil
}

// Seen reports whether the informers show the last writes on behalf of the owner with that key. If
// they do not, a sync would decide on an old state.
func (s Set[O]) Seen(key cache.ObjectName) bool {
	for _, objects := range s {
		if !objects.Seen(key) {
			return false
		}
	}
	return true
}

// Forget forgets the writes on behalf of an owner that is gone.
func (s Set[O]) Forget(key cache.ObjectName) {
	for _, objects := range s {
		objects.Forget(key)
	}
}

// AddEventHandlers makes the events of all kinds enqueue owners. What it returns is done when the
// handlers have seen all objects that the informers have.
func (s Set[O]) AddEventHandlers() (synced []cache.DoneChecker, err error) {
	for _, objects := range s {
		checker, err := objects.AddEventHandler()
		if err != nil {
			return nil, err
		}
		synced = append(synced, checker)
	}
	return synced, nil
}

// Informers returns the informers of all kinds.
func (s Set[O]) Informers() (informers []cache.SharedIndexInformer) {
	for _, objects := range s {
		informers = append(informers, objects.Informer())
	}
	return informers
}

// NotReadyReasons returns the reasons of conditions for all kinds, but those of Kind.Ready.
func (s Set[O]) NotReadyReasons() (reasons []string) {
	for _, objects := range s {
		reasons = append(reasons, objects.NotReadyReasons()...)
	}
	return reasons
}
