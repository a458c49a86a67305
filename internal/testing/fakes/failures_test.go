package fakes

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestOnlySoManyRequestsOfThatVerbFail(t *testing.T) {
	c := New()
	want := errors.New("made to fail")
	c.Fail("list", "deployments", 2, want)
	c.Fail("list", "foos", 1, want)

	deployments, foos := c.Kube.AppsV1().Deployments(""), c.Foo.SamplecontrollerV1alpha1().Foos("")
	for i, wantErr := range []error{want, want, nil} {
		if _, err := deployments.List(t.Context(), metav1.ListOptions{}); !errors.Is(err, wantErr) {
			t.Errorf("list %d of Deployments: got %v, want %v", i, err, wantErr)
		}
	}
	if _, err := foos.Watch(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("watching Foos: got %v, want no error", err)
	}
	for i, wantErr := range []error{want, nil} {
		if _, err := foos.List(t.Context(), metav1.ListOptions{}); !errors.Is(err, wantErr) {
			t.Errorf("list %d of Foos: got %v, want %v", i, err, wantErr)
		}
	}
}

func TestReportedErrorsAreCounted(t *testing.T) {
	errs := CountErrors(t)
	utilruntime.HandleErrorWithContext(t.Context(), errors.New("one"), "Reported")

	if got := errs.Load(); got != 1 {
		t.Errorf("errors counted: got %d, want 1", got)
	}
}
