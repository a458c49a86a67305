// Package finalizer adds and removes a finalizer. A controller that makes something outside
// Kubernetes needs one: the API server then keeps the custom resource until the controller has
// removed what it made.
//
// The order matters. Add the finalizer before the outside thing is made, and remove it after that
// is gone. Otherwise, a crash between the two leaves something behind that nobody knows of.
//
//	if foo.DeletionTimestamp != nil {
//		if !finalizer.Has(foo, name) {
//			return nil // another finalizer holds it
//		}
//		if err := c.registry.Delete(ctx, foo.UID); err != nil {
//			return err // report it in the status, too, or nobody knows why the Foo stays
//		}
//		_, err := finalizer.Remove(ctx, client, foo, name, manager)
//		return err
//	}
//	if !finalizer.Has(foo, name) {
//		foo, err = finalizer.Add(ctx, client, foo, name, manager)
//		...
//	}
//
// Both are writes of the controller. So the next sync should wait until the cache shows the
// resourceVersion of the object that they return: see the package consistency.
package finalizer

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/patch"
)

// Has reports whether object has the finalizer.
func Has(object metav1.Object, finalizer string) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}

// Add adds the finalizer, and returns the object as the API server has it then. It returns a
// conflict if object, which is what the caller has seen, is not the newest.
func Add[T patch.Object](
	ctx context.Context, client patch.Client[T], object T, finalizer, manager string,
) (T, error) {
	return write(ctx, client, object, append(slices.Clone(object.GetFinalizers()), finalizer), manager)
}

// Remove removes the finalizer, and returns the object as the API server had it last. It is no
// error if the object is gone already. Remove returns a conflict if object is not the newest.
func Remove[T patch.Object](
	ctx context.Context, client patch.Client[T], object T, finalizer, manager string,
) (T, error) {
	left := slices.DeleteFunc(slices.Clone(object.GetFinalizers()),
		func(name string) bool { return name == finalizer })
	removed, err := write(ctx, client, object, left, manager)
	if patch.IsGone(err) {
		return object, nil
	}
	return removed, err
}

// write writes the finalizers of object, and nothing else. The patch names the UID and the
// resourceVersion of object: a list in a merge patch replaces what others have added since then,
// and an object that was made again under the same name is another one.
func write[T patch.Object](
	ctx context.Context, client patch.Client[T], object T, finalizers []string, manager string,
) (T, error) {
	desired := object.DeepCopyObject().(T)
	desired.SetFinalizers(finalizers)
	written, err := patch.Send(ctx, client, object, desired, manager)
	if err != nil {
		return object, fmt.Errorf("writing the finalizers: %w", err)
	}
	return written, nil
}
