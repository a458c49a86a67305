// Package must ends a test that cannot go on.
package must

import "testing"

// Do fails the test, and ends it, if there is an error.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns value, or ends the test if there is an error:
//
//	foo := must.Get(foos.Get(ctx, "web", metav1.GetOptions{}))(t)
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}
