package suite

import (
	"testing"
	"time"
)

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
		if err := checkShared(); err != nil {
			t.Fatal(err)
		}
		if why := verdict.Load(); why != nil {
			t.Fatal(*why) // it would be useless to wait longer
		}
		if time.Since(begin) > Patience {
			GiveUp(t, what, "last seen: "+seen)
		}
	}
}

// GiveUp fails t because what did not happen in time. It says whether the control plane works.
func GiveUp(t *testing.T, what, seen string) {
	t.Helper()
	if seen != "" {
		seen += "\n"
	}
	t.Fatalf("waited %v, but this did not happen: %s\n%s%s", Patience, what, seen, whoIsToBlame())
}
