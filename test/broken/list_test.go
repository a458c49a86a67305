package broken

// broken lists ways to break the controller: in file, the one place that reads old reads new
// instead. All of the tests must fail then.
var broken = []struct {
	name, file, old, new string
	tests                []string
}{
	{"1: another count", "deployment.go", "new(*foo.Spec.Replicas)", "new(*foo.Spec.Replicas + 1)",
		[]string{"TestNewFooGetsItsDeployment", "TestScaledFooScalesItsDeployment"}},
	{"2: no status", "writes.go", "if equality.Semantic.DeepEqual(foo.Status, desired) {",
		"if true || equality.Semantic.DeepEqual(foo.Status, desired) {",
		[]string{"TestStatusSaysWhatTheDeploymentHas", "TestExampleFooWorks"}},
	{"2: always Ready", "deployment.go", "if rolledOut(deployment) {", "if true {",
		[]string{"TestFooIsNotReadyWhileItsDeploymentIsNot", "TestPausedDeploymentIsReportedWhenItIsBehind"}},
	{"2: Ready too early", "deployment.go", "status.Replicas == desired &&\n\t\tstatus.UpdatedReplicas == desired &&\n\t\tstatus.AvailableReplicas == desired",
		"status.UpdatedReplicas >= desired", []string{"TestReadyIsNeverClaimedTooEarly"}},
	{"3: the count is set once", "deployment.go", "if foo.Spec.Replicas != nil {",
		"if foo.Spec.Replicas != nil && deployment.Spec.Replicas == nil {",
		[]string{"TestScaledFooScalesItsDeployment", "TestChangedImageAndCountAreRepaired"}},
	{"4: an absent count is 1", "deployment.go", "template := &deployment.Spec.Template\n",
		"if foo.Spec.Replicas == nil {\n\t\tdeployment.Spec.Replicas = new(int32(1))\n\t}\n" +
			"\ttemplate := &deployment.Spec.Template\n",
		[]string{"TestCountIsLeftToOthersWhenReplicasAreAbsent"}},
	{"5: the image is not repaired", "deployment.go", "container.Image = containerImage",
		"if container.Image == \"\" {\n\t\tcontainer.Image = containerImage\n\t}",
		[]string{"TestChangedImageAndCountAreRepaired"}},
	{"5: all labels are replaced", "deployment.go",
		"metav1.SetMetaDataLabel(&deployment.ObjectMeta, managedByLabel, controllerName)",
		"deployment.Labels = map[string]string{managedByLabel: controllerName}",
		[]string{"TestWhatOthersWroteToTheDeploymentSurvives"}},
	{"6: deletions are not noticed", "controller.go", "c.handleObject(deleted.OptionalObj)",
		"_ = deleted.OptionalObj", []string{"TestDeletedDeploymentComesBack"}},
	{"7: it makes something for a Foo that is gone", "controller.go", "c.deploymentWrites.forget(key)",
		"c.deploymentWrites.forget(key)\n\t\tghost := &v1alpha1.Foo{}\n" +
			"\t\tghost.Spec.DeploymentName = key.Name + \"-ghost\"\n" +
			"\t\tghost.Name, ghost.Namespace, ghost.UID = key.Name, key.Namespace, \"ghost\"\n" +
			"\t\t_ = c.createDeployment(ctx, ghost)",
		[]string{"TestFooDeletedInBackgroundTakesItsDeploymentAlong",
			"TestFooDeletedInForegroundTakesItsDeploymentAlong"}},
	{"8: the old one goes at once", "controller.go", "if rolledOut(observed) {", "if true {",
		[]string{"TestOldDeploymentStaysWhileTheNewOneIsNotAvailable"}},
	{"8: the old one stays", "controller.go", "if rolledOut(observed) {", "if false {",
		[]string{"TestRenamedDeploymentIsReplacedWhenTheNewOneIsAvailable"}},
	{"9: it takes over", "writes.go", "if !metav1.IsControlledBy(observed, foo) {", "if false {",
		[]string{"TestForeignDeploymentIsNeverTouched"}},
	{"9: no event", "writes.go", "c.recordFailure(foo, desired)", "",
		[]string{"TestForeignDeploymentIsNeverTouched"}},
	{"10: the second steals", "controller.go", "if !metav1.IsControlledBy(observed, foo) {",
		"if false {", []string{"TestSecondFooWithADeploymentNameWaitsForTheFirst"}},
	{"11: the name is the selector", "deployment.go", "string(foo.UID)", "foo.Name",
		[]string{"TestFooWithTheLongestNameWorks"}},
	{"13, 14: the status is always written", "writes.go",
		"equality.Semantic.DeepEqual(foo.Status, desired)", "equality.Semantic.DeepEqual(foo.Status, nil)",
		[]string{"TestNothingIsRequestedWhileNothingChanges", "TestRestartWritesNothing"}},
	{"15: the label is not put back", "writes.go", "return c.updateDeployment(ctx, foo, desired)\n}",
		"_ = desired\n\treturn nil\n}", []string{"TestRemovedManagedByLabelIsPutBack"}},
	{"15: a released one is taken back", "controller.go",
		"if !metav1.IsControlledBy(observed, foo) {", "if false {",
		[]string{"TestDeploymentThatLostItsOwnerIsLeftAlone"}},
	{"15: nothing tells that it is paused", "deployment.go", "if deployment.Spec.Paused {", "if false {",
		[]string{"TestPausedDeploymentIsReportedWhenItIsBehind"}},
	{"16: it fails with 0", "main.go", "os.Exit(1)", "os.Exit(0)",
		[]string{"TestProgramThatCannotWorkSaysWhatToDo"}},
	{"17: the Lease is kept", "leader.go", `record.HolderIdentity = ""`, "",
		[]string{"TestStoppedLeaderFreesTheLeaseAtOnce", "TestStandbyTakesOverFromAStoppedLeader"}},
	{"17: the Lease lasts longer", "leader.go", "LeaseDuration: o.leaseDuration",
		"LeaseDuration: 30 * time.Second", []string{"TestStandbyTakesOverFromAKilledLeader"}},
	{"18: it asks for more than it may", "writes.go", "if equality.Semantic.DeepEqual(foo.Status, desired) {",
		"_, _ = c.kubeClient.CoreV1().Secrets(foo.Namespace).Get(ctx, \"x\", metav1.GetOptions{})\n" +
			"\tif equality.Semantic.DeepEqual(foo.Status, desired) {",
		[]string{"TestDeployedControllerUsesExactlyItsPermissions"}},
}
