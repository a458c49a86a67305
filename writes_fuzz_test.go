package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
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
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/process"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var (
	fuzzKubeconfig = flag.String("fuzz-kubeconfig", "",
		"kubeconfig `file` of an API server with the CRD, which then decides what is valid")
	fuzzRandom = flag.Int("fuzz-random", 0, "number of random seed inputs of FuzzWhatIsWritten")
)

// FuzzWhatIsWritten takes any Foo that an API server accepts, and a Deployment that others have
// changed. The API server must accept all that the controller writes for them, and a repair must
// change only what the controller owns. The API server is one in memory, or that of
// -fuzz-kubeconfig.
func FuzzWhatIsWritten(f *testing.F) {
	addSeeds(f)
	addRandom(f)
	newJudge := judges(f)
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
		judge := newJudge(t)
		if foo = judge.createFoo(t, foo); foo == nil {
			return // refused, so the controller never sees it
		}
		deployment := judge.deployments(t, foo, key, value, other)

		if long && message != "" { // an input of this length would slow down the fuzzing
			message = strings.Repeat(message, 1+70000/len(message))
		}
		// The API server accepts any reason and message in the conditions of a Deployment.
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
			Reason: reason, Message: message,
		}}
		judge.status(t, foo, desiredStatus(foo, deployment, readyCondition(deployment)))
		rejected := desiredStatus(foo, nil, notReady(reasonRejected, message))
		judge.status(t, foo, rejected)
		judge.event(t, recordFailure(foo, rejected))
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

// judge asks an API server what it accepts.
type judge struct {
	*clients
	namespace string
}

// judges returns a function that returns the judge for an input.
func judges(f *testing.F) func(testing.TB) judge {
	if *fuzzKubeconfig != "" {
		rest.SetDefaultWarningHandler(rest.NoWarnings{})
		always := connect(f, must.Get(clientconfig.Load(*fuzzKubeconfig))(f))
		return func(testing.TB) judge { return always }
	}
	crds := must.Get(apiserver.ReadCRDs("artifacts/examples/crd.yaml"))(f)
	return func(t testing.TB) judge {
		return connect(t, apiserver.New(crds...).Config(nil))
	}
}

// connect connects to an API server and creates a namespace, so that all fuzzing processes can use
// the same names.
func connect(t testing.TB, config *rest.Config) judge {
	o := &options{Options: process.Options{QPS: -1}} // no client-side limit
	o.Leader.Namespace = "default"
	clients := must.Get(newClients(config, o))(t)
	namespaces := clients.Kube.CoreV1().Namespaces()
	created := must.Get(namespaces.Create(context.Background(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "fuzz-"},
	}, metav1.CreateOptions{}))(t)
	return judge{clients, created.Name}
}

var dryRun = []string{metav1.DryRunAll}

// createFoo returns foo as it is stored, or nil if it is refused. It really creates foo, because
// only a stored Foo can get a status.
func (j judge) createFoo(t *testing.T, foo *v1alpha1.Foo) *v1alpha1.Foo {
	foo.Namespace, foo.UID = j.namespace, ""
	foos := j.foo.SamplecontrollerV1alpha1().Foos(j.namespace)
	created, err := foos.Create(context.Background(), foo, metav1.CreateOptions{})
	if refuses(t, err) {
		return nil
	}
	t.Cleanup(func() { _ = foos.Delete(context.Background(), foo.Name, metav1.DeleteOptions{}) })
	return created
}

// deployments checks the Deployment of foo when it is created and when it is repaired. It returns
// the created one.
func (j judge) deployments(
	t *testing.T, foo *v1alpha1.Foo, key, value, other string,
) *appsv1.Deployment {
	created, err := j.deployment(t, newDeployment(foo))
	if err != nil {
		t.Fatalf("a new Deployment is refused: %v", err)
	}
	mangled := created.DeepCopy()
	mangle(mangled, key, value, other)
	if mangled, err = j.deployment(t, mangled); err != nil {
		return created // refused, so the controller never meets such a Deployment
	}
	desired := mangled.DeepCopy()
	setOwnedFields(desired, foo)
	repaired, err := j.deployment(t, desired)
	if err != nil {
		t.Fatalf("a repaired Deployment is refused: %v", err)
	}
	again := repaired.DeepCopy()
	setOwnedFields(again, foo)
	if !equality.Semantic.DeepEqual(again, repaired) {
		t.Errorf("a second repair changes the Deployment:\ngot  %v\nwant %v", again, repaired)
	}
	got, want := repaired.Spec.Template.Spec.Containers, created.Spec.Template.Spec.Containers[0]
	if !equality.Semantic.DeepEqual(got[1], want) {
		t.Errorf("the container is not repaired:\ngot  %v\nwant %v", got[1], want)
	}
	if sidecar := mangled.Spec.Template.Spec.Containers[0]; !repaired.Spec.Paused ||
		repaired.Annotations[key] != value || !equality.Semantic.DeepEqual(got[0], sidecar) {
		t.Errorf("a repair changes what others wrote:\ngot  %v\nwant %v", repaired, mangled)
	}
	return created
}

// mangle changes deployment in ways that setOwnedFields must handle.
func mangle(deployment *appsv1.Deployment, key, value, other string) {
	deployment.Labels = map[string]string{key: value}
	deployment.Annotations = map[string]string{key: value}
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

// deployment returns a Deployment as it would be stored, or why it is refused. It is only a dry
// run, because a Foo may ask for two billion Pods.
func (j judge) deployment(t *testing.T, d *appsv1.Deployment) (*appsv1.Deployment, error) {
	if problems := problemsOf(d); len(problems) > 0 {
		return nil, fmt.Errorf("%q", problems)
	}
	d.ResourceVersion = "" // an earlier dry run may have set it
	created, err := j.Kube.AppsV1().Deployments(j.namespace).Create(context.Background(), d,
		metav1.CreateOptions{FieldManager: controllerName, DryRun: dryRun})
	refuses(t, err)
	return created, err
}

// status checks that the API server accepts a status, and that `kubectl get -o yaml` can print it.
func (j judge) status(t *testing.T, foo *v1alpha1.Foo, status v1alpha1.FooStatus) {
	updated := foo.DeepCopy()
	updated.Status = status
	_, err := j.foo.SamplecontrollerV1alpha1().Foos(j.namespace).UpdateStatus(context.Background(),
		updated, metav1.UpdateOptions{FieldManager: controllerName, DryRun: dryRun})
	if refuses(t, err) {
		t.Errorf("the status is refused: %v", err)
	}
	if _, err := yaml.Marshal(status); err != nil {
		t.Errorf("the status cannot be printed: %v", err)
	}
}

// event checks that the API server accepts an Event. The one in memory does not know the rules.
func (j judge) event(t *testing.T, event *eventsv1.Event) {
	_, err := j.Kube.EventsV1().Events(j.namespace).Create(
		context.Background(), event, metav1.CreateOptions{DryRun: dryRun})
	if refuses(t, err) || len(event.Note) > 1024 || !utf8.ValidString(event.Note) {
		t.Errorf("the Event is refused: %v; its note is %q", err, event.Note)
	}
}

// eventsRecorded returns a function that calls Controller.recordFailure and returns the Event.
func eventsRecorded(f *testing.F) func(*v1alpha1.Foo, v1alpha1.FooStatus) *eventsv1.Event {
	kube := kubefake.NewClientset()
	written := make(chan *eventsv1.Event)
	kube.PrependReactor("create", "events", func(action clienttesting.Action) (
		bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		written <- event
		return true, event, nil
	})
	c := &Controller{recorder: must.Get(newRecorder(context.Background(), kube))(f)}
	return func(foo *v1alpha1.Foo, status v1alpha1.FooStatus) *eventsv1.Event {
		defer kube.ClearActions()
		c.recordFailure(foo, status)
		return <-written
	}
}

// refuses reports whether err says that an object is invalid. It ends t on any other error.
func refuses(t *testing.T, err error) bool {
	t.Helper()
	refused := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
	if err != nil && !refused {
		t.Fatal(err)
	}
	return refused
}

// problemsOf checks some rules for Deployments, which no fake knows.
func problemsOf(deployment *appsv1.Deployment) (problems []string) {
	template := deployment.Spec.Template
	for key, value := range template.Labels {
		problems = append(problems, validation.IsQualifiedName(key)...)
		problems = append(problems, validation.IsValidLabelValue(value)...)
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
	return problems
}
