package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/docs/internal/lab"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// start returns a validator whose cache shows the Foos of l.
func start(l *lab.Lab) *validator {
	l.T.Helper()
	factory := fooinformers.NewSharedInformerFactory(l.Foo, 0)
	validator := must.Get(newValidator(factory.Samplecontroller().V1alpha1().Foos()))(l.T)
	l.Start(func(ctx context.Context) {
		factory.StartWithContext(ctx)
		<-ctx.Done()
		factory.Shutdown()
	})
	return validator
}

// raw returns a Foo in JSON, as the API server sends it, or nothing if deploymentName is empty.
func raw(name, deploymentName string) (extension runtime.RawExtension) {
	if deploymentName != "" {
		extension.Raw = fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"deploymentName":%q}}`,
			name, deploymentName)
	}
	return extension
}

// ask asks whether the Foo of that name may get deploymentName in place of old, or may be created
// if old is empty. The answer is "", what is said in the refusal, or a warning.
func ask(t *testing.T, v *validator, namespace, name, old, deploymentName string) string {
	t.Helper()
	operation := admissionv1.Create
	if old != "" {
		operation = admissionv1.Update
	}
	response := v.admit(t.Context(), &admissionv1.AdmissionRequest{
		Operation: operation, Namespace: namespace,
		Object: raw(name, deploymentName), OldObject: raw(name, old),
	})
	if !response.Allowed {
		return response.Result.Message
	}
	return strings.Join(response.Warnings, "\n")
}

func TestASecondFooOfADeploymentIsRefused(t *testing.T) {
	const refusal = `Foo.samplecontroller.k8s.io "second" is invalid: spec.deploymentName: Invalid ` +
		`value: "web": is the Deployment of Foo "first": choose another name, or delete that Foo`
	tests := []struct{ name, namespace, foo, old, deploymentName, want string }{
		{"a new one", lab.Namespace, "second", "", "web", refusal},
		{"a renamed one", lab.Namespace, "second", "other", "web", refusal},
		{"one that has the name already", lab.Namespace, "second", "web", "web", ""},
		{"a free name", lab.Namespace, "second", "", "other", ""},
		{"a name that is free after a renaming", lab.Namespace, "second", "web", "other", ""},
		{"the first one", lab.Namespace, "first", "", "web", ""},
		{"another namespace", "elsewhere", "second", "", "web", ""},
		{"one that is being deleted", lab.Namespace, "second", "", "gone",
			`Deployment "gone" is that of Foo "going", which is being deleted; this Foo waits for it`},
	}
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.CreateFoo("first", "web", 1)
		l.CreateFoo("going", "gone", 1)
		l.ChangeFoo("going", func(foo *v1alpha1.Foo) { foo.Finalizers = []string{"example.com/held"} })
		l.DeleteFoo("going")
		v := start(l)
		for _, test := range tests {
			got := ask(t, v, test.namespace, test.foo, test.old, test.deploymentName)
			if got != test.want {
				t.Errorf("%s: got %q, want %q", test.name, got, test.want)
			}
		}
	})
}

func TestTwoFoosAtTheSameTimeMayBothPass(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		v := start(l)
		l.Lag("foos", 5*time.Second)
		l.CreateFoo("first", "web", 1)

		if got := ask(t, v, lab.Namespace, "second", "", "web"); got != "" {
			t.Errorf("before the cache shows the first: got %q, want no refusal", got)
		}
		time.Sleep(6 * time.Second)
		if got := ask(t, v, lab.Namespace, "third", "", "web"); !strings.Contains(got, "first") {
			t.Errorf("when the cache shows the first: got %q, want a refusal", got)
		}
	})
}
