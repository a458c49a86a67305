package owned

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// owner returns a step that creates a DaemonSet that asks for a Deployment.
func owner(name, deployment string) explore.Step {
	return explore.Create(fmt.Sprintf(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: %s},
		spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {
		hostname: %s, containers: [{name: web, image: web}]}}}}`, name, deployment))
}

// foreign returns a step that creates a Deployment that belongs to nobody.
func foreign(labels string) explore.Step {
	return explore.Create("{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, labels: " +
		labels + "}, spec: {replicas: 3}}")
}

func change(patch string) explore.Step { return explore.Patch("deployments.apps/x", patch) }

func rename(deployment string) explore.Step {
	return explore.Patch("daemonsets.apps/a", "spec: {template: {spec: {hostname: "+deployment+"}}}")
}

var (
	create           = owner("a", "x")
	deleteOwner      = explore.Delete("daemonsets.apps/a")
	deleteDeployment = explore.Delete("deployments.apps/x")
	holdOwners       = explore.HoldWatch("daemonsets.apps")
	letGo            = explore.LetWatchesGo
	rollOut          = explore.RollOut
	collect          = explore.CollectGarbage
	refuse           = explore.Refuse("deployments.apps")
	accept           = explore.Accept("deployments.apps")
)

func steps(steps ...explore.Step) []explore.Step { return steps }

var scenarios = []explore.Scenario{
	{Name: "create", Steps: steps(create), Begins: 1},
	{Name: "label", Steps: steps(create, change("metadata: {labels: null}"))},
	{Name: "children", Steps: steps(create, deleteDeployment, explore.Delete("configmaps/a"),
		change("spec: {replicas: 7, paused: true}"), explore.Patch("configmaps/a", "data: null"))},
	{Name: "rename", Steps: steps(create, rollOut, rename("z"), rollOut), Begins: 3},
	{Name: "rename and back", Steps: steps(create, rollOut, rename("z"), rename("x"), rollOut)},
	{Name: "unseen rename",
		Steps: steps(create, rollOut, rename("z"), holdOwners, rename("x"), rollOut, letGo)},
	{Name: "delete", Steps: steps(create, deleteOwner)},
	{Name: "unseen deletion",
		Steps: steps(create, rollOut, holdOwners, deleteOwner, collect, letGo)},
	{Name: "taken", Steps: steps(foreign("{}"), create, deleteDeployment)},
	{Name: "taken and labelled", Steps: steps(foreign("{managed-by: b}"), create, deleteDeployment)},
	{Name: "taken for good", Steps: steps(foreign("{}"), create)},
	{Name: "two owners", EndVaries: true,
		Steps: steps(create, owner("b", "x"), rollOut, deleteOwner, collect, rollOut)},
	{Name: "released", EndVaries: true,
		Steps: steps(create, change("metadata: {ownerReferences: null}"))},
	{Name: "terminating", Steps: steps(create, rollOut, explore.Together("delete, which is held",
		change("metadata: {finalizers: [example.com/held]}"), deleteDeployment),
		change("spec: {replicas: 7}"), change("metadata: {finalizers: null}"))},
	{Name: "refused", Steps: steps(refuse, create, accept)},
	{Name: "mirror", Steps: steps(explore.Mutate("configmaps", "another key",
		func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"deployment": "mirror"} }),
		create, rollOut, rename("z"), rollOut)},
	{Name: "war", Steps: steps(create, rollOut,
		explore.Insist("deployments.apps/x", "spec: {replicas: 7}"), explore.Relent)},
	{Name: "failing", Steps: steps(explore.AnswerWrites(1, "500"), create,
		explore.AnswerWrites(1, "409 Conflict"), rename("z"))},
	{Name: "never seen", Steps: steps(explore.Together("delete what no watch showed",
		explore.LoseWatch("deployments.apps"), create, explore.Pause, deleteDeployment),
		explore.BreakWatch("deployments.apps"))},
	{Name: "namespace", Steps: steps(create, rollOut,
		explore.Delete("namespaces/"+explore.Namespace), deleteDeployment)},
}

func TestExplore(t *testing.T) {
	if testing.Short() {
		t.Skip("all faults together take ten seconds")
	}
	if setting.All() {
		must.Do(t, flag.Set("explore.budget", "600"))
	}
	for _, o := range explore.Test(t, explore.Controller{
		Run: run, Scenarios: scenarios, Always: always, Eventually: eventually,
		Delay: blockedRetryDelay + 5*time.Second,
	}) {
		refused := apierrors.IsInvalid(o.Answer.Err) || apierrors.IsForbidden(o.Answer.Err) ||
			apierrors.IsBadRequest(o.Answer.Err)
		if refused && o.ForGood && o.Request.Kind == "create-deployments" && len(o.Waits) > 0 &&
			!slices.Contains(o.Waits, blockedRetryDelay) {
			t.Errorf("%s: tried again after %v, want %v", o.Answer.Name, o.Waits, blockedRetryDelay)
		}
	}
}

// controllerOf returns the owner that controls an object, or nil.
func controllerOf(object metav1.Object, now explore.State) *appsv1.DaemonSet {
	for _, owner := range explore.List[appsv1.DaemonSet](now, "daemonsets.apps") {
		if metav1.IsControlledBy(object, owner) {
			return owner
		}
	}
	return nil
}

// always returns what speaks against a write, or "".
func always(write explore.Write, now explore.State) string {
	if write.Resource == "daemonsets" {
		for _, c := range explore.As[appsv1.DaemonSet](write.New).Status.Conditions {
			if c.Reason == "" || c.Status == corev1.ConditionTrue &&
				c.Reason != "ConfigMapExists" && c.Reason != "ConfigMapNotKept" {
				return fmt.Sprintf("it reports %q before the last child is there", c.Reason)
			}
			if strings.Contains(c.Message, "being terminated") {
				return "it reports that the namespace goes"
			}
		}
		return ""
	}
	old, desired := explore.As[appsv1.Deployment](write.Old), explore.As[appsv1.Deployment](write.New)
	switch {
	case old == nil && desired.Labels[label] == "":
		return "its informer will not show that"
	case old == nil && controllerOf(desired, now) == nil:
		return "the owner is gone"
	case write.Resource != "deployments" || old == nil:
		return ""
	}
	owner := controllerOf(old, now)
	switch {
	case owner == nil:
		return "it belongs to nobody"
	case write.Verb == "delete" && deploymentOf(owner) == old.Name:
		return "its owner asks for it"
	case write.Verb != "delete" && old.DeletionTimestamp != nil:
		return "it is being deleted"
	case write.Verb != "delete" && old.Spec.Paused != desired.Spec.Paused:
		return "others had written what it changes"
	}
	return ""
}

// eventually returns what is wrong when everything is quiet.
func eventually(now explore.State) (problems []string) {
	for _, owner := range explore.List[appsv1.DaemonSet](now, "daemonsets.apps") {
		d := explore.Get[appsv1.Deployment](now, "deployments.apps", deploymentOf(owner))
		configMap := explore.Get[corev1.ConfigMap](now, "configmaps", owner.Name)
		if d == nil {
			problems = append(problems, owner.Name+" has no Deployment")
			continue
		}
		want := "True ConfigMapExists"
		switch {
		case !metav1.IsControlledBy(d, owner):
			want = "False DeploymentNameTaken"
			if configMap != nil && owner.Status.ObservedGeneration == 1 && owner.Name == "a" &&
				controllerOf(d, now) == nil && *d.Spec.Replicas == 3 {
				problems = append(problems, "a ConfigMap was made, which may need the Deployment")
			}
		case d.DeletionTimestamp != nil:
			want = "False DeploymentTerminating"
		case configMap != nil && configMap.Data["deployment"] == "mirror": // says admission
			want = "True ConfigMapNotKept"
		case *d.Spec.Replicas != 1 || d.Labels[label] != manager || configMap == nil ||
			configMap.Data["deployment"] != d.Name:
			problems = append(problems, fmt.Sprintf("%s has %v and %v", owner.Name, d, configMap))
		}
		got := ""
		for _, c := range owner.Status.Conditions {
			got = fmt.Sprint(c.Status, " ", c.Reason)
		}
		if got != want || owner.Status.ObservedGeneration != owner.Generation {
			problems = append(problems, fmt.Sprintf("%s is %q, want %q", owner.Name, got, want))
		}
	}
	for _, d := range explore.List[appsv1.Deployment](now, "deployments.apps") {
		owner := controllerOf(d, now)
		if owner != nil && deploymentOf(owner) != d.Name && d.Labels[label] != "" {
			problems = append(problems, d.Name+" is left over from "+owner.Name)
		}
	}
	return problems
}

// between stands between the controller and its API server. Just before a deletion, it takes the
// Deployment away from its owner. If it is blind, it shows no change of an owner.
type between struct {
	kube     kubernetes.Interface
	blind    bool
	notFound int // the next patches that do not find their object
}

func (b *between) Serve(
	ctx context.Context, r *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	if r.Verb == "patch" && b.notFound > 0 {
		b.notFound--
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	if r.Verb == "delete" {
		_, err := b.kube.AppsV1().Deployments(r.Namespace).Patch(ctx, r.Name, types.MergePatchType,
			[]byte(`{"metadata": {"ownerReferences": null}}`), metav1.PatchOptions{})
		if err != nil {
			return nil, err
		}
	}
	return do()
}

func (b *between) Event(w *apiserver.Watch, e watch.Event) {
	isChange := e.Type == watch.Modified || e.Type == watch.Deleted
	if !b.blind || !isChange || e.Object.GetObjectKind().GroupVersionKind().Kind != "DaemonSet" {
		w.Send(e)
	}
}

func TestMessageIsWhatTheAPIServerTakes(t *testing.T) {
	got := NotReady("Rejected", "\x1b[31m"+strings.Repeat("é", 1000)).Message

	if len(got) > 1024 || !utf8.ValidString(got) || strings.Contains(got, "\x1b") ||
		!strings.HasPrefix(got, "\ufffd[31mé") || !strings.HasSuffix(got, "é...") {
		t.Errorf("got %d bytes, %q", len(got), got)
	}
}

// runBetween runs a controller, and then test when it has made the Deployment x.
func runBetween(
	t *testing.T, b *between, test func(*testing.T, kubernetes.Interface, *appsv1.DaemonSet),
) {
	synctest.Test(t, func(t *testing.T) {
		server := must.Get(apiserver.New())(t)
		kube := kubernetes.NewForConfigOrDie(server.Config(nil))
		b.kube = kube
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- run(ctx, server.Config(b)) }()
		owner := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		owner.Spec.Template.Spec.Hostname = "x"
		owner = must.Get(kube.AppsV1().DaemonSets("default").Create(
			t.Context(), owner, metav1.CreateOptions{}))(t)
		time.Sleep(time.Minute)
		test(t, kube, owner)
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// has fails the test unless there is such a Deployment, or none.
func has(t *testing.T, kube kubernetes.Interface, namespace, name string, want bool) {
	t.Helper()
	_, err := kube.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if (err == nil) != want || err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("Deployment %s/%s: got error %v, want it: %t", namespace, name, err, want)
	}
}

func TestObjectOfADeletedOwnerIsNotMadeAgain(t *testing.T) {
	runBetween(t, &between{blind: true}, func(
		t *testing.T, kube kubernetes.Interface, _ *appsv1.DaemonSet,
	) {
		apps, now := kube.AppsV1(), metav1.DeleteOptions{}
		must.Do(t, apps.DaemonSets("default").Delete(t.Context(), "a", now))
		must.Do(t, apps.Deployments("default").Delete(t.Context(), "x", now))
		time.Sleep(time.Minute)

		has(t, kube, "default", "x", false)
	})
}

func TestObjectThatGoesWhileItIsUpdatedIsLookedAtAgain(t *testing.T) {
	runBetween(t, &between{notFound: 1}, func(
		t *testing.T, kube kubernetes.Interface, _ *appsv1.DaemonSet,
	) {
		must.Get(kube.AppsV1().Deployments("default").Patch(t.Context(), "x", types.MergePatchType,
			[]byte(`{"metadata": {"labels": null}}`), metav1.PatchOptions{}))(t)
		time.Sleep(time.Minute)

		got := must.Get(kube.AppsV1().Deployments("default").Get(
			t.Context(), "x", metav1.GetOptions{}))(t)
		if got.Labels[label] != manager {
			t.Errorf("got the labels %v, want the one that the informer selects by", got.Labels)
		}
	})
}

func TestOnlyWhatTheOwnerHasIsDeleted(t *testing.T) {
	runBetween(t, &between{}, func(t *testing.T, kube kubernetes.Interface, owner *appsv1.DaemonSet) {
		must.Get(kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}, metav1.CreateOptions{}))(t)
		owners := []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
		}
		create := func(namespace, name string, owners []metav1.OwnerReference) {
			must.Get(kube.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: manager},
					OwnerReferences: owners},
			}, metav1.CreateOptions{}))(t)
		}
		create("default", "old", owners)
		create("elsewhere", "bank", owners)
		owners[0].UID = "of somebody else"
		create("default", "bank", owners)
		must.Get(kube.AppsV1().Deployments("default").Patch(t.Context(), "x", types.MergePatchType,
			[]byte(`{"status": {"availableReplicas": 1}}`), metav1.PatchOptions{}, "status"))(t)
		time.Sleep(time.Minute)

		has(t, kube, "elsewhere", "bank", true)
		for name, owners := range map[string]int{"old": 0, "bank": 1} { // between takes old away
			got := must.Get(kube.AppsV1().Deployments("default").Get(
				t.Context(), name, metav1.GetOptions{}))(t).OwnerReferences
			if len(got) != owners {
				t.Errorf("%s has %d owners, want %d: the controller tries to delete old, and not bank",
					name, len(got), owners)
			}
		}
	})
}
