package conformance

import (
	"flag"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

var manyFoos = flag.Int("many-foos", 200, "number of Foos that somebody creates to do harm")

func (n *namespace) fooEditor() fooclient.FooInterface {
	n.T.Helper()
	n.Kubectl("create", "rolebinding", "editor", "--clusterrole=foo-editor", "--user=foo-editor")
	n.mayCreate("foo-editor", "foos")
	return clientset.NewForConfigOrDie(suite.As("foo-editor")).SamplecontrollerV1alpha1().Foos(n.Name)
}

// deploymentEditor returns a client of somebody who may edit the Deployments of n, and nothing
// else.
func (n *namespace) deploymentEditor() appsclient.DeploymentInterface {
	n.T.Helper()
	n.Kubectl("create", "role", "editor", "--resource=deployments.apps",
		"--verb=get,list,create,update,patch,delete")
	n.Kubectl("create", "rolebinding", "editor", "--role=editor", "--user=deployment-editor")
	n.mayCreate("deployment-editor", "deployments")
	return kubernetes.NewForConfigOrDie(suite.As("deployment-editor")).AppsV1().Deployments(n.Name)
}

// mayCreate waits until the API server knows of the permission that user was given.
func (n *namespace) mayCreate(user, resource string) {
	n.T.Helper()
	suite.Eventually(n.T, user+" may create "+resource, func() (bool, string) {
		answer, err := n.TryKubectl("", "auth", "can-i", "create", resource, "--as="+user)
		return err == nil, answer
	})
}

// create creates an object with a client of somebody.
func create[T metav1.Object](t *testing.T, client suite.Client[T], object T) T {
	t.Helper()
	return must.Get(client.Create(t.Context(), object, metav1.CreateOptions{}))(t)
}

// createBank creates a Deployment that belongs to no Foo, and waits until it is rolled out.
func (n *namespace) createBank() *appsv1.Deployment {
	n.T.Helper()
	n.Kubectl("create", "deployment", "bank", "--image=example.com/bank")
	n.Kubectl("rollout", "status", "deployment/bank", "--timeout="+suite.Patience.String())
	return n.deployments.Get("bank")
}

// Somebody edits Foos, or Deployments, and may do nothing else. The controller, with the
// permissions that it is shipped with, does nothing for them that they could not do.
func TestEditorsAndTheDeployedController(t *testing.T) {
	program := suite.StartDeployed(t, suite.Deploy(t, deployDir, nil), "0")
	for name, prove := range map[string]func(*testing.T, *namespace){
		"a Foo passes nothing on":              passesNothingOn,
		"Foos stay within quotas":              staysWithinQuotas,
		"a Deployment gets no privileged Pods": getsNoPrivilegedPods,
	} {
		t.Run(name, func(t *testing.T) { prove(t, newNamespace(t)) })
	}
	t.Run("a Deployment names owners", func(t *testing.T) { namesOwners(t, program) })
}

// Somebody creates very many Foos, none of which can get what it names. The Foos of a neighbour get
// their Deployments before most of them are tried. With -v and a larger -many-foos, this measures
// what docs/security.md says.
func TestManyFoosHoldUpNobody(t *testing.T) {
	n, neighbour := newNamespace(t), newNamespace(t)
	if n.Name > neighbour.Name {
		n, neighbour = neighbour, n // by name, the neighbour's would come last
	}
	n.createBank()
	program := suite.StartProgram(t, "", nil)
	served := func(name string) {
		begin := time.Now()
		neighbour.foos.Create(newFoo(name, name, 1))
		neighbour.deployments.When(name, "exists", exists)
		t.Logf("%s: a neighbour's Deployment after %.2fs", name, time.Since(begin).Seconds())
	}
	served("start")
	var burst sync.WaitGroup
	burst.Go(func() { n.createFoos(*manyFoos, func(string) string { return "bank" }) })
	n.foos.When(fmt.Sprintf("web-%d", *manyFoos/2), "exists", func(*v1alpha1.Foo) bool { return true })
	served("burst")
	burst.Wait()
	served("end-of-burst")
	n.foos.When(fmt.Sprintf("web-%d", *manyFoos-1), "is refused", notReadyBecause(nameTaken))
	served("all-refused")
	must.Do(t, program.Stop())

	begin := suite.Now(t)
	neighbour.foos.Create(newFoo("restart", "restart", 1))
	restarted := suite.StartProgram(t, "", nil)
	neighbour.deployments.When("restart", "exists", exists)
	var created []audit.Request
	var before int
	suite.Eventually(t, "the request for it is in the audit log", func() (bool, string) {
		created = restarted.Requests(t, begin, func(r audit.Request) bool {
			return r.What() == "create deployments"
		})
		before = slices.IndexFunc(created, neighbour.Has)
		return before >= 0, fmt.Sprintf("%d requests for others", len(created))
	})
	t.Logf("restart: a neighbour's Deployment at %s, after %d others; the caches were filled when "+
		"the controller said %s", created[before].StageTimestamp.Local().Format("15:04:05.000"), before,
		regexp.MustCompile(`.*"Starting the workers"`).FindString(restarted.Output()))
	if before > *manyFoos/2 {
		t.Errorf("%d of %d came before the neighbour", before, *manyFoos)
	}
}

// passesNothingOn lets an editor write all that the API server accepts beside the spec of a Foo.
func passesNothingOn(t *testing.T, n *namespace) {
	editor, bank := n.fooEditor(), n.createBank()
	odd := newFoo("odd", "web", 1)
	odd.Labels = map[string]string{managedBy: deployedName, "app": "bank"}
	odd.Annotations = map[string]string{
		"example.com/odd": "\x01\u202e\U0001F4A5" + strings.Repeat("a", 200<<10),
	}
	odd.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "bank", UID: bank.UID},
	}
	odd.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}

	created := create(t, editor, odd)
	if len(created.Status.Conditions) > 0 {
		t.Errorf("the API server accepted a status from an editor: %+v", created.Status)
	}
	_, err := editor.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("an editor writes a status: got error %v, want it forbidden", err)
	}

	n.foos.When("odd", "is Ready", isReady)
	repaired := n.deployments.Get("web")
	delete(repaired.Annotations, "deployment.kubernetes.io/revision") // of the Deployment controller
	own := map[string]string{managedBy: deployedName}
	if !reflect.DeepEqual(repaired.Labels, own) || len(repaired.Annotations) > 0 ||
		len(repaired.OwnerReferences) != 1 || len(repaired.Spec.Template.Labels) != 1 {
		t.Errorf("the Deployment has more than the controller's own: %s", suite.Describe(repaired))
	}
}

// staysWithinQuotas renames a Foo before its Deployments are available, so that all of them stay.
func staysWithinQuotas(t *testing.T, n *namespace) {
	n.createQuotas("count/foos.samplecontroller.k8s.io=2,count/deployments.apps=3,pods=0")
	editor := n.fooEditor()
	create(t, editor, newFoo("web", "web-1", 1))
	create(t, editor, newFoo("other", "other", 0))
	n.deployments.When("other", "exists", exists)

	_, err := editor.Create(t.Context(), newFoo("more", "more", 0), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("a third Foo: got error %v, want the quota exceeded", err)
	}
	for _, name := range []string{"web-1", "web-2"} {
		n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = name })
		n.deployments.When(name, "exists", exists)
	}
	n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "web-3" })
	foo := n.foos.When("web", "is rejected", notReadyBecause("DeploymentRejected"))
	if message := readyCondition(foo).Message; !strings.Contains(message, "exceeded quota") {
		t.Errorf("a fourth Deployment: got %q, want the quota exceeded", message)
	}
}

// getsNoPrivilegedPods lets an editor change the container of a Foo, and add another one.
func getsNoPrivilegedPods(t *testing.T, n *namespace) {
	n.Kubectl("label", "namespace", n.Name, "pod-security.kubernetes.io/enforce=restricted")
	n.createReadyFoo(newFoo("web", "web", 2))
	before := n.deployments.Get("web").Spec.Template.Spec.Containers[0]
	editor := suite.NewObjects(t, "Deployment", n.deploymentEditor())
	privileged := &corev1.SecurityContext{Privileged: new(true)}
	sidecar := corev1.Container{Name: "sidecar", Image: "example.com/s", SecurityContext: privileged}

	editor.Change("web", func(deployment *appsv1.Deployment) {
		pod := &deployment.Spec.Template.Spec
		pod.Containers[0].Image = "example.com/other"
		pod.Containers[0].SecurityContext = privileged
		pod.Containers = append(pod.Containers, sidecar)
	})

	repaired := n.deployments.When("web", "is repaired", func(deployment *appsv1.Deployment) bool {
		container := deployment.Spec.Template.Spec.Containers[0]
		return container.Image == before.Image &&
			reflect.DeepEqual(container.SecurityContext, before.SecurityContext)
	})
	if got := len(repaired.Spec.Template.Spec.Containers); got != 2 {
		t.Errorf("got %d containers, want 2: what others add stays", got)
	}
	foo := n.foos.When("web", "is not Ready: FailedCreate", notReadyBecause("FailedCreate"))
	if message := readyCondition(foo).Message; !strings.Contains(message, "violates PodSecurity") {
		t.Errorf("got the message %q, want that of Pod Security", message)
	}
	n.onlyImage(before.Image)
	editor.Change("web", func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Spec.Containers = deployment.Spec.Template.Spec.Containers[:1]
	})
	n.foos.When("web", "is Ready again", isReady)
	n.onlyImage(before.Image)
}

func (n *namespace) onlyImage(image string) {
	n.T.Helper()
	pods := must.Get(suite.Kube.CoreV1().Pods(n.Name).List(n.T.Context(), metav1.ListOptions{}))(n.T)
	for _, pod := range pods.Items {
		if len(pod.Spec.Containers) != 1 || pod.Spec.Containers[0].Image != image {
			n.T.Errorf("Pod %s has the containers %+v", pod.Name, pod.Spec.Containers)
		}
	}
}
