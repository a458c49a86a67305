package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/fakes"
)

var (
	histories = flag.Uint64("histories", 30, "how many random histories to run")
	seed      = flag.Uint64("seed", 1, "of the first one")
)

var (
	websitesResource    = v1alpha1.Resource("websites").WithVersion(v1alpha1.GroupVersion.Version)
	configMapsResource  = corev1.SchemeGroupVersion.WithResource("configmaps")
	servicesResource    = corev1.SchemeGroupVersion.WithResource("services")
	deploymentsResource = appsv1.SchemeGroupVersion.WithResource("deployments")
)

const steps = 30 // of a history

// story is a random history of a few Websites: people change them and their children, the API
// server and the registry fail, and the controller is restarted. What the story does itself, it
// does behind the clients, so no failure that is meant for the controller hits it.
type story struct {
	*harness
	random *rand.Rand
	log    []string
	uids   int
}

// TestRandomHistories runs histories with different seeds, always the same. -histories makes more.
func TestRandomHistories(t *testing.T) {
	for i := range *histories {
		if runStory(t, *seed+i); t.Failed() {
			return
		}
	}
}

func runStory(t *testing.T, seed uint64) {
	bubble(t, func(t *testing.T, h *harness) {
		s := &story{harness: h, random: rand.New(rand.NewPCG(seed, 0))}
		defer func() {
			if t.Failed() {
				t.Logf("to repeat it: -run TestRandomHistories -histories 1 -seed %d\n%s", seed,
					strings.Join(s.log, "\n"))
			}
		}()
		h.start()
		for range steps {
			s.step()
			h.wait(time.Duration(s.random.IntN(3)*s.random.IntN(10_000)) * time.Millisecond)
			s.checkAlways()
		}
		s.heal()
		s.checkEnd()
	})
}

// step does one thing at random.
func (s *story) step() {
	name := []string{"a", "b"}[s.random.IntN(2)]
	resource := []string{"configmaps", "services", "deployments"}[s.random.IntN(3)]
	actions := []struct {
		what string
		do   func()
	}{
		{"create " + name, func() { s.createAny(name) }},
		{"create " + name, func() { s.createAny(name) }},
		{"change content of " + name, func() {
			s.changeAny(name, func(w *v1alpha1.Website) { w.Spec.Content = fmt.Sprint(s.random.IntN(9)) })
		}},
		{"change port of " + name, func() {
			s.changeAny(name, func(w *v1alpha1.Website) { w.Spec.Port = 80 + s.random.Int32N(2) })
		}},
		{"scale " + name, func() {
			s.changeAny(name, func(w *v1alpha1.Website) { w.Spec.Replicas = new(s.random.Int32N(3)) })
		}},
		{"hold " + name, func() {
			s.changeAny(name, func(w *v1alpha1.Website) {
				if w.DeletionTimestamp == nil {
					w.Finalizers = append(w.Finalizers, "example.com/other")
				}
			})
		}},
		{"release " + name, func() { s.changeAny(name, release) }},
		{"delete " + name, func() { s.ignore(s.tracker.Delete(websitesResource, namespace, name)) }},
		{"delete the " + resource + " of " + name, func() { s.deleteChild(resource, name) }},
		{"edit the children of " + name, func() { s.editChildren(name) }},
		{"somebody else has the ConfigMap " + name, func() { s.foreign(name) }},
		{"garbage collection", s.collectGarbage},
		{"rollouts", s.rollOutAll},
		{"the registry is down", func() { s.registry.fail(errDown) }},
		{"the registry's answers are lost", func() { s.registry.fail(errLost) }},
		{"the registry is up", func() { s.registry.fail(nil) }},
		{"the registry has lost its state", s.registry.restart},
		{"the API server fails", s.failRequests},
		{"the controller is restarted", func() { s.stop(); s.start() }},
		{"ten minutes pass", func() { s.wait(10 * time.Minute) }},
	}
	action := actions[s.random.IntN(len(actions))]
	s.log = append(s.log, action.what)
	action.do()
}

func (s *story) createAny(name string) {
	website := newWebsite(name)
	s.uids++
	website.UID = types.UID(fmt.Sprint(name, s.uids))
	if err := s.tracker.Create(websitesResource, website, namespace); !apierrors.IsAlreadyExists(err) {
		s.ignore(err)
	}
}

func (s *story) changeAny(name string, change func(*v1alpha1.Website)) {
	edit(s, s.tracker, websitesResource, name, func(website *v1alpha1.Website) {
		change(website)
		website.Generation++
	})
}

// release takes the finalizer of somebody else off.
func release(website *v1alpha1.Website) {
	var left []string
	for _, name := range website.Finalizers {
		if name == registryFinalizer {
			left = append(left, name)
		}
	}
	website.Finalizers = left
}

// edit changes an object if it is there.
func edit[T runtime.Object](
	s *story, tracker *fakes.Tracker, resource schema.GroupVersionResource, name string,
	change func(T),
) {
	object, err := tracker.Get(resource, namespace, name)
	if err != nil {
		s.ignore(err)
		return
	}
	changed := object.DeepCopyObject().(T)
	change(changed)
	s.ignore(tracker.Update(resource, changed, namespace))
}

// ignore fails the test if there is another error than that an object is not there.
func (s *story) ignore(err error) {
	s.t.Helper()
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Error(err)
	}
}

func (s *story) deleteChild(resource, name string) {
	for _, gvr := range []schema.GroupVersionResource{
		configMapsResource, servicesResource, deploymentsResource,
	} {
		if gvr.Resource == resource {
			s.ignore(s.KubeTracker.Delete(gvr, namespace, name))
		}
	}
}

func (s *story) editChildren(name string) {
	edit(s, s.KubeTracker, configMapsResource, name, func(configMap *corev1.ConfigMap) {
		if metav1.GetControllerOf(configMap) != nil {
			configMap.Data = nil
		}
	})
	edit(s, s.KubeTracker, servicesResource, name, func(service *corev1.Service) {
		service.Labels, service.Spec.Selector = nil, nil
	})
	edit(s, s.KubeTracker, deploymentsResource, name, func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Annotations = nil
	})
}

// foreign creates a ConfigMap of that name unless there is one.
func (s *story) foreign(name string) {
	err := s.KubeTracker.Create(configMapsResource, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Data:       map[string]string{meaning.ContentKey: "secret"},
	}, namespace)
	if !apierrors.IsAlreadyExists(err) {
		s.ignore(err)
	}
}

func (s *story) failRequests() {
	verb := []string{"create", "update", "patch", "get"}[s.random.IntN(4)]
	err := []error{
		apierrors.NewInternalError(errors.New("injected")),
		apierrors.NewConflict(schema.GroupResource{}, "", errors.New("injected")),
		apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("injected")),
	}[s.random.IntN(3)]
	for _, resource := range []string{"websites", "configmaps", "services", "deployments"} {
		s.Fail(verb, resource, s.random.IntN(5), err)
	}
}

// all returns the objects of a resource, by name.
func all[T metav1.Object](
	s *story, tracker *fakes.Tracker, resource schema.GroupVersionResource, kind string,
) map[string]T {
	s.t.Helper()
	list, err := tracker.List(resource, resource.GroupVersion().WithKind(kind), namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		s.t.Fatal(err)
	}
	objects := map[string]T{}
	for _, item := range items {
		object := item.(T)
		objects[object.GetName()] = object
	}
	return objects
}

func (s *story) allWebsites() map[string]*v1alpha1.Website {
	return all[*v1alpha1.Website](s, s.tracker, websitesResource, "Website")
}

func (s *story) allConfigMaps() map[string]*corev1.ConfigMap {
	return all[*corev1.ConfigMap](s, s.KubeTracker, configMapsResource, "ConfigMap")
}

func (s *story) allServices() map[string]*corev1.Service {
	return all[*corev1.Service](s, s.KubeTracker, servicesResource, "Service")
}

func (s *story) allDeployments() map[string]*appsv1.Deployment {
	return all[*appsv1.Deployment](s, s.KubeTracker, deploymentsResource, "Deployment")
}

// collectGarbage deletes what belongs to Websites that are gone.
func (s *story) collectGarbage() {
	live := map[types.UID]bool{}
	for _, website := range s.allWebsites() {
		live[website.UID] = true
	}
	collect := func(resource schema.GroupVersionResource, object metav1.Object) {
		if owner := metav1.GetControllerOf(object); owner != nil && !live[owner.UID] {
			s.ignore(s.KubeTracker.Delete(resource, namespace, object.GetName()))
		}
	}
	for _, object := range s.allConfigMaps() {
		collect(configMapsResource, object)
	}
	for _, object := range s.allServices() {
		collect(servicesResource, object)
	}
	for _, object := range s.allDeployments() {
		collect(deploymentsResource, object)
	}
}

// rollOutAll makes all replicas available, as the Deployment controller would.
func (s *story) rollOutAll() {
	for name, deployment := range s.allDeployments() {
		n := *deployment.Spec.Replicas
		status := appsv1.DeploymentStatus{
			Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		}
		if equality.Semantic.DeepEqual(deployment.Status, status) {
			continue // no event
		}
		edit(s, s.KubeTracker, deploymentsResource, name,
			func(deployment *appsv1.Deployment) { deployment.Status = status })
	}
}

// checkAlways checks what holds at any time.
func (s *story) checkAlways() {
	s.t.Helper()
	live := map[string]bool{}
	for _, website := range s.allWebsites() {
		live[string(website.UID)] = true
	}
	for uid, url := range s.urls() {
		if !live[uid] {
			s.t.Errorf("the registry knows %s as %s, and nobody else knows it any more", uid, url)
		}
	}
	for name, configMap := range s.allConfigMaps() {
		if metav1.GetControllerOf(configMap) == nil && configMap.Data[meaning.ContentKey] != "secret" {
			s.t.Errorf("the ConfigMap %s of somebody else has %v", name, configMap.Data)
		}
	}
}

// heal ends all that keeps Websites from being served. The registry comes last: nobody but the
// controller tells the controller of that.
func (s *story) heal() {
	for name, configMap := range s.allConfigMaps() {
		if metav1.GetControllerOf(configMap) == nil {
			s.ignore(s.KubeTracker.Delete(configMapsResource, namespace, name))
		}
	}
	for name := range s.allWebsites() {
		s.changeAny(name, release)
	}
	s.settle()
	s.registry.fail(nil)
	s.settle()
}

// settle waits until nothing is left to do but for somebody else to recover.
func (s *story) settle() {
	for range 3 { // what is rolled out, or collected, may let something new be made
		s.wait(time.Minute)
		s.collectGarbage()
		s.rollOutAll()
	}
	s.wait(15 * time.Minute) // longer than a resync
}

// checkEnd checks that all Websites are served and registered, and that nothing is left to do.
func (s *story) checkEnd() {
	s.t.Helper()
	websites, known := s.allWebsites(), s.urls()
	configMaps, services, deployments := s.allConfigMaps(), s.allServices(), s.allDeployments()
	if n := len(websites); len(known) != n || len(configMaps) != n || len(services) != n ||
		len(deployments) != n {
		s.t.Fatalf("got %d Websites, %d registered, %d ConfigMaps, %d Services, %d Deployments",
			n, len(known), len(configMaps), len(services), len(deployments))
	}
	for name, website := range websites {
		url := fmt.Sprintf("http://%s.default.svc:%d", name, website.Spec.Port)
		if known[string(website.UID)] != url || website.Status.RegisteredURL != url {
			s.t.Errorf("%s: registered as %q, status %+v", name, known[string(website.UID)], website.Status)
		}
		if got := configMaps[name].Data[meaning.ContentKey]; got != website.Spec.Content {
			s.t.Errorf("%s: content %q, want %q", name, got, website.Spec.Content)
		}
		for _, condition := range []string{"Ready", "Registered"} {
			got := meta.FindStatusCondition(website.Status.Conditions, condition)
			if got == nil || got.Status != "True" || got.ObservedGeneration != website.Generation {
				s.t.Errorf("%s: generation %d, %s: %v", name, website.Generation, condition, got)
			}
		}
	}
	s.writes("*", "*")
	s.registry.restart()
	s.wait(time.Hour)
	if got := s.writes("*", "*"); got > 0 {
		s.t.Errorf("writes in an idle hour: got %d, want 0", got)
	}
	if got := s.urls(); !maps.Equal(got, known) {
		s.t.Errorf("after the registry has lost its state, it knows %v, want %v", got, known)
	}
}
