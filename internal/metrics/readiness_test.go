package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	k8smetrics "k8s.io/component-base/metrics"

	"example.com/sample-controller/internal/testing/fakes"
)

func TestReasonsOfSyncErrors(t *testing.T) {
	deployments := appsv1.Resource("deployments")
	for _, test := range []struct {
		err  error
		want string
	}{
		{apierrors.NewForbidden(deployments, "a", errors.New("no")), "Forbidden"},
		{fmt.Errorf("creating Deployment: %w", apierrors.NewInternalError(errors.New("no"))),
			"InternalError"},
		{&url.Error{Op: "Get", URL: "https://127.0.0.1", Err: errors.New("refused")}, "NoAnswer"},
		{fmt.Errorf("updating status: %w", context.DeadlineExceeded), "NoAnswer"},
		{errors.New("a bug"), "Other"},
		// A webhook may answer with any reason.
		{&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusTeapot, Reason: "IAmATeapot"}}, "Other"},
	} {
		if got := syncErrorReason(test.err); got != test.want {
			t.Errorf("%v: got reason %q, want %q", test.err, got, test.want)
		}
	}
}

type foo struct {
	metav1.ObjectMeta
	conditions []metav1.Condition
}

func TestObjectsAreCountedByReadiness(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	var foos []*foo
	// add adds a foo of generation 2. Without a reason, it has no condition.
	add := func(status metav1.ConditionStatus, reason string, observed, since int64) {
		added := &foo{ObjectMeta: metav1.ObjectMeta{Generation: 2, CreationTimestamp: at(50)}}
		if reason != "" {
			added.conditions = []metav1.Condition{{Type: "Ready", Status: status,
				Reason: reason, ObservedGeneration: observed, LastTransitionTime: at(since)}}
		}
		foos = append(foos, added)
	}
	registry := k8smetrics.NewKubeRegistry()
	registry.CustomMustRegister(newCollector(Objects[*foo]{
		Subsystem: "foo_controller", Plural: "Foos",
		List:       func(labels.Selector) ([]*foo, error) { return foos, nil },
		Conditions: func(foo *foo) []metav1.Condition { return foo.conditions },
		Reasons:    []string{"Available", "DeploymentNameTaken"},
	}))
	check := func(want map[string]float64) {
		t.Helper()
		if got := fakes.Gather(t, registry); !maps.Equal(got, want) {
			t.Errorf("metrics: got\n%v, want\n%v", got, want)
		}
	}
	check(map[string]float64{`foo_controller_foos{ready="True",reason="Available"}`: 0})

	add(metav1.ConditionTrue, "Available", 2, 60)
	add(metav1.ConditionTrue, "Available", 1, 60)
	add("", "", 0, 0)
	add(metav1.ConditionFalse, "DeploymentNameTaken", 2, 80)
	add(metav1.ConditionFalse, "DeploymentNameTaken", 1, 70)
	add(metav1.ConditionFalse, "DeploymentNameTaken", 2, 90)
	add(metav1.ConditionFalse, "SomebodyElsesReason", 2, 75)
	check(map[string]float64{
		`foo_controller_foos{ready="True",reason="Available"}`:                           1,
		`foo_controller_foos{ready="Unknown",reason="NotObserved"}`:                      2,
		`foo_controller_foos{ready="False",reason="DeploymentNameTaken"}`:                3,
		`foo_controller_foos{ready="False",reason="Other"}`:                              1,
		`foo_controller_not_ready_since_timestamp_seconds{reason="NotObserved"}`:         50,
		`foo_controller_not_ready_since_timestamp_seconds{reason="DeploymentNameTaken"}`: 70,
		`foo_controller_not_ready_since_timestamp_seconds{reason="Other"}`:               75,
	})
}
