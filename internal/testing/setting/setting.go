// Package setting has what the reader's environment says about tests.
package setting

import (
	"os"
	"testing"
	"time"
)

// All reports whether long tests run, too: those that take minutes, or cost much.
func All() bool { return os.Getenv("HACK_TESTS") == "all" }

// Long skips t, which is long, unless All.
func Long(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("left out, because it is long: HACK_TESTS=all runs it")
	}
}

// Patience returns how long a test waits for a condition. It goes on as soon as the condition holds,
// so much patience costs nothing.
func Patience() time.Duration {
	if patience, err := time.ParseDuration(os.Getenv("HACK_PATIENCE")); err == nil {
		return patience
	}
	return 3 * time.Minute
}
