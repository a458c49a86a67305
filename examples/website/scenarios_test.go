package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/explore"
)

var (
	create = explore.Create(`
apiVersion: website.example.com/v1alpha1
kind: Website
metadata: {name: a}
spec: {content: hello, port: 80, replicas: 1}`)
	deleteWebsite = explore.Delete("websites/a")
	registryDown  = failRegistry("the registry is down", errDown)
	registryLoses = failRegistry("the registry's answers are lost", errLost)
	registryUp    = failRegistry("the registry is up", nil)
	take          = explore.Together("somebody else has the Service", explore.Delete("services/a"),
		explore.Create("{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}"))
	strip = explore.Mutate("websites", "no finalizers",
		func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	forget = explore.Step{Name: "the registry has lost its state",
		Do: func(w *explore.World) { w.Outside.(*fakeRegistry).restart() }}
)

func failRegistry(name string, err error) explore.Step {
	return explore.Step{Name: name, Do: func(w *explore.World) { w.Outside.(*fakeRegistry).fail(err) }}
}

// foreign returns a step that creates a ConfigMap that belongs to nobody.
func foreign(labels string) explore.Step {
	return explore.Create("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: " + labels +
		"}, data: {index.html: secret}}")
}

func change(spec string) explore.Step { return explore.Patch("websites/a", "spec: "+spec) }

func steps(steps ...explore.Step) []explore.Step { return steps }

var scenarios = []explore.Scenario{
	{Name: "create", Steps: steps(create), Begins: 1},
	{Name: "change",
		Steps: steps(create, change("{content: bye}"), change("{port: 81, replicas: 3}"))},
	{Name: "children", Steps: steps(create, explore.Delete("configmaps/a"),
		explore.Delete("services/a"), explore.Delete("deployments.apps/a"),
		explore.Patch("configmaps/a", "data: null"),
		explore.Patch("services/a", "metadata: {labels: null}"))},
	{Name: "taken", Steps: steps(foreign("{}"), create, explore.Delete("configmaps/a"))},
	{Name: "foreign", Steps: steps(foreign("{"+meaning.ManagedByLabel+": "+
		meaning.ControllerName+"}"), create, explore.Delete("configmaps/a"))},
	{Name: "terminating", Steps: steps(create, explore.Together("delete, which is held",
		explore.Patch("configmaps/a", "metadata: {finalizers: [example.com/held]}"),
		explore.Delete("configmaps/a")), change("{content: bye}"),
		explore.Patch("configmaps/a", "metadata: {finalizers: null}"))},
	{Name: "refused", Steps: steps(explore.Refuse("services"), create, explore.Accept("services"))},
	{Name: "lost", Steps: steps(create, take, explore.Delete("services/a"), take), EndVaries: true},
	{Name: "stripped", Steps: steps(strip, create)},
	{Name: "stripped later", Steps: steps(create, strip,
		explore.Patch("websites/a", "metadata: {annotations: {a: b}}"))},
	{Name: "war", Steps: steps(create, explore.Insist("services/a", "spec: {selector: {app: b}}"),
		explore.Relent)},
	{Name: "mirror", Steps: steps(explore.Mutate("deployments.apps", "another image",
		func(o *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = "mirror"
			_ = unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")
		}), create, change("{content: bye}"))},
	{Name: "namespace", Steps: steps(create, explore.Delete("namespaces/"+explore.Namespace))},
	{Name: "delete", Steps: steps(create, deleteWebsite)},
	{Name: "delete and create", Steps: steps(create, deleteWebsite, create)},
	{Name: "labelled and deleted", Steps: steps(create,
		explore.Patch("websites/a", "metadata: {labels: {a: b}}"), deleteWebsite)},
	{Name: "registry down", Steps: steps(registryDown, create, registryUp)},
	{Name: "registry down in the end", Steps: steps(create, registryDown, deleteWebsite, registryUp)},
	{Name: "registry loses answers",
		Steps: steps(registryLoses, create, change("{port: 81}"), registryUp)},
	{Name: "registry forgets", Steps: steps(create, forget)},
}

// problems returns what is wrong when everything is quiet: the registry knows all Websites that are
// served, and no others, and no Website is Ready with a ConfigMap of somebody else, or one that is being
// deleted.
func problems(now explore.State) (problems []string) {
	known := now.Outside.(*fakeRegistry).known()
	for _, website := range explore.List[v1alpha1.Website](now, "websites") {
		url := fmt.Sprintf("http://%s.%s.svc:%d", website.Name, website.Namespace, website.Spec.Port)
		got := known[string(website.UID)].URL
		delete(known, string(website.UID))
		configMap := explore.Get[corev1.ConfigMap](now, "configmaps", website.Name)
		if configMap != nil && (!metav1.IsControlledBy(configMap, website) || configMap.DeletionTimestamp != nil) {
			if meta.IsStatusConditionTrue(website.Status.Conditions, "Ready") {
				problems = append(problems, website.Name+" is Ready with a ConfigMap of somebody else, or one "+
					"that is being deleted")
			}
			continue
		}
		service := explore.Get[corev1.Service](now, "services", website.Name)
		if service == nil || !metav1.IsControlledBy(service, website) || len(website.Finalizers) == 0 {
			if got != "" || website.Status.RegisteredURL != "" {
				problems = append(problems, website.Name+" is registered without Service or finalizer")
			}
			continue
		}
		for _, condition := range []string{"Ready", "Registered"} {
			found := meta.FindStatusCondition(website.Status.Conditions, condition)
			if found == nil || found.Status != "True" || found.ObservedGeneration != website.Generation {
				problems = append(problems, fmt.Sprintf("%s is not %s", website.Name, condition))
			}
		}
		if got != url || configMap == nil || configMap.Data[meaning.ContentKey] != website.Spec.Content {
			problems = append(problems, fmt.Sprintf("%s: registered as %q, want %q; its content is in %v",
				website.Name, got, url, configMap))
		}
	}
	for _, entry := range known {
		problems = append(problems, "the registry still knows "+entry.URL)
	}
	return problems
}
