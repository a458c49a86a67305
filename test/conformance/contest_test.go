package conformance

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// contest is how long somebody sets back what the controller repairs. docs/behaviour.md promises
// something for ten minutes.
var contest = flag.Duration("contest", 15*time.Second, "how long somebody sets back each repair")

const (
	image = "/spec/template/spec/containers/0/image"
	// The first container's image comes from a mirror, unless it does already.
	mirrored = `object.spec.template.spec.containers[0].image.startsWith("mirror/") ? [] :
  [JSONPatch{op: "replace", path: "` + image + `", value: "mirror/" +
    object.spec.template.spec.containers[0].image}]`
)

// admission makes admission change each Deployment of n by that expression in CEL, as a mutating
// policy does, and waits until it does.
func (n *namespace) admission(expression string) {
	n.T.Helper()
	policies := admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")
	if !must.Get(discovery.IsResourceEnabled(suite.Kube.Discovery(), policies))(n.T) {
		n.T.Skip("this API server has no MutatingAdmissionPolicies: they are since Kubernetes 1.36")
	}
	expression = strings.Join(strings.Fields(expression), " ")
	suite.Kubectl(n.T, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  matchConditions:
  - {name: not-to-catch-up, expression: '!object.metadata.name.startsWith("catch-up")'}
  mutations:
  - {patchType: JSONPatch, jsonPatch: {expression: %[2]q}}
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{annotations: {"admitted": "true"}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}`, n.Name, expression), "create", "-f", "-")
	n.T.Cleanup(n.dropPolicy)
	n.awaitPolicy(true)
}

// withoutAdmission takes the policy away, and waits until it is not in force any more.
func (n *namespace) withoutAdmission() {
	n.T.Helper()
	n.dropPolicy()
	n.awaitPolicy(false)
}

func (n *namespace) dropPolicy() {
	suite.Kubectl(n.T, "", "delete", "--ignore-not-found",
		"mutatingadmissionpolicybinding/"+n.Name, "mutatingadmissionpolicy/"+n.Name)
}

func (n *namespace) awaitPolicy(want bool) {
	n.T.Helper()
	const probe = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: probe}, spec: {
  selector: {matchLabels: {app: probe}}, template: {metadata: {labels: {app: probe}}, spec: {
    containers: [{name: probe, image: probe, resources: {requests: {cpu: 1}}}]}}}}`
	suite.Eventually(n.T, "the policy is in force: "+fmt.Sprint(want), func() (bool, string) {
		admitted, err := n.TryKubectl(probe, "create", "--dry-run=server", "--filename=-",
			"--output=jsonpath={.metadata.annotations.admitted}")
		return err == nil && (admitted == "true") == want, admitted
	})
}

// count returns how many requests such as "patch deployments" the controller sent in n since begin.
func (n *namespace) count(begin audit.Mark, what string) (count int) {
	n.T.Helper()
	for _, request := range n.Requests(begin) {
		if request.What() == what {
			count++
		}
	}
	return count
}

// isOverridden returns a check for the condition Overridden with that reason and text, about the
// newest spec.
func isOverridden(reason, text string) func(*v1alpha1.Foo) bool {
	return func(foo *v1alpha1.Foo) bool {
		overridden := meta.FindStatusCondition(foo.Status.Conditions, "Overridden")
		return overridden != nil && overridden.Reason == reason &&
			overridden.Status == metav1.ConditionTrue && strings.Contains(overridden.Message, text) &&
			overridden.ObservedGeneration == foo.Generation
	}
}

// isReadyAsAsked reports whether the Foo is Ready, and everything is as the controller sends it.
func isReadyAsAsked(foo *v1alpha1.Foo) bool {
	return isReady(foo) && meta.FindStatusCondition(foo.Status.Conditions, "Overridden") == nil
}

// What admission changes is no reason to fight.
func TestWhatAdmissionChangesIsReportedAndNotRepairedForEver(t *testing.T) {
	n := parallelNamespace(t)
	n.admission(mirrored)
	begin := suite.Now(t)

	n.createReadyFoo(newFoo("web", "web", 1))

	n.foos.When("web", "says what is not kept", isOverridden("DeploymentNotKept",
		`spec.template.spec.containers[name="web"].image`))
	time.Sleep(*contest) // nothing may happen: there is no condition to wait for
	n.CatchUp()
	if got := n.count(begin, "patch deployments"); got > 3 {
		t.Errorf("the controller has patched the Deployment %d times, want 3 at most", got)
	}
	if got := n.events("web"); len(got) != 1 {
		t.Errorf("Events of the Foo: %v, want one, of the creation", got)
	}

	n.Kubectl("set", "image", "deployment/web", "web=evil:1")
	n.deployments.When("web", "is repaired", func(deployment *appsv1.Deployment) bool {
		return strings.HasPrefix(deployment.Spec.Template.Spec.Containers[0].Image, "mirror/nginx")
	})
	n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
	n.deployments.Gone("web")
	n.foos.When("web", "is Ready under its new name", isReady)

	n.withoutAdmission()
	n.Kubectl("scale", "foo/web", "--replicas=2") // a new spec: all is tried again
	n.deployments.When("new", "has the image that the controller sends",
		func(deployment *appsv1.Deployment) bool {
			return strings.HasPrefix(deployment.Spec.Template.Spec.Containers[0].Image, "nginx")
		})
	n.foos.When("web", "says no more that something is not kept", isReadyAsAsked)
}

// What the API server stores in place of what was sent is accepted or reported, but never repaired
// again and again.
func TestWhatTheAPIServerStoresInstead(t *testing.T) {
	t.Parallel() // and so do its parts
	const container = "/spec/template/spec/containers/0"
	for name, test := range map[string]struct {
		expression string // of admission
		overridden string // a field; "" is none
		ready      string // the reason, if the Foo is not Ready
	}{
		"requests that a policy sets": {
			`[JSONPatch{op: "replace", path: "` + container + `/resources/requests/cpu", value: "50m"}]`,
			`spec.template.spec.containers[name="web"].resources.requests.cpu`, ""},
		"a count that a policy sets": {
			`[JSONPatch{op: "replace", path: "/spec/replicas", value: 2}]`,
			"spec.replicas", "DeploymentNotKept"},
		"a label that a policy takes off": {
			`has(object.metadata.labels) && "app.kubernetes.io/managed-by" in object.metadata.labels ?
			[JSONPatch{op: "remove", path: "/metadata/labels/app.kubernetes.io~1managed-by"}] : []`,
			"metadata.labels", "DeploymentNotKept"},
		"a field that the API server adds to a struct of the controller": {
			`has(object.spec.template.spec.containers[0].securityContext) ?
			[JSONPatch{op: "add", path: "` + container + `/securityContext/privileged", value: false}] : []`,
			`spec.template.spec.containers[name="web"].securityContext.privileged`, ""},
		"a field that the API server does not know": {
			`object.spec.template.spec.containers[0].?securityContext.?seccompProfile.hasValue() ?
			[JSONPatch{op: "remove", path: "` + container + `/securityContext/seccompProfile"}] : []`,
			`spec.template.spec.containers[name="web"].securityContext.seccompProfile`, ""},
		"an image that a policy refuses for a time": {
			`object.spec.template.spec.containers[0].image.startsWith("nginx") ?
			[JSONPatch{op: "remove", path: "/metadata/absent"}] : []`, // an error: the policy denies it
			"", "DeploymentRejected"},
		"another form of a quantity": {
			`[JSONPatch{op: "replace", path: "` + container + `/resources/requests/cpu", value: "0.010"}]`,
			"", ""},
		"an empty list, and null": {
			`has(object.spec.template.spec.containers[0].securityContext) ?
			[JSONPatch{op: "add", path: "` + container + `/securityContext/capabilities/add", value: []},
			JSONPatch{op: "add", path: "` + container + `/securityContext/procMount", value: null}] : []`,
			"", ""},
		"fields that the controller does not set": {
			`[JSONPatch{op: "add", path: "/metadata/annotations", value: {"a": "b"}},
			JSONPatch{op: "add", path: "` + container + `/args", value: []},
			JSONPatch{op: "add", path: "` + container + `/env", value: [{"name": "A", "value": ""}]}]`,
			"", ""},
		"a sidecar before the container": {
			`object.spec.template.spec.containers.size() > 1 ? [] :
			[JSONPatch{op: "add", path: "` + container + `", value: {"name": "sidecar", "image": "s"}}]`,
			"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := parallelNamespace(t)
			n.admission(test.expression)
			begin := suite.Now(t)
			n.foos.Create(newFoo("web", "web", 1))
			if test.ready == "" {
				n.foos.When("web", "is Ready", isReady)
			} else {
				n.foos.When("web", "is not Ready: "+test.ready, notReadyBecause(test.ready))
				n.OnlyWarning(t, "web")
			}
			n.CatchUp()
			foo := n.foos.Get("web")
			if test.overridden != "" && !isOverridden("DeploymentNotKept", test.overridden)(foo) {
				t.Errorf("want Overridden to name %s, got %s", test.overridden, suite.Describe(foo))
			}
			if has := meta.FindStatusCondition(foo.Status.Conditions, "Overridden") != nil; has &&
				test.overridden == "" {
				t.Errorf("want no condition Overridden, got %s", suite.Describe(foo))
			}
			if got := n.count(begin, "patch deployments"); got > 3 {
				t.Errorf("the controller has patched the Deployment %d times, want 3 at most", got)
			}
			n.fewRequests(begin)
			if test.ready == "DeploymentRejected" {
				n.withoutAdmission()
				n.foos.When("web", "is Ready when it is not refused any more", isReady)
			}
		})
	}
}

// events returns the reasons of the Events about a Foo.
func (n *namespace) events(foo string) (reasons []string) {
	n.T.Helper()
	list := must.Get(suite.Kube.EventsV1().Events(n.Name).List(n.T.Context(), metav1.ListOptions{
		FieldSelector: "regarding.kind=Foo,regarding.name=" + foo}))(n.T)
	for _, event := range list.Items {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

// Somebody sets back each repair, at once.
func TestRepairThatDoesNotLastIsTriedSlowly(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 1))
	begin := suite.Now(t)
	ctx, end := context.WithTimeout(t.Context(), *contest)
	defer end()

	fought := n.setBack(ctx)
	n.foos.When("web", "says who writes what", isOverridden("DeploymentContested",
		`"another-writer" sets back each repair of spec.replicas`))
	n.foos.When("web", "is not Ready", notReadyBecause("DeploymentContested"))
	<-fought
	// In ten minutes, 23 times: see internal/patch. A machine that is busy repairs less often.
	if got := n.count(begin, "patch deployments"); got > 30 { // without waiting, it would be hundreds
		t.Errorf("in %v, the controller has patched the Deployment %d times", *contest, got)
	}

	n.foos.When("web", "is Ready when the repair has lasted", isReadyAsAsked)
	if got := n.events("web"); strings.Count(strings.Join(got, " "), "DeploymentContested") != 1 {
		t.Errorf("Events of the Foo: %v, want one DeploymentContested", got)
	}
	deployments := n.watchDeployments()
	n.Kubectl("scale", "deployment/web", "--replicas=7")
	var changed time.Time
	deployments.until("the Deployment is repaired", func(_ watch.EventType, d *appsv1.Deployment) bool {
		if *d.Spec.Replicas == 7 {
			changed = time.Now()
		}
		return !changed.IsZero() && *d.Spec.Replicas == 1
	})
	quick := 2 * time.Second
	if *contest < time.Minute {
		quick = 8 * time.Second // other tests keep the machine busy; the next wait would be longer
	}
	if took := time.Since(changed); took > quick {
		t.Errorf("the next repair took %v, want %v at most", took, quick)
	}
}

// setBack gives Deployment web 5 replicas whenever it has another count, until ctx is done.
func (n *namespace) setBack(ctx context.Context) (done chan struct{}) {
	n.T.Helper()
	client := suite.Kube.AppsV1().Deployments(n.Name)
	watcher := must.Get(client.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=web"}))(n.T)
	n.T.Cleanup(watcher.Stop)
	done = make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok || *deployment.Spec.Replicas == 5 {
				continue
			}
			_, err := client.Patch(context.WithoutCancel(ctx), "web", types.MergePatchType,
				[]byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{FieldManager: "another-writer"})
			if err != nil {
				n.T.Errorf("setting back a repair: %v", err)
				return
			}
		}
	}()
	return done
}
