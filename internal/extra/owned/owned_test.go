package owned

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

func (h *harness) expectReported(foo, reason string) {
	h.t.Helper()
	if got, ok := h.reported[foo]; !ok || got != reason {
		h.t.Errorf("reported for %s: got %q (%t), want %q", foo, got, ok, reason)
	}
}

func (h *harness) expectOwner(deployment, owner string) {
	h.t.Helper()
	d := h.deployment(deployment)
	if d == nil {
		h.t.Fatalf("there is no Deployment %s", deployment)
	}
	got := ""
	if controller := metav1.GetControllerOf(d); controller != nil {
		got = controller.Name
	}
	if got != owner {
		h.t.Errorf("owner of %s: got %q, want %q", deployment, got, owner)
	}
}

func TestObjectsOfAllKindsAreCreatedInOneSync(t *testing.T) {
	slow := func(h *harness) { // so another sync comes only when the API server has all objects
		fakes.Lag(h.t, &h.Kube.Fake, "configmaps", time.Minute)
		fakes.Lag(h.t, &h.Kube.Fake, "deployments", time.Minute)
	}
	bubble(t, slow, func(h *harness) {
		h.create("a", "web")

		if h.count("create", "configmaps") != 1 || h.count("create", "deployments") != 1 {
			t.Errorf("got %d ConfigMaps and %d Deployments, want one of each",
				h.count("create", "configmaps"), h.count("create", "deployments"))
		}
		if _, ok := h.reported["a"]; ok {
			t.Error("something was reported before the informers have shown what was created")
		}
	})
}

func TestObjectHasOwnerFieldsAndEvent(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		foo := h.create("a", "web")

		d := h.deployment("web")
		controller := metav1.GetControllerOf(d)
		if controller == nil || controller.UID != foo.UID || controller.Kind != "Foo" ||
			controller.APIVersion != "samplecontroller.k8s.io/v1alpha1" {
			t.Errorf("got controller %v, want the Foo", controller)
		}
		if d.Labels[label] != manager || d.Spec.Replicas == nil {
			t.Fatalf("got labels %v and replicas %v, want what SetFields sets", d.Labels, d.Spec.Replicas)
		}
		if got := h.events("DeploymentCreated"); len(got) != 1 || got[0] != `Created Deployment "web"` {
			t.Errorf("got Events %q", got)
		}
		h.expectReported("a", "Progressing")
		h.rollOut("web")
		h.expectReported("a", "Available")
	})
}

// The API server refuses a condition without a reason.
func TestKindWithoutReadinessIsReadyForAReason(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		got, err := h.children[0].Sync(t.Context(), h.create("a", "web"))

		want := metav1.Condition{Type: "Ready", Status: "True", Reason: "ConfigMapExists",
			Message: `ConfigMap "a" exists`}
		if err != nil || got == nil || *got != want {
			t.Errorf("got %+v (error: %v), want %+v", got, err, want)
		}
	})
}

func TestOnlyOwnedFieldsAreRepaired(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		h.create("a", "web")

		h.change("web", func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Spec.Paused = new(int32(7)), true
		})

		if d := h.deployment("web"); *d.Spec.Replicas != 1 || !d.Spec.Paused {
			t.Errorf("got %d replicas and paused %t, want 1 and true", *d.Spec.Replicas, d.Spec.Paused)
		}
		if got := h.events("DeploymentUpdated"); len(got) != 1 {
			t.Errorf("got Events %q, want one", got)
		}
	})
}

func TestObjectOfSomebodyElseIsNotTouched(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"that the informer does not show": nil,
		"that the informer shows":         {label: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			foreign := func(h *harness) { h.foreign("web", labels) }
			bubble(t, foreign, func(h *harness) {
				h.create("a", "web")
				time.Sleep(time.Minute)
				synctest.Wait()

				h.expectReported("a", "DeploymentNameTaken")
				if d := h.deployment("web"); d.Spec.Replicas != nil || h.count("patch", "deployments") > 0 {
					t.Errorf("the Deployment was changed: %v", d)
				}
				if got := h.failed.Load(); got != 0 {
					t.Errorf("%d syncs have failed", got)
				}
				h.delete("web")
				time.Sleep(blockedRetryDelay)
				synctest.Wait()
				h.expectOwner("web", "a")
			})
		})
	}
}

func TestNothingIsReportedBeforeAWriteIsSeen(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		h.create("a", "web")
		h.rollOut("web")
		h.reports = 0
		configMaps := h.Kube.CoreV1().ConfigMaps(namespace)
		configMap := must.Get(configMaps.Get(t.Context(), "a", metav1.GetOptions{}))(t)
		configMap.Data = nil
		must.Get(configMaps.Update(t.Context(), configMap, metav1.UpdateOptions{}))(t)
		h.settle()

		if h.reports != 1 {
			t.Errorf("got %d reports, want 1: by the sync that follows the repair", h.reports)
		}
	})
}

func TestNothingIsMadeThatMayNeedWhatIsNotReady(t *testing.T) {
	taken := func(h *harness) {
		must.Get(h.Kube.CoreV1().ConfigMaps(namespace).Create(h.t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace},
		}, metav1.CreateOptions{}))(h.t)
	}
	bubble(t, taken, func(h *harness) {
		h.create("a", "web")

		h.expectReported("a", "ConfigMapNameTaken")
		if got := h.count("create", "deployments"); got != 0 {
			t.Errorf("got %d Deployments, which may need the ConfigMap, want none", got)
		}
	})
}

func TestSecondOwnerTakesOverWhenTheFirstGoes(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		h.create("first", "web")
		h.create("second", "web")
		h.expectReported("second", "DeploymentNameTaken")
		h.expectOwner("web", "first")

		must.Do(t, h.Foo.SamplecontrollerV1alpha1().Foos(namespace).Delete(t.Context(), "first",
			metav1.DeleteOptions{}))
		h.settle()
		h.delete("web") // as the garbage collector does

		h.expectOwner("web", "second")
	})
}

func TestReleasedObjectIsThatOfSomebodyElse(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		h.create("a", "web")
		h.change("web", func(d *appsv1.Deployment) { d.OwnerReferences = nil })
		h.expectReported("a", "DeploymentNameTaken")
	})
}

func TestRemovedLabelIsPutBack(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		h.create("a", "web")
		h.change("web", func(d *appsv1.Deployment) { d.Labels = nil })

		if got := h.deployment("web").Labels[label]; got != manager {
			t.Errorf("got label %q, want %q", got, manager)
		}
	})
}

func TestObjectThatIsBeingDeletedIsNotRepaired(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		h.create("a", "web")
		h.change("web", func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/held"} })
		h.delete("web")
		h.change("web", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })

		if got := *h.deployment("web").Spec.Replicas; got != 7 {
			t.Errorf("got %d replicas, want 7, as somebody wrote", got)
		}
		h.expectReported("a", "DeploymentTerminating")

		h.change("web", func(d *appsv1.Deployment) { d.Finalizers = nil })
		h.expectOwner("web", "a")
	})
}

func TestWhatTheAPIServerRefusesIsReportedAndRetriedSlowly(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden": apierrors.NewForbidden(deployments, "web", errors.New("quota")),
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", nil),
		"bad":       apierrors.NewBadRequest("unreadable"),
	} {
		t.Run(name, func(t *testing.T) {
			refuse := func(h *harness) { h.Fail("create", "deployments", 2, refusal) }
			bubble(t, refuse, func(h *harness) {
				h.create("a", "web")
				time.Sleep(time.Millisecond)
				synctest.Wait()
				h.expectReported("a", "DeploymentRejected")
				if got := h.count("create", "configmaps"); got != 1 {
					t.Errorf("got %d ConfigMaps, want 1: they do not need the Deployment", got)
				}

				time.Sleep(2 * blockedRetryDelay)
				synctest.Wait()
				h.expectOwner("web", "a")
				if got := h.failed.Load(); got != 0 {
					t.Errorf("%d syncs have failed, want none: nobody can mend it sooner", got)
				}
			})
		})
	}
}

func TestRequestThatFailsIsRetried(t *testing.T) {
	fail := func(h *harness) {
		h.Fail("create", "deployments", 1, apierrors.NewInternalError(errors.New("injected")))
	}
	bubble(t, fail, func(h *harness) {
		h.create("a", "web")
		time.Sleep(time.Second)
		synctest.Wait()

		h.expectOwner("web", "a")
		if got := h.failed.Load(); got != 1 {
			t.Errorf("%d syncs have failed, want 1", got)
		}
	})
}

func TestNothingIsCreatedInANamespaceThatGoes(t *testing.T) {
	goes := apierrors.NewForbidden(deployments, "web", errors.New("being terminated"))
	goes.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	bubble(t, func(h *harness) { h.Fail("create", "deployments", 1000, goes) }, func(h *harness) {
		h.create("a", "web")
		time.Sleep(time.Hour)
		synctest.Wait()

		// The event of the ConfigMap brings the key back once. After that, only the namespace's end does.
		if got := h.count("create", "deployments"); got > 2 || h.failed.Load() > 0 {
			t.Errorf("got %d creates and %d failures in an hour, want at most 2 and none", got,
				h.failed.Load())
		}
	})
}

func TestObjectOfADeletedOwnerIsNotMadeAgain(t *testing.T) {
	late := func(h *harness) { fakes.Lag(h.t, &h.Foo.Fake, "foos", time.Second) }
	bubble(t, late, func(h *harness) {
		h.create("a", "web")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		must.Do(t, h.Foo.SamplecontrollerV1alpha1().Foos(namespace).Delete(t.Context(), "a",
			metav1.DeleteOptions{}))
		h.delete("web") // the informer of Foos does not know yet
		time.Sleep(time.Minute)
		synctest.Wait()

		if h.deployment("web") != nil {
			t.Error("the Deployment was made again")
		}
	})
}

func TestNothingIsWrittenTwiceWhileTheInformerIsLate(t *testing.T) {
	late := func(h *harness) { fakes.Lag(h.t, &h.Kube.Fake, "deployments", 5*time.Second) }
	bubble(t, late, func(h *harness) {
		h.create("a", "web")
		time.Sleep(time.Minute)
		synctest.Wait()

		if got := h.count("create", "deployments"); got != 1 {
			t.Errorf("got %d creates, want 1", got)
		}
		if !h.logged("0s no sync has seen the last write") {
			t.Errorf("the key was not queued in case that the event never comes: %q", h.log)
		}
	})
}

func TestObjectThatGoesWhileItIsUpdatedIsLookedAtAgain(t *testing.T) {
	gone := func(h *harness) {
		h.Fail("patch", "deployments", 1, apierrors.NewNotFound(deployments, "web"))
	}
	bubble(t, gone, func(h *harness) {
		// The client of the test has the same failure, so somebody writes past it.
		h.create("a", "web")
		d := h.deployment("web")
		d.Spec.Replicas = new(int32(7))
		must.Do(t, h.KubeTracker.Update(deployments.WithVersion("v1"), d, namespace))
		time.Sleep(2 * time.Second)
		synctest.Wait()

		if got := *h.deployment("web").Spec.Replicas; got != 1 {
			t.Errorf("got %d replicas, want 1", got)
		}
		if h.failed.Load() != 0 || !h.logged("1s the Deployment was deleted in between") {
			t.Errorf("got %d failures, and %q", h.failed.Load(), h.log)
		}
	})
}

func TestFormerObjectIsDeletedWhenTheNewOneIsReady(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		foo := h.create("a", "old")
		h.rollOut("old")
		h.rename(foo, "new")
		h.expectOwner("old", "a")
		h.expectOwner("new", "a")

		h.rollOut("new")

		if h.deployment("old") != nil {
			t.Error("the former Deployment is still there")
		}
		want := `Deleted Deployment "old", now replaced by "new"`
		if got := h.events("DeploymentDeleted"); len(got) != 1 || got[0] != want {
			t.Errorf("got Events %q", got)
		}
	})
}

func TestFormerObjectStaysIfTheOwnerHasItsNameAgain(t *testing.T) {
	late := func(h *harness) { fakes.Lag(h.t, &h.Foo.Fake, "foos", 5*time.Second) }
	bubble(t, late, func(h *harness) {
		foo := h.create("a", "old")
		time.Sleep(time.Minute)
		h.rollOut("old")
		h.rename(foo, "new")
		time.Sleep(time.Minute)
		renamed := must.Get(h.Foo.SamplecontrollerV1alpha1().Foos(namespace).Get(t.Context(), "a",
			metav1.GetOptions{}))(t)
		h.rename(renamed, "old")

		h.rollOut("new") // the informer does not show yet that the owner has changed again

		if h.deployment("old") == nil {
			t.Error("the Deployment that the owner asks for was deleted")
		}
		time.Sleep(time.Minute)
		if h.deployment("old") == nil || h.deployment("new") != nil {
			t.Error("in the end, want the old Deployment, and not the new one")
		}
	})
}

func TestFormerObjectThatWasReleasedIsNotDeleted(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		foo := h.create("a", "old")
		h.rollOut("old")
		h.rename(foo, "new")
		// Somebody takes the owner reference off, and the informer does not show that yet.
		d := h.deployment("old")
		d.OwnerReferences = nil
		fresh := d.DeepCopy()
		h.Kube.PrependReactor("delete", "deployments", releaseFirst(h, fresh))

		h.rollOut("new")

		if h.deployment("old") == nil {
			t.Error("a Deployment was deleted that its owner had no more")
		}
	})
}

func TestObjectOfAnotherNamespaceIsNotTheOwners(t *testing.T) {
	bubble(t, nothing, func(h *harness) {
		h.create("a", "web")
		h.foreign("bank", nil)
		forged := h.deployment("web")
		forged.Name, forged.Namespace, forged.UID = "bank", "elsewhere", "forged"
		forged.ResourceVersion = ""
		must.Get(h.Kube.AppsV1().Deployments("elsewhere").Create(h.t.Context(), forged,
			metav1.CreateOptions{}))(h.t)

		h.rollOut("web")

		if got := h.count("delete", "deployments"); got != 0 || h.failed.Load() != 0 {
			h.t.Errorf("got %d deletions and %d failed syncs, want none", got, h.failed.Load())
		}
	})
}

// releaseFirst writes fresh just before a deletion.
func releaseFirst(h *harness, fresh *appsv1.Deployment) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) {
		_ = h.KubeTracker.Update(deployments.WithVersion("v1"), fresh, namespace) // fails the second time
		return false, nil, nil
	}
}

func TestMessageIsWhatTheAPIServerTakes(t *testing.T) {
	got := NotReady("Rejected", "\x1b[31m"+strings.Repeat("é", 1000)).Message

	if len(got) > 1024 || !utf8.ValidString(got) || strings.Contains(got, "\x1b") ||
		!strings.HasPrefix(got, "\ufffd[31mé") || !strings.HasSuffix(got, "é...") {
		t.Errorf("got %d bytes, %q", len(got), got)
	}
}
