package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
)

// Client is the part of a generated client that Objects needs.
type Client[T metav1.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
}

// Objects are the objects of one kind in the namespace of a test, as a user sees them.
type Objects[T metav1.Object] struct {
	t      *testing.T
	kind   string
	client Client[T]
}

// NewObjects returns the objects of that kind, which client reads and writes.
func NewObjects[T metav1.Object](t *testing.T, kind string, client Client[T]) Objects[T] {
	return Objects[T]{t: t, kind: kind, client: client}
}

// Describe returns what a failure says about an object: all but the managed fields.
func Describe[T metav1.Object](object T) string {
	defer object.SetManagedFields(object.GetManagedFields())
	object.SetManagedFields(nil)
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// called returns the kind and a name, for messages.
func (o Objects[T]) called(name string) string {
	return fmt.Sprintf("%s %q", o.kind, name)
}

// Create creates object.
func (o Objects[T]) Create(object T) T {
	o.t.Helper()
	return must.Get(o.client.Create(o.t.Context(), object, metav1.CreateOptions{}))(o.t)
}

// Get returns the object of that name.
func (o Objects[T]) Get(name string) T {
	o.t.Helper()
	return must.Get(o.client.Get(o.t.Context(), name, metav1.GetOptions{}))(o.t)
}

// When waits until check returns true for the object, and returns the object.
func (o Objects[T]) When(name, expected string, check func(T) bool) (object T) {
	o.t.Helper()
	Eventually(o.t, o.called(name)+" "+expected, func() (bool, string) {
		var err error
		if object, err = o.client.Get(o.t.Context(), name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		return check(object), Describe(object)
	})
	return object
}

// Gone waits until there is no object of that name.
func (o Objects[T]) Gone(name string) {
	o.t.Helper()
	Eventually(o.t, o.called(name)+" is gone", func() (bool, string) {
		object, err := o.client.Get(o.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return apierrors.IsNotFound(err), err.Error()
		}
		return false, Describe(object)
	})
}

// Change changes an object as a user would, and tries again after a conflict.
func (o Objects[T]) Change(name string, change func(T)) {
	o.t.Helper()
	Eventually(o.t, o.called(name)+" is changed", func() (bool, string) {
		object, err := o.client.Get(o.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			change(object)
			_, err = o.client.Update(o.t.Context(), object, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsConflict(err) {
			o.t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// interval is the time between two checks of a condition.
const interval = 30 * time.Millisecond

// Eventually waits until check returns true. If that takes too long, the failure names what did not
// happen, what was seen last, and what to try.
func Eventually(t *testing.T, what string, check func() (ok bool, seen string)) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(interval) {
		ok, seen := check()
		if ok {
			return
		}
		must.Do(t, checkShared())
		if why := verdict.Load(); why != nil {
			t.Fatal(*why) // it would be useless to wait longer
		}
		if time.Since(begin) > Patience {
			GiveUp(t, what+"\nlast seen: "+seen)
		}
	}
}

// GiveUp fails t because what did not happen in time. It says whether the control plane works.
func GiveUp(t *testing.T, what string) {
	t.Helper()
	t.Fatalf("waited %v, but this did not happen: %s\n%s", Patience, what, whoIsToBlame())
}
