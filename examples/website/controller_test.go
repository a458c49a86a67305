package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
)

var deploymentsResource = schema.GroupResource{Group: "apps", Resource: "deployments"}

func TestNewWebsiteGetsAllItsChildrenInOneSync(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		for _, resource := range []string{"configmaps", "services", "deployments"} {
			h.Lag(resource, time.Minute) // no event of a child begins another sync
		}
		h.createWebsite(newWebsite("web"))

		configMap, service, deployment := h.getConfigMap("web"), h.getService("web"), h.getDeployment("web")
		if configMap == nil || service == nil || deployment == nil {
			t.Fatalf("got %v, %v, %v, want a child of each kind", configMap, service, deployment)
		}
		for _, child := range []metav1.Object{configMap, service, deployment} {
			if owner := metav1.GetControllerOf(child); owner == nil || owner.UID != h.getWebsite("web").UID {
				t.Errorf("%T: got owner %v, want the Website", child, owner)
			}
		}
		if got := h.registry.known(); len(got) > 0 {
			t.Errorf("registered before the Service is seen: %v", got)
		}
		h.expectWrites("create", "configmaps", 1)
	})
}

func TestChangedContentRollsTheDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		before := h.getDeployment("web").Spec.Template.Annotations[meaning.ContentHashAnnotation]
		h.Lag("deployments", time.Minute)
		h.changeWebsite("web", editWebsite)

		h.expectEdited("web")
		h.expectCondition("web", "Ready", "True Available") // until the cache shows the Deployment
		after := h.getDeployment("web").Spec.Template.Annotations[meaning.ContentHashAnnotation]
		if after == "" || after == before {
			t.Errorf("hash in the Pod template: got %q, then %q, want another", before, after)
		}
	})
}

func TestChangedChildrenAreRepaired(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		configMap, service, deployment := h.getConfigMap("web"), h.getService("web"), h.getDeployment("web")
		configMap.Data = map[string]string{"other": "stays", "index.html": "defaced"}
		service.Spec.Selector = nil
		service.Spec.Ports = []corev1.ServicePort{{Port: 1, NodePort: 30000}, {Port: 2}}
		service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		deployment.Spec.Template.Spec.Containers[0].Image = "evil:1"
		deployment.Spec.Template.Annotations["other"] = "stays"
		_, err := h.Kube.CoreV1().ConfigMaps(namespace).Update(t.Context(), configMap,
			metav1.UpdateOptions{})
		h.must(err)
		_, err = h.Kube.CoreV1().Services(namespace).Update(t.Context(), service,
			metav1.UpdateOptions{})
		h.must(err)
		h.updateDeployment(deployment)

		if got := h.getConfigMap("web").Data; got["index.html"] != "Hello" || got["other"] != "stays" {
			t.Errorf("ConfigMap: got %v", got)
		}
		got := h.getService("web").Spec
		if len(got.Ports) != 1 || got.Ports[0].Port != 80 || got.Ports[0].NodePort != 30000 ||
			len(got.Selector) != 1 || got.SessionAffinity != corev1.ServiceAffinityClientIP {
			t.Errorf("Service: got %+v", got)
		}
		template := h.getDeployment("web").Spec.Template
		if template.Spec.Containers[0].Image != "nginx:1" || template.Annotations["other"] != "stays" {
			t.Errorf("Pod template: got %+v", template)
		}
	})
}

func TestChildThatGoesWhileItIsChangedIsNotForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.wait(time.Minute) // no delayed sync is left
		// There is no event for that if somebody has taken off the label.
		h.Fail("patch", "deployments", 1, apierrors.NewNotFound(deploymentsResource, "web"))
		deployment := h.getDeployment("web")
		deployment.Spec.Template.Spec.Containers[0].Image = "evil:1"
		h.updateDeployment(deployment)
		h.wait(time.Minute)

		if got := h.getDeployment("web").Spec.Template.Spec.Containers[0].Image; got != "nginx:1" {
			t.Errorf("image: got %q, want nginx:1", got)
		}
	})
}

func TestConfigMapOfSomebodyElseIsNeitherChangedNorMounted(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		foreign := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
			Data:       map[string]string{"index.html": "secret"},
		}
		_, err := h.Kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), foreign,
			metav1.CreateOptions{})
		h.must(err)
		h.start()
		h.Fail("update", "websites/status", 3, apierrors.NewServiceUnavailable("injected"))
		h.createWebsite(newWebsite("web"))
		h.wait(time.Hour)

		h.expectCondition("web", "Ready", "False ConfigMapNameTaken")
		h.expectCondition("web", "Registered", "False NoService")
		h.expectWrites("create", "configmaps", 1) // each one would count in a quota
		if got := h.getConfigMap("web").Data["index.html"]; got != "secret" {
			t.Errorf("the ConfigMap of somebody else has %q", got)
		}
		if h.getDeployment("web") != nil {
			t.Error("there is a Deployment, which would serve what is in the ConfigMap of somebody else")
		}
		h.expectEvents("ConfigMapNameTaken", 1)

		h.must(h.Kube.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		h.wait(time.Minute)
		h.rollOut("web")
		h.expectCondition("web", "Ready", "True Available")
	})
}

// Words that differ each time are a new status each time, and its event brings the key back at once.
func TestRefusedChildIsTriedSlowly(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		var tries atomic.Int32
		h.Before("create", "deployments", 6, func(context.Context) error {
			return apierrors.NewBadRequest(fmt.Sprint("request ", tries.Add(1)))
		})
		h.start()
		h.createWebsite(newWebsite("web"))
		h.wait(50 * time.Second)
		h.expectCondition("web", "Ready", "False DeploymentRejected")
		h.expectCondition("web", "Registered", "True Registered")
		h.expectEvents("DeploymentRejected", 4) // at once, and after 15, 30 and 45 s

		h.wait(2 * time.Minute)
		if h.getDeployment("web") == nil {
			t.Error("there is no Deployment in the end")
		}
	})
}

func TestIdleHourWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.wait(time.Second)
		h.ClearRequests()
		h.registry.count("")

		h.wait(time.Hour)

		h.expectWrites("*", "*", 0)
		// One every 10 to 12 minutes.
		if got := h.registry.count("PUT"); got < 5 || got > 6 {
			t.Errorf("registrations in an idle hour: got %d, want 5 or 6", got)
		}
	})
}

func TestLaggingInformerCausesNoWriteOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.Lag("websites", 5*time.Second)
		h.createWebsite(newWebsite("web"))
		h.wait(time.Minute)
		h.rollOut("web")
		h.wait(time.Minute)

		h.expectCondition("web", "Ready", "True Available")
		h.expectWrites("patch", "websites", 1)
		h.expectErrors(0)
	})
}

func TestWhatOthersWroteSurvives(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		deployment := h.getDeployment("web")
		spec := &deployment.Spec.Template.Spec
		sidecar := corev1.Container{Name: "sidecar", Image: "proxy:1"}
		spec.Containers = append([]corev1.Container{sidecar}, spec.Containers...)
		spec.Volumes[0].ConfigMap.DefaultMode = new(int32(0o400))
		h.updateDeployment(deployment)
		h.ClearRequests()
		h.changeWebsite("web", func(website *v1alpha1.Website) { website.Spec.Replicas = new(int32(3)) })

		spec = &h.getDeployment("web").Spec.Template.Spec
		if len(spec.Containers) != 2 || spec.Containers[0].Image != "proxy:1" ||
			len(spec.Volumes) != 1 || *spec.Volumes[0].ConfigMap.DefaultMode != 0o400 {
			t.Errorf("got %+v, want the sidecar and the mode untouched", spec)
		}
		h.expectWrites("patch", "deployments", 1)
	})
}
