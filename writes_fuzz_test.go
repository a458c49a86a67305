package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// FuzzWhatIsWritten takes any Foo that the CRD accepts, and a Deployment that others have changed.
// All that the controller writes for them must be valid. With -fuzz-kubeconfig, a real API server
// decides what is accepted and what is valid.
func FuzzWhatIsWritten(f *testing.F) {
	addSeeds(f)
	addRandom(f)
	judge := newJudge(f)
	recordFailure := eventsRecorded(f)
	f.Fuzz(func(t *testing.T, name, deploymentName string, tidy bool, replicas int32, counted bool,
		key, value, other, reason, message string, long bool) {
		if tidy { // random text is hardly ever a valid name
			name, deploymentName, other = tidied(name), tidied(deploymentName), tidied(other)
			key, value = tidied(key), tidied(value)
		}
		// Text in an API server is valid UTF-8.
		reason, message = strings.ToValidUTF8(reason, ""), strings.ToValidUTF8(message, "")
		foo := newFoo(name, deploymentName, nil)
		foo.Labels, foo.Annotations = map[string]string{key: value}, map[string]string{key: message}
		if counted {
			foo.Spec.Replicas = &replicas
		}
		if foo = judge.createFoo(t, foo); foo == nil {
			return // refused, so the controller never sees it
		}
		defer judge.deleteFoo(t, foo)
		deployment := judgeDeployments(t, judge, foo, key, value, other)

		if long && message != "" { // an input of this length would slow down the fuzzing
			message = strings.Repeat(message, 1+70000/len(message))
		}
		judgeReadyCondition(t, judge, foo, deployment, reason, message)
		rejected := desiredStatus(foo, nil, notReady(reasonRejected, message))
		judgeStatus(t, judge, foo, rejected)
		if err := judge.event(t, recordFailure(foo, rejected)); err != nil {
			t.Errorf("the Event is refused: %v", err)
		}
	})
}

// addSeeds adds inputs at the limits of what is valid, and inputs that fuzzing found.
func addSeeds(f *testing.F) {
	longest, longReason := strings.Repeat("a", 253), strings.Repeat("R", 1025)
	f.Add("example-foo", "web", true, int32(1), true,
		"team", "a", "sidecar", "FailedCreate", "exceeded quota", false)
	f.Add(longest, longest, false, int32(0), true,
		"team", "", "sidecar", "FailedCreate", "exceeded quota", true)
	f.Add("a.b-c", "1.2", false, int32(0), false, managedByLabel, "Helm", "x", "", "", false)
	f.Add("x", "Web", false, int32(-1), true, fooUIDLabel, "?", "web", "-", "", false)
	f.Add("x", "y", true, int32(1<<31-1), true, "a", "b", "istio-proxy", longReason, "é", true)
	f.Add("x", "y", true, int32(1), true, "a", "b", "sidecar", "No Quota", "delete: \x7f", false)
}

// addRandom adds as many random inputs as -fuzz-random says. Each is made from its number, so it is
// the same in every run.
func addRandom(f *testing.F) {
	f.Helper()
	for i := range *fuzzRandom {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		text := func() string {
			runes := make([]rune, random.IntN(20)*random.IntN(20))
			for i := range runes { // many are ASCII, the others have two or three bytes
				runes[i] = rune(random.IntN(1 << (5 + random.IntN(9))))
			}
			return string(runes)
		}
		f.Add(text(), text(), random.IntN(4) > 0, random.Int32N(10)-1, random.IntN(2) > 0,
			text(), text(), text(), text(), text(), random.IntN(2) > 0)
	}
}

// judgeDeployments checks that the Deployment of foo is valid when it is created and when it is
// repaired. It returns the created one.
func judgeDeployments(
	t *testing.T, judge judge, foo *v1alpha1.Foo, key, value, other string,
) *appsv1.Deployment {
	t.Helper()
	created, err := judge.deployment(t, newDeployment(foo))
	if err != nil {
		t.Fatalf("a new Deployment is refused: %v", err)
	}
	mangled := created.DeepCopy()
	mangle(mangled, key, value, other)
	mangled, err = judge.deployment(t, mangled)
	if err != nil {
		return created // refused, so the controller never meets such a Deployment
	}
	setOwnedFields(mangled, foo)
	repaired, err := judge.deployment(t, mangled)
	if err != nil {
		t.Fatalf("a repaired Deployment is refused: %v", err)
	}
	again := repaired.DeepCopy()
	setOwnedFields(again, foo)
	if !equality.Semantic.DeepEqual(again, repaired) {
		t.Errorf("a second repair changes the Deployment:\ngot  %v\nwant %v", again, repaired)
	}
	return created
}

// judgeReadyCondition checks that the status of foo is valid for any status of the Deployment: the
// API server accepts any reason and message in the conditions of a Deployment.
func judgeReadyCondition(t *testing.T, judge judge, foo *v1alpha1.Foo,
	deployment *appsv1.Deployment, reason, message string) {
	t.Helper()
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Reason: reason, Message: message,
	}}
	judgeStatus(t, judge, foo, desiredStatus(foo, deployment, readyCondition(deployment)))
}

// judgeStatus checks that status is valid, and that `kubectl get -o yaml` can print it.
func judgeStatus(t *testing.T, judge judge, foo *v1alpha1.Foo, status v1alpha1.FooStatus) {
	t.Helper()
	if err := judge.status(t, foo, status); err != nil {
		t.Errorf("the status is refused: %v", err)
	}
	if _, err := yaml.Marshal(status); err != nil {
		t.Errorf("the status cannot be printed: %v", err)
	}
}

// eventsRecorded returns a function that calls Controller.recordFailure and returns the Event.
func eventsRecorded(f *testing.F) func(*v1alpha1.Foo, v1alpha1.FooStatus) *eventsv1.Event {
	f.Helper()
	kube := fakes.New().Kube
	written := make(chan *eventsv1.Event)
	kube.PrependReactor("create", "events", func(action clienttesting.Action) (
		bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		written <- event
		return true, event, nil
	})
	recorder, err := newRecorder(context.Background(), kube)
	if err != nil {
		f.Fatal(err)
	}
	c := &Controller{recorder: recorder}
	return func(foo *v1alpha1.Foo, status v1alpha1.FooStatus) *eventsv1.Event {
		defer kube.ClearActions()
		c.recordFailure(foo, status)
		return <-written
	}
}

// tidied returns text with the characters replaced that a name cannot have.
func tidied(text string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-."
	return strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(allowed, r) {
			return r
		}
		return rune(allowed[int(r)%len(allowed)])
	}, text), "-.")
}

// mangle changes deployment in ways that setOwnedFields must handle.
func mangle(deployment *appsv1.Deployment, key, value, other string) {
	deployment.Labels = map[string]string{key: value}
	deployment.Spec.Replicas, deployment.Spec.Paused = new(int32(7)), true
	template := &deployment.Spec.Template
	template.Labels[key] = value
	own := &template.Spec.Containers[0]
	own.Image, own.SecurityContext, own.Resources = "other:1", nil, corev1.ResourceRequirements{}
	own.Ports = []corev1.ContainerPort{{Name: "other", ContainerPort: 80}}
	sidecar := *own.DeepCopy()
	sidecar.Name = other
	template.Spec.Containers = append([]corev1.Container{sidecar}, template.Spec.Containers...)
}

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

// apiServer is the judge that knows all the rules: a real API server.
type apiServer struct {
	kube      kubernetes.Interface
	foo       clientset.Interface
	namespace string
}

// connectJudge connects to the API server of kubeconfig and creates a namespace. Each fuzzing
// process has its own namespace, so that all can use the same names.
func connectJudge(f *testing.F, kubeconfig string) apiServer {
	f.Helper()
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	config, err := clientconfig.Load(kubeconfig)
	if err != nil {
		f.Fatal(err)
	}
	clients, err := newClients(config, &options{qps: -1}) // no client-side limit
	if err != nil {
		f.Fatal(err)
	}
	s := apiServer{kube: clients.kube, foo: clients.foo}
	created, err := s.kube.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fuzz-"}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	s.namespace = created.Name
	return s
}

// createFoo really creates foo, because only a stored Foo can get a status.
func (s apiServer) createFoo(t *testing.T, foo *v1alpha1.Foo) *v1alpha1.Foo {
	t.Helper()
	foo.Namespace, foo.UID = s.namespace, ""
	created, err := s.foo.SamplecontrollerV1alpha1().Foos(s.namespace).Create(
		context.Background(), foo, metav1.CreateOptions{})
	if refuses(t, err) {
		return nil
	}
	return created
}

func (s apiServer) deleteFoo(t *testing.T, foo *v1alpha1.Foo) {
	t.Helper()
	err := s.foo.SamplecontrollerV1alpha1().Foos(foo.Namespace).Delete(
		context.Background(), foo.Name, metav1.DeleteOptions{})
	if err != nil {
		t.Error(err)
	}
}

// deployment only makes a dry run, because a Foo may ask for two billion Pods.
func (s apiServer) deployment(
	t *testing.T, deployment *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	t.Helper()
	deployment.ResourceVersion = "" // an earlier dry run may have set it
	created, err := s.kube.AppsV1().Deployments(s.namespace).Create(context.Background(), deployment,
		metav1.CreateOptions{FieldManager: controllerName, DryRun: []string{metav1.DryRunAll}})
	if refuses(t, err) {
		return nil, err
	}
	return created, nil
}

func (s apiServer) status(t *testing.T, foo *v1alpha1.Foo, status v1alpha1.FooStatus) error {
	t.Helper()
	updated := foo.DeepCopy()
	updated.Status = status
	_, err := s.foo.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(
		context.Background(), updated,
		metav1.UpdateOptions{FieldManager: controllerName, DryRun: []string{metav1.DryRunAll}})
	refuses(t, err)
	return err
}

func (s apiServer) event(t *testing.T, event *eventsv1.Event) error {
	t.Helper()
	_, err := s.kube.EventsV1().Events(event.Namespace).Create(
		context.Background(), event, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	refuses(t, err)
	return err
}

// refuses reports whether err says that an object is invalid. It ends t on any other error.
func refuses(t *testing.T, err error) bool {
	t.Helper()
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	return false
}
