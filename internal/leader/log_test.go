package leader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// logged returns what klog writes at level 0 while log runs.
func logged(t *testing.T, log func()) string {
	t.Helper()
	t.Cleanup(klog.CaptureState().Restore)
	var text bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&text)
	log()
	klog.Flush()
	return text.String()
}

func TestNormalErrorsAreNotLogged(t *testing.T) {
	leases := coordinationv1.Resource("leases")
	for _, test := range []struct {
		err  error
		want string // in the log
	}{
		{apierrors.NewAlreadyExists(leases, "x"), ""},
		{apierrors.NewConflict(leases, "x", errors.New("changed")), ""},
		{fmt.Errorf("wrapped: %w", apierrors.NewConflict(leases, "x", nil)), ""},
		{fmt.Errorf("wrapped: %w", context.Canceled), ""},
		{context.DeadlineExceeded, `"Failed" err=`},
		{apierrors.NewForbidden(leases, "x", nil), `"Failed" err=`},
		{errors.New("connection refused"), `"Failed" err="connection refused" a="b" lock="x"`},
	} {
		got := logged(t, func() {
			logger := klog.FromContext(withoutNormalErrors(t.Context())).WithValues("a", "b")
			logger.Error(test.err, "Failed", "lock", "x")
		})
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%v: got the log %q, want %q", test.err, got, test.want)
		}
		if got != "" && !strings.Contains(got, " log_test.go:") {
			t.Errorf("got the log %q, want it to name the place of the call", got)
		}
	}
}

func TestOtherMessagesAreLogged(t *testing.T) {
	got := logged(t, func() {
		klog.FromContext(withoutNormalErrors(t.Context())).Info("Successfully acquired lease")
	})
	if !strings.Contains(got, ` log_test.go:`) || !strings.Contains(got, "acquired") {
		t.Errorf("got the log %q, want the message and the place of the call", got)
	}
}
