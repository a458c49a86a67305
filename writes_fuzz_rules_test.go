package main

import (
	"flag"
	"fmt"
	"regexp"
	"testing"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var (
	fuzzKubeconfig = flag.String("fuzz-kubeconfig", "",
		"kubeconfig `file` of an API server with the CRD, which then decides what is valid")
	fuzzRandom = flag.Int("fuzz-random", 0, "number of random seed inputs of FuzzWhatIsWritten")
)

// judge says what an API server accepts.
type judge interface {
	// createFoo returns foo as it is stored, or nil if it is refused.
	createFoo(*testing.T, *v1alpha1.Foo) *v1alpha1.Foo
	deleteFoo(*testing.T, *v1alpha1.Foo)
	// deployment returns a Deployment as it would be stored, or why it is refused.
	deployment(*testing.T, *appsv1.Deployment) (*appsv1.Deployment, error)
	// status returns why the status of a Foo is refused, or nil.
	status(*testing.T, *v1alpha1.Foo, v1alpha1.FooStatus) error
	// event returns why an Event is refused, or nil.
	event(*testing.T, *eventsv1.Event) error
}

// newJudge returns the API server of -fuzz-kubeconfig, or rules if the flag is not set.
func newJudge(f *testing.F) judge {
	f.Helper()
	if *fuzzKubeconfig == "" {
		return rules{}
	}
	return connectJudge(f, *fuzzKubeconfig)
}

// rules checks the rules of the API server that the controller could break most easily. It is fast.
type rules struct{}

func (rules) createFoo(_ *testing.T, foo *v1alpha1.Foo) *v1alpha1.Foo {
	if len(validation.IsDNS1123Subdomain(foo.Name)) > 0 ||
		len(validation.IsDNS1123Subdomain(foo.Spec.DeploymentName)) > 0 ||
		foo.Spec.Replicas != nil && *foo.Spec.Replicas < 0 {
		return nil
	}
	foo.UID = "9515be63-9f39-4707-8389-0be65389c9cd"
	return foo
}

func (rules) deleteFoo(*testing.T, *v1alpha1.Foo) {}

func (rules) deployment(_ *testing.T, deployment *appsv1.Deployment) (*appsv1.Deployment, error) {
	problems := validation.IsDNS1123Subdomain(deployment.Name)
	template := deployment.Spec.Template
	for _, set := range []map[string]string{deployment.Labels, template.Labels} {
		for key, value := range set {
			problems = append(problems, validation.IsQualifiedName(key)...)
			problems = append(problems, validation.IsValidLabelValue(value)...)
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(template.Labels)) {
		problems = append(problems, "the selector does not select the Pods")
	}
	names := map[string]bool{}
	for _, container := range template.Spec.Containers {
		problems = append(problems, validation.IsDNS1123Label(container.Name)...)
		for _, port := range container.Ports {
			problems = append(problems, validation.IsValidPortName(port.Name)...)
		}
		if names[container.Name] {
			problems = append(problems, "two containers have the same name")
		}
		names[container.Name] = true
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%q", problems)
	}
	return deployment.DeepCopy(), nil
}

// reasonPattern is the CRD's pattern for the reason of a condition.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func (rules) status(_ *testing.T, _ *v1alpha1.Foo, status v1alpha1.FooStatus) error {
	for _, condition := range status.Conditions {
		if n := utf8.RuneCountInString(condition.Message); n > 32768 {
			return fmt.Errorf("the message has %d characters", n)
		}
		if len(condition.Reason) > 1024 || !reasonPattern.MatchString(condition.Reason) {
			return fmt.Errorf("invalid reason %q", condition.Reason)
		}
	}
	return nil
}

func (rules) event(_ *testing.T, event *eventsv1.Event) error {
	if len(event.Note) > 1024 || !utf8.ValidString(event.Note) {
		return fmt.Errorf("the note is invalid, or longer than 1024 bytes: %q", event.Note)
	}
	return nil
}
