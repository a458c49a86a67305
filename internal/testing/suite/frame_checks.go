package suite

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// Apply applies a manifest, with these flags.
func (n *Namespace) Apply(manifest string, flags ...string) {
	n.T.Helper()
	Kubectl(n.T, manifest, append([]string{"apply", "--namespace", n.Name, "-f", "-"}, flags...)...)
}

// OnlyWarning waits for a Warning Event about the custom resource of that name. It fails t, which
// may be a part of the test, if there are several.
func (n *Namespace) OnlyWarning(t *testing.T, name string) {
	t.Helper()
	var notes []string
	Eventually(t, config.Kind+" "+name+" has a Warning event", func() (bool, string) {
		notes = nil
		events := must.Get(Kube.EventsV1().Events(n.Name).List(t.Context(), metav1.ListOptions{}))(t)
		for _, event := range events.Items {
			about := event.Regarding
			if event.Type == corev1.EventTypeWarning && about.Kind == config.Kind && about.Name == name {
				notes = append(notes, event.Note)
			}
		}
		return len(notes) > 0, "no Warning event"
	})
	if len(notes) != 1 {
		t.Errorf("%s %s has %d Warning events, want 1: %q", config.Kind, name, len(notes), notes)
	}
}

// FewRequests fails the test if the shared controller has made more requests in the namespace. most
// should be more than any correct reaction takes, and fewer than a loop makes.
func (n *Namespace) FewRequests(after audit.Mark, most int) {
	n.T.Helper()
	if requests := n.Requests(after); len(requests) > most {
		n.T.Errorf("the controller made %d requests, want at most %d; does it repeat them without "+
			"a delay? %v", len(requests), most, requests)
	}
}

// PodsMeetTheRestrictedStandard fails t unless the API server admits the Pods of the controller
// that is installed from dir, and holds them to the restricted Pod Security Standard.
func PodsMeetTheRestrictedStandard(t *testing.T, dir string) {
	deployment := Deploy(t, dir, nil)
	namespace := must.Get(Kube.CoreV1().Namespaces().Get(
		t.Context(), deployment.Namespace, metav1.GetOptions{}))(t)
	if level := namespace.Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Fatalf("the namespace enforces the Pod Security Standard %q, want restricted", level)
	}
	Eventually(t, "all replicas are available", func() (bool, string) {
		deployment := must.Get(Kube.AppsV1().Deployments(deployment.Namespace).Get(
			t.Context(), deployment.Name, metav1.GetOptions{}))(t)
		return *deployment.Spec.Replicas == 2 && deployment.Status.AvailableReplicas == 2,
			fmt.Sprintf("%+v", deployment.Status)
	})

	// Their admission proves something only if other Pods are refused.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	}
	pods := Kube.CoreV1().Pods(deployment.Namespace)
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := pods.Create(t.Context(), pod, options); err != nil {
		t.Errorf("creating a Pod of the Deployment: %v", err)
	}
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	_, err := pods.Create(t.Context(), pod, options)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "runAsNonRoot") {
		t.Errorf("a Pod that may run as root: got error %v, want it forbidden", err)
	}
}

// Untouched returns what changes in an object if anybody writes to it, except to its status.
func Untouched(object metav1.Object) string {
	var writers []string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" {
			writers = append(writers, fmt.Sprint(entry.Manager, entry.Time))
		}
	}
	return fmt.Sprint(object.GetUID(), object.GetGeneration(), object.GetOwnerReferences(),
		object.GetLabels(), object.GetAnnotations(), writers)
}

// RemovedKeepsNoPermission fails t if something is left of a controller that was installed from dir
// and removed.
func RemovedKeepsNoPermission(t *testing.T, dir string) {
	deployment := Deploy(t, dir, nil)
	if len(GrantedTo(t, deployment)) == 0 {
		t.Errorf("%s is installed, but there is no permission", dir)
	}
	remove(t, Kubectl(t, "", "kustomize", dir))
	if left := GrantedTo(t, deployment); len(left) > 0 {
		t.Errorf("%s is removed, but the controller still may %v", dir, left)
	}
	left := Kubectl(t, "", "get", "--all-namespaces", "--selector="+deployed(), "--output=name",
		"namespaces,roles,rolebindings,clusterroles,clusterrolebindings,flowschemas")
	if left != "" {
		t.Errorf("%s is removed, but these are left: %s", dir, left)
	}
}

// As returns how clients find the cluster as that user.
func As(user string) *rest.Config {
	as := rest.CopyConfig(Cluster)
	as.Impersonate.UserName = user
	return as
}

// Await waits until an object has a condition, with kubectl wait. Without the first --for, kubectl
// fails if there are no conditions yet.
func Await(t *testing.T, object, condition string, flags ...string) {
	t.Helper()
	Kubectl(t, "", append([]string{"wait", object, "--for=jsonpath={.status.conditions[0]}",
		"--for=" + condition, "--timeout=" + (2 * Patience).String()}, flags...)...)
}

// LeaseHasPriority fails t unless requests of the controller in that namespace for its Lease, and no
// others, have the priority of leader election. If kustomize adds a prefix, names is like "team-%s".
func LeaseHasPriority(t *testing.T, namespace, names string) {
	t.Helper()
	schemaName := fmt.Sprintf(names, config.Name+"-leader-election")
	Await(t, "flowschema/"+schemaName, "condition=Dangling=False")
	flowcontrol := Kube.FlowcontrolV1()
	schema := must.Get(flowcontrol.FlowSchemas().Get(t.Context(), schemaName, metav1.GetOptions{}))(t)
	level := must.Get(flowcontrol.PriorityLevelConfigurations().Get(
		t.Context(), "leader-election", metav1.GetOptions{}))(t)
	as := As("system:serviceaccount:" + namespace + ":" + fmt.Sprintf(names, config.Name))
	client := must.Get(rest.HTTPClientFor(as))(t)
	for path, want := range map[string]bool{
		"coordination.k8s.io/v1/namespaces/" + namespace + "/leases/" + config.Name: true,
		"apps/v1/namespaces/" + namespace + "/deployments/" + config.Name:           false,
	} {
		response := must.Get(client.Get(as.Host + "/apis/" + path))(t)
		must.Do(t, response.Body.Close())
		got := response.Header
		bySchema := got.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) == string(schema.UID)
		atLevel := got.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID) ==
			string(level.UID)
		if bySchema != want || atLevel != want {
			t.Errorf("%s: matched by the FlowSchema: %v, at level leader-election: %v; want %v",
				path, bySchema, atLevel, want)
		}
	}
}
