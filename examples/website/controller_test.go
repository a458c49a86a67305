package main

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/testing/fakes"
)

func TestNewWebsiteGetsAllItsChildrenInOneSync(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		for _, resource := range []string{"configmaps", "services", "deployments"} {
			fakes.Lag(t, &h.Kube.Fake, resource, time.Minute) // no event of a child begins another sync
		}
		h.start()
		h.create(newWebsite("web"))

		configMap, service, deployment := h.configMap("web"), h.service("web"), h.deployment("web")
		if configMap == nil || service == nil || deployment == nil {
			t.Fatalf("got %v, %v, %v, want a child of each kind", configMap, service, deployment)
		}
		for _, child := range []metav1.Object{configMap, service, deployment} {
			if owner := metav1.GetControllerOf(child); owner == nil || owner.UID != "uid-of-web" {
				t.Errorf("%T: got owner %v, want the Website", child, owner)
			}
		}
		if got := h.urls(); len(got) > 0 {
			t.Errorf("registered before the Service is seen: %v", got)
		}
	})
}

func TestWebsiteIsServedAndRegistered(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.create(newWebsite("web"))
		h.expect("web", "Ready", "False Progressing")

		h.rollOut("web")

		h.expect("web", "Ready", "True Available")
		h.expect("web", "Registered", "True Registered")
		const url = "http://web.default.svc:80"
		if got := h.urls()["uid-of-web"]; got != url {
			t.Errorf("in the registry: got %q, want %q", got, url)
		}
		status := h.get("web").Status
		if status.URL != url || status.RegisteredURL != url || status.ObservedGeneration != 1 ||
			status.ReadyReplicas != 2 || status.Replicas != 2 ||
			status.Selector != "website.example.com/website-uid=uid-of-web" {
			t.Errorf("got status %+v", status)
		}
	})
}

func TestChangedContentRollsTheDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		before := h.deployment("web").Spec.Template.Annotations[meaning.ContentHashAnnotation]
		h.change("web", func(website *v1alpha1.Website) { website.Spec.Content = "Bye" })

		if got := h.configMap("web").Data["index.html"]; got != "Bye" {
			t.Errorf("content: got %q, want Bye", got)
		}
		after := h.deployment("web").Spec.Template.Annotations[meaning.ContentHashAnnotation]
		if after == "" || after == before {
			t.Errorf("hash in the Pod template: got %q, then %q, want another", before, after)
		}
	})
}

func TestScaledWebsiteScalesItsDeployment(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.change("web", func(website *v1alpha1.Website) { website.Spec.Replicas = new(int32(5)) })

		if got := *h.deployment("web").Spec.Replicas; got != 5 {
			t.Errorf("replicas: got %d, want 5", got)
		}
		h.expect("web", "Ready", "False Progressing")
		h.rollOut("web")
		if got := h.get("web").Status; got.ReadyReplicas != 5 || got.ObservedGeneration != 2 {
			t.Errorf("got status %+v, want 5 ready replicas of generation 2", got)
		}
	})
}

func TestChangedPortIsRegistered(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.change("web", func(website *v1alpha1.Website) { website.Spec.Port = 8000 })

		const want = "http://web.default.svc:8000"
		if got := h.urls()["uid-of-web"]; got != want {
			t.Errorf("in the registry: got %q, want %q", got, want)
		}
		if got := h.get("web").Status.RegisteredURL; got != want {
			t.Errorf("registeredURL: got %q, want %q", got, want)
		}
	})
}

func TestChangedChildrenAreRepaired(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		configMap, service, deployment := h.configMap("web"), h.service("web"), h.deployment("web")
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

		if got := h.configMap("web").Data; got["index.html"] != "Hello" || got["other"] != "stays" {
			t.Errorf("ConfigMap: got %v", got)
		}
		got := h.service("web").Spec
		if len(got.Ports) != 1 || got.Ports[0].Port != 80 || got.Ports[0].NodePort != 30000 ||
			len(got.Selector) != 1 || got.SessionAffinity != corev1.ServiceAffinityClientIP {
			t.Errorf("Service: got %+v", got)
		}
		template := h.deployment("web").Spec.Template
		if template.Spec.Containers[0].Image != "nginx:1" || template.Annotations["other"] != "stays" {
			t.Errorf("Pod template: got %+v", template)
		}
	})
}

func TestDeletedChildrenComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.must(h.Kube.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		h.must(h.Kube.CoreV1().Services(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		h.must(h.Kube.AppsV1().Deployments(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))

		if h.configMap("web") == nil || h.service("web") == nil || h.deployment("web") == nil {
			t.Error("want all children back")
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
		h.create(newWebsite("web"))
		h.wait(time.Hour)

		h.expect("web", "Ready", "False ConfigMapNameTaken")
		h.expect("web", "Registered", "False NoService")
		if got := h.configMap("web").Data["index.html"]; got != "secret" {
			t.Errorf("the ConfigMap of somebody else has %q", got)
		}
		if h.deployment("web") != nil {
			t.Error("there is a Deployment, which would serve what is in the ConfigMap of somebody else")
		}
		if got := h.events("ConfigMapNameTaken"); got != 1 {
			t.Errorf("got %d Warnings in an hour, want 1", got)
		}

		h.must(h.Kube.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		h.wait(time.Minute)
		h.rollOut("web")
		h.expect("web", "Ready", "True Available")
	})
}

func TestRefusedChildIsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.Fail("create", "deployments", 6, apierrors.NewForbidden(
			schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("quota")))
		h.start()
		h.create(newWebsite("web"))
		h.wait(2 * time.Second)
		h.expect("web", "Ready", "False DeploymentRejected")
		h.expect("web", "Registered", "True Registered")
		h.wait(3 * time.Minute)

		if got := h.events("DeploymentRejected"); got != 1 || h.deployment("web") == nil {
			t.Errorf("got %d Warnings and Deployment %v, want 1 and, in the end, one", got,
				h.deployment("web"))
		}
	})
}

func TestIdleHourWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.wait(time.Second)
		h.writes("*", "*")
		h.registry.Count("")

		h.wait(time.Hour)

		if got := h.writes("*", "*"); got != 0 {
			t.Errorf("writes to the API server in an idle hour: got %d, want 0", got)
		}
		// One every 10 to 12 minutes.
		if got := h.registry.Count("PUT"); got < 5 || got > 6 {
			t.Errorf("registrations in an idle hour: got %d, want 5 or 6", got)
		}
	})
}

func TestRestartRegistersAgainAndWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		h.stop()
		h.writes("*", "*")
		h.registry.Restart() // while no controller runs

		h.start()
		h.wait(time.Minute)

		if got := h.writes("*", "*"); got != 0 {
			t.Errorf("writes after a restart: got %d, want 0", got)
		}
		if got := h.urls(); len(got) != 1 {
			t.Errorf("in the registry: got %v, want the Website", got)
		}
	})
}

func TestLaggingInformerCausesNoWriteOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		fakes.Lag(t, &h.website.Fake, "websites", 5*time.Second)
		h.start()
		h.create(newWebsite("web"))
		h.wait(time.Minute)
		h.rollOut("web")
		h.wait(time.Minute)

		h.expect("web", "Ready", "True Available")
		if patches, errs := h.writes("patch", "websites"), h.errors.Load(); patches != 1 || errs > 0 {
			t.Errorf("got %d patches and %d errors, want 1 and none", patches, errs)
		}
	})
}

func TestWebsiteThatNamesNoDefaultsIsServed(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		website := newWebsite("web") // the fake client sets no defaults
		website.Spec = v1alpha1.WebsiteSpec{Content: "Hello"}
		h.create(website)

		deployment := h.deployment("web")
		if got := *deployment.Spec.Replicas; got != 1 {
			t.Errorf("replicas: got %d, want 1", got)
		}
		want := "nginxinc/nginx-unprivileged:1.27-alpine"
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("image: got %q, want %q", got, want)
		}
		if got := h.service("web").Spec.Ports[0].Port; got != 80 {
			t.Errorf("port: got %d, want 80", got)
		}
	})
}

func TestWhatOthersWroteSurvives(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		h.start()
		h.createServed("web")
		deployment := h.deployment("web")
		spec := &deployment.Spec.Template.Spec
		sidecar := corev1.Container{Name: "sidecar", Image: "proxy:1"}
		spec.Containers = append([]corev1.Container{sidecar}, spec.Containers...)
		spec.Volumes[0].ConfigMap.DefaultMode = new(int32(0o644)) // as the API server does
		h.updateDeployment(deployment)
		h.writes("*", "*")
		h.change("web", func(website *v1alpha1.Website) { website.Spec.Replicas = new(int32(3)) })

		spec = &h.deployment("web").Spec.Template.Spec
		if len(spec.Containers) != 2 || spec.Containers[0].Image != "proxy:1" ||
			len(spec.Volumes) != 1 || spec.Volumes[0].ConfigMap.DefaultMode == nil {
			t.Errorf("got %+v, want the sidecar and the mode untouched", spec)
		}
		if got := h.writes("patch", "deployments"); got != 1 {
			t.Errorf("updates of the Deployment: got %d, want 1", got)
		}
	})
}
