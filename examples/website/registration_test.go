package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/testing/must"
)

// errDenied is what a webhook says, with a reason of its choice.
var errDenied = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
	Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "admission webhook x: no"}}

func TestNothingIsRegisteredWithoutFinalizer(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.Fail("patch", "websites", 1000, errDenied)
		h.start()
		h.createWebsite(newWebsite("web"))
		h.wait(time.Hour)

		h.expectCondition("web", "Ready", "False Progressing")
		h.expectCondition("web", "Registered", "False FinalizerRejected")
		h.expectEvents("FinalizerRejected", 1)
		if got := h.registry.count("PUT"); got != 0 {
			t.Errorf("registrations before there is a finalizer: got %d, want 0", got)
		}
	})
}

func TestDeletedWebsiteIsDeregisteredBeforeItGoes(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.createServed("other")
		registeredAtTheEnd := -1
		h.Before("patch", "websites", 1, func(context.Context) error {
			registeredAtTheEnd = len(h.registry.known())
			return nil
		})
		h.deleteWebsite("web")

		if h.websiteExists("web") {
			t.Error("the Website is still there")
		}
		if got := h.registry.known(); len(got) != 1 || h.url("other") == "" {
			t.Errorf("in the registry: got %v, want only the other Website", got)
		}
		if registeredAtTheEnd != 1 {
			t.Errorf("the finalizer was removed with %d Websites in the registry, want 1",
				registeredAtTheEnd)
		}
		h.expectErrors(0)
	})
}

// changeFinalizersFirst gives a Website other finalizers right before the controller's next write of
// them.
func (h *harness) changeFinalizersFirst(name string, finalizers ...string) {
	h.Before("patch", "websites", 1, func(ctx context.Context) error {
		website := h.getWebsite(name)
		website.Finalizers = finalizers
		_, err := h.websites().Update(ctx, website, metav1.UpdateOptions{})
		return err
	})
}

func TestFinalizerIsAddedToThoseOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.changeFinalizersFirst("web", "example.com/other")
		h.start()
		h.createWebsite(newWebsite("web"))
		h.wait(time.Second)

		want := []string{"example.com/other", registryFinalizer}
		if got := h.getWebsite("web").Finalizers; !slices.Equal(got, want) {
			t.Errorf("finalizers: got %q, want %q", got, want)
		}
	})
}

func TestWebsiteThatIsGoneNeedNotLoseItsFinalizer(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.changeFinalizersFirst("web")
		h.deleteWebsite("web")

		h.expectErrors(0)
	})
}

func TestRegistryThatIsDownHoldsADeletedWebsite(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.registry.fail(errDown)
		h.deleteWebsite("web")
		h.wait(time.Hour)

		h.expectCondition("web", "Registered", "False DeregistrationFailed")
		h.expectCondition("web", "Ready", "False WebsiteTerminating")
		h.expectEvents("DeregistrationFailed", 1)
		if got := h.getWebsite("web").Status.RegisteredURL; got == "" {
			t.Error("registeredURL is empty, but the registry still knows it")
		}
		// 13 tries in the first 40 seconds, and then one every 30 seconds.
		if got := h.registry.count("DELETE"); got < 100 || got > 150 {
			t.Errorf("tries in an hour: got %d, want about 130", got)
		}

		h.registry.fail(nil)
		h.wait(time.Minute)
		if h.websiteExists("web") || len(h.registry.known()) > 0 {
			t.Errorf("the Website is there: %t; in the registry: %v", h.websiteExists("web"), h.registry.known())
		}
	})
}

func TestFinalizerThatCannotBeRemovedIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.Fail("patch", "websites", 2, errDenied)
		h.deleteWebsite("web")
		h.expectCondition("web", "Ready", "False WebsiteTerminating")
		h.expectCondition("web", "Registered", "False FinalizerRejected")

		h.wait(time.Minute)
		if h.websiteExists("web") {
			t.Error("the Website is still there")
		}
	})
}

func TestWebsiteThatSomebodyElseHoldsIsNotRegisteredAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.changeWebsite("web", func(website *v1alpha1.Website) {
			website.Finalizers = append(website.Finalizers, "example.com/other")
		})
		h.deleteWebsite("web")
		h.expectCondition("web", "Registered", "False Deregistered")
		h.must(h.Kube.AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		h.wait(time.Minute)
		h.ClearRequests()
		h.registry.count("")
		h.wait(time.Hour)

		if got := h.getWebsite("web").Status; got.RegisteredURL != "" || got.ReadyReplicas != 0 {
			t.Errorf("got status %+v, want nothing registered and no replicas", got)
		}
		if h.getDeployment("web") != nil || len(h.registry.known()) > 0 {
			t.Error("something was made for a Website that is being deleted")
		}
		h.expectWrites("*", "*", 0)
		if tries := h.registry.count("DELETE"); tries > 0 {
			t.Errorf("got %d deregistrations in an idle hour, want none", tries)
		}
	})
}

func TestChildOfADeletedWebsiteIsNotMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.Lag("websites", time.Hour)
		h.deleteWebsite("web")
		h.must(h.Kube.AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		h.wait(time.Minute)

		if h.getDeployment("web") != nil {
			t.Error("something was made for a Website that is being deleted")
		}
	})
}

func TestURLThatComesBackIsRegisteredAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.registry.fail(errLost)
		h.changeWebsite("web", moveWebsite)
		h.expectCondition("web", "Registered", "False RegistrationFailed")
		h.registry.fail(nil)
		h.changeWebsite("web", func(website *v1alpha1.Website) { website.Spec = newWebsite("web").Spec })
		h.wait(time.Second)

		if got := h.url("web"); got != oldURL {
			t.Errorf("in the registry: got %q, want %q", got, oldURL)
		}
		h.expectCondition("web", "Registered", "True Registered")
	})
}

func TestSyncInBetweenDoesNotPutOffTheResync(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.wait(2 * time.Minute)
		h.changeWebsite("web", moveWebsite) // which registers it again, before the first resync
		h.registry.restart()
		for range 4 {
			h.wait(2 * time.Minute)
			h.changeWebsite("web", editWebsite)
		}
		if got := h.registry.count("PUT"); got != 2 {
			t.Errorf("after 10 minutes: got %d registrations, want that of each URL", got)
		}
		h.wait(5 * time.Minute)

		if got := h.registry.known(); len(got) != 1 {
			t.Errorf("in the registry after 13 minutes: got %v, want the Website", got)
		}
	})
}

func TestRegistryThatIsDownStopsNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.registry.fail(errDown)
		h.start()
		h.createServed("web")
		h.expectCondition("web", "Ready", "True Available")
		h.expectCondition("web", "Registered", "False RegistrationFailed")
		h.changeWebsite("web", editWebsite)
		h.expectEdited("web")
		h.rollOut("web")
		h.wait(time.Second)
		h.ClearRequests()
		h.registry.count("")

		h.wait(time.Hour)

		h.expectWrites("*", "*", 0)
		if got := h.registry.count("PUT"); got < 100 || got > 150 {
			t.Errorf("tries in an hour: got %d, want about 130", got)
		}
		h.expectEvents("RegistrationFailed", 1)
		h.registry.fail(nil)
		h.wait(time.Minute)
		h.expectCondition("web", "Registered", "True Registered")
	})
}

// createMany creates that many Websites at once, and returns their names.
func (h *harness) createMany(count int) (names []string) {
	h.t.Helper()
	for i := range count {
		website := newWebsite(fmt.Sprintf("web-%d", i))
		must.Get(h.websites().Create(h.t.Context(), website, metav1.CreateOptions{}))(h.t)
		names = append(names, website.Name)
	}
	return names
}

func TestRegistryThatHangsHoldsFewWorkers(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.workers = 16
		h.registry.answerAfter(time.Hour)
		h.start()
		names := h.createMany(100)
		h.wait(time.Second) // the first requests to the registry are still under way
		h.createWebsite(newWebsite("late"))
		h.wait(time.Millisecond)
		h.expectCondition("late", "Registered", "absent") // to be busy is no failure

		for _, name := range append(names, "late") {
			if h.getDeployment(name) == nil {
				t.Errorf("%s has no Deployment", name)
			}
		}
		h.ClearRequests()
		h.wait(time.Minute)
		// There is time for 120 PUTs, each after a read. The others must not read in vain.
		if got := len(h.Requests("get", "websites")); got > 200 {
			t.Errorf("in a minute, %d Websites were read, want 200 at most", got)
		}
		h.deleteWebsite(names[0])
		h.wait(time.Minute)
		h.expectCondition(names[0], "Ready", "False WebsiteTerminating")

		h.registry.answerAfter(0)
		h.wait(time.Minute)
		if got := h.registry.known(); len(got) != 100 || h.websiteExists(names[0]) {
			t.Errorf("in the registry: got %d Websites, want 100; the deleted one is still there: %t",
				len(got), h.websiteExists(names[0]))
		}
	})
}
