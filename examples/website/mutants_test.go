package main

import (
	"testing"

	"example.com/sample-controller/internal/mutants"
)

func TestMutants(t *testing.T) { mutants.Check(t, mutantList) }

// mutantList has small changes that break the controller. Those of the package owned are in the
// list of the root. To try them all, in minutes:
//
//	go -C examples test ./website -run TestMutants -mutants
var mutantList = []mutants.Mutant{
	{"the content is not the page", "meaning/children.go",
		"configMap.Data[ContentKey] = website.Spec.Content", "", "./TestChangedContentRollsTheDeployment"},
	{"the Pods do not notice new content", "meaning/children.go", "[]byte(website.Spec.Content)",
		"[]byte(website.Name)", "./TestChangedContentRollsTheDeployment"},
	{"all keys of the ConfigMap are replaced", "meaning/children.go", "if configMap.Data == nil {",
		"if true {", "./TestChangedChildrenAreRepaired"},
	{"a node port is taken away", "meaning/children.go",
		"port.NodePort = service.Spec.Ports[0].NodePort", "", "./TestChangedChildrenAreRepaired"},
	{"the Service selects nothing", "meaning/children.go",
		"service.Spec.Selector = podLabels(website)", "", "./TestChangedChildrenAreRepaired"},
	{"all of a volume is replaced", "meaning/children.go", "if volume.ConfigMap == nil {", "if true {",
		"./TestWhatOthersWroteSurvives"},
	{"an absent count is none", "meaning/children.go", "return defaultReplicas", "return 0",
		"./TestWebsiteThatNamesNoDefaultsIsServed"},
	{"the Deployment comes before what it mounts", "children.go",
		"{configMaps, services, deployments}", "{deployments, configMaps, services}",
		"TestConfigMapOfSomebodyElseIsNeitherChangedNorMounted"},

	{"nothing holds a Website", "registration.go",
		"if finalizer.Has(website, registryFinalizer) {\n\t\treturn website, nil",
		"if true {\n\t\treturn website, nil", "TestDeletedWebsiteIsDeregisteredBeforeItGoes"},
	{"a Website is registered before something holds it", "controller.go",
		"return c.syncWebsite(ctx, website)",
		"_ = c.put(ctx, website, \"http://web\")\n\treturn c.syncWebsite(ctx, website)",
		"TestNothingIsRegisteredWithoutFinalizer"},
	{"a Website goes although the registry knows it", "registration.go",
		"err := c.registry.Delete(ctx, string(website.UID))\n\t\tif err == nil {",
		"err := c.registry.Delete(ctx, string(website.UID))\n\t\tif true {",
		"TestRegistryThatIsDownHoldsADeletedWebsite"},
	{"a deregistration is not retried", "registration.go", "return registryErr",
		"_ = registryErr\n\treturn nil", "TestRegistryThatIsDownHoldsADeletedWebsite"},
	{"a registration is not retried", "controller.go", "return registryErr",
		"_ = registryErr\n\treturn nil", "TestRegistryThatIsDownStopsNothingElse"},
	{"a message varies", "registration.go",
		`"The registry did not accept the Website; the log of the controller says why"`, "err.Error()",
		"TestRegistryThatIsDownStopsNothingElse"},
	{"the generation that is registered is not noted", "registration.go",
		"meaning.SetCondition(website, status, meaning.Registered(status.URL))\n\treturn nil",
		"if !ok {\n\t\tmeaning.SetCondition(website, status, meaning.Registered(status.URL))\n\t}\n" +
			"\treturn nil",
		"TestUnchangedWebsiteIsNotRegisteredAgain"},
	{"a registry that is down keeps the status from being written", "controller.go",
		"registryErr := c.register(ctx, website, &status)",
		"registryErr := c.register(ctx, website, &status)\n\tif registryErr != nil {\n" +
			"\t\treturn registryErr\n\t}", "TestRegistryThatIsDownStopsNothingElse"},
	{"a new URL is not registered", "registration.go", "status.RegisteredURL != status.URL || ", "",
		"TestChangedPortIsRegistered"},
	{"each sync registers", "registration.go", "if !ok || status", "if ok || !ok || status",
		"TestUnchangedWebsiteIsNotRegisteredAgain"},
	{"a request that has failed has changed nothing", "registration.go", "c.due.Delete(key)", "",
		"TestURLThatComesBackIsRegisteredAgain"},
	{"a Website is registered only once", "registration.go",
		"time.AfterFunc(delay, func() { c.queue.Add(key) })", "",
		"TestRegistryThatHasLostItsStateIsToldAgain"},
	{"the queue keeps the time of the resync", "registration.go",
		"time.AfterFunc(delay, func() { c.queue.Add(key) })", "c.queue.AddAfter(key, delay)",
		"TestSyncInBetweenDoesNotPutOffTheResync"},
	{"a Website that somebody holds looks registered", "registration.go",
		`status.RegisteredURL = ""`, "", "TestWebsiteThatSomebodyElseHoldsIsNotRegisteredAgain"},
	{"a Website that is being deleted gets children", "controller.go",
		"if website.DeletionTimestamp != nil {", "if false {",
		"TestWebsiteThatSomebodyElseHoldsIsNotRegisteredAgain"},
	{"the status is written each time", "status.go",
		"if equality.Semantic.DeepEqual(website.Status, desired) {",
		"if false && equality.Semantic.DeepEqual(website.Status, desired) {",
		"TestIdleHourWritesNothing"},
	{"each status is a failure", "meaning/status.go", "failed && !same", "failed && (!same || true)",
		"./TestRegistryThatIsDownStopsNothingElse"},
	{"old content counts", "meaning/status.go", "status.UpdatedReplicas == desired &&", "",
		"TestReadyCondition"},
	{"the log names another event", "controller.go", `website, "Website updated"`,
		`website, "Website added"`, "TestLogTellsTheWayOfAWebsite"},
	{"a later time is not logged", "registration.go", "V(5)", "V(6)",
		"TestLogTellsTheWayOfAWebsite"},
	{"the finalizer's write is not awaited", "registration.go",
		"c.websiteWrites.WroteAt(cache.MetaObjectToName(website), added.ResourceVersion)", "",
		"TestLaggingInformerCausesNoWriteOfItsOwn"},

	{"a registry that hangs is waited for", "sites/client.go", ", Timeout: timeout", "",
		"TestRegistryThatHangsIsGivenUp"},
	{"a refusal counts as success", "sites/client.go",
		"case response.StatusCode < 200 || response.StatusCode > 299:", "case false:",
		"TestRefusalIsAnErrorThatSaysWhy"},
	{"what is gone cannot be deleted", "sites/client.go",
		"case method == http.MethodDelete && response.StatusCode == http.StatusNotFound:", "case false:",
		"TestWhatIsNotThereNeedNotBeDeleted"},
}
