package main

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var runMutants = flag.Bool("mutants", false, "run the tests against every mutant; takes minutes")

// mutants are small changes that break the controller, each with the test that must notice. In
// file, the one place that reads old, but for spaces and ends of lines, is made to read new.
var mutants = []struct{ name, file, old, new, test string }{
	{"another image", "deployment.go", "container.Image = containerImage", `container.Image = "other"`,
		"TestChangedDeploymentIsRepaired"},
	{"another count", "deployment.go", "new(desiredReplicas(foo.Spec.Replicas))",
		"new(desiredReplicas(foo.Spec.Replicas) + 1)", "TestNewFooGetsItsDeployment"},
	{"an absent count is left to others", "deployment.go",
		"deployment.Spec.Replicas = new(desiredReplicas(foo.Spec.Replicas))",
		"if foo.Spec.Replicas != nil {\n\t\tdeployment.Spec.Replicas = new(*foo.Spec.Replicas)\n\t}",
		"TestAbsentReplicasAreOne"},
	{"the owner is not named", "deployment.go",
		"OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, fooKind)},", "",
		"TestNewFooGetsItsDeployment"},
	{"the Foo's name is the selector", "deployment.go", "string(foo.UID)", "foo.Name",
		"TestSelectorIsValidForTheLongestFooName"},
	{"all containers are replaced", "deployment.go", "container := containerNamed",
		"template.Spec.Containers = nil\n\tcontainer := containerNamed",
		"TestWhatOthersWroteSurvivesAScale"},
	{"all labels are replaced", "deployment.go", "metav1.SetMetaDataLabel(&deployment.ObjectMeta, ",
		"deployment.Labels = nil\n\tmetav1.SetMetaDataLabel(&deployment.ObjectMeta, ",
		"TestWhatOthersWroteSurvivesAScale"},
	{"an old status counts", "deployment.go", "status.ObservedGeneration >= deployment.Generation", "true",
		"TestReadyCondition"},
	{"any reason is passed on", "deployment.go", "!conditionReason.MatchString(reason)", "false",
		"FuzzWhatIsWritten"},
	{"long messages stay long", "deployment.go", "if len(message) > maxMessage {", "if false {",
		"FuzzWhatIsWritten"},
	{"control characters stay", "deployment.go", "message = strings.Map(printable, message)", "",
		"FuzzWhatIsWritten"},
	{"a character is cut in two", "deployment.go",
		"strings.ToValidUTF8(message[:maxMessage-len(\"...\")], \"\")", "message[:maxMessage-len(\"...\")]",
		"FuzzWhatIsWritten"},
	{"each status is a transition", "deployment.go", "meta.SetStatusCondition(&status.Conditions, ready)",
		"meta.RemoveStatusCondition(&status.Conditions, ready.Type)\n" +
			"\tmeta.SetStatusCondition(&status.Conditions, ready)",
		"TestTransitionTimeChangesWithTheStatusOnly"},

	{"new Foos are not noticed", "controller.go", "AddFunc:    c.enqueueFoo,", "",
		"TestNewFooGetsItsDeployment"},
	{"changed Foos are not noticed", "controller.go",
		"UpdateFunc: func(_, foo *v1alpha1.Foo) { c.enqueueFoo(foo) },", "",
		"TestScaledFooScalesItsDeployment"},
	{"changed Deployments are not noticed", "controller.go",
		"UpdateFunc: func(_, deployment *appsv1.Deployment) { c.handleObject(deployment) },", "",
		"TestStatusFollowsTheDeployment"},
	{"deleted Deployments are not noticed", "controller.go", "c.handleObject(deleted.OptionalObj)",
		"_ = deleted.OptionalObj", "TestDeletedDeploymentComesBack"},
	{"tombstones are not noticed", "controller.go", "if deleted.OptionalObj != nil {",
		"if deleted.FinalStateUnknown == nil {", "TestMissedDeletionIsNoticed"},
	{"a tombstone is always opened", "controller.go", "if deleted.OptionalObj != nil {", "if true {",
		"FuzzHandleObject"},
	{"any Foo is an owner", "controller.go", "gv.Group == fooKind.Group", `gv.Group != ""`,
		"FuzzHandleObject"},
	{"any owner of that group is a Foo", "controller.go", " && owner.Kind == fooKind.Kind", "",
		"FuzzHandleObject"},
	{"waiting Foos are not noticed", "controller.go", "range foos {", "range foos[:0] {",
		"TestSecondFooTakesOverWhenTheFirstGoes"},
	{"workers are not awaited", "controller.go", "\t\twg.Wait()\n", "",
		"TestShutdownFinishesWhatHasBegunAndNoMore"},
	{"a shutdown empties the queue first", "controller.go", "for ctx.Err() == nil && c.process",
		"for c.process", "TestShutdownFinishesWhatHasBegunAndNoMore"},
	{"a shutdown cancels what has begun", "controller.go", "context.WithoutCancel(ctx), syncTimeout",
		"ctx, syncTimeout", "TestShutdownFinishesWhatHasBegunAndNoMore"},
	{"errors are not retried", "controller.go",
		"\"retries\", c.queue.NumRequeues(key))\n\t\tc.queue.AddRateLimited(key)",
		"\"retries\", c.queue.NumRequeues(key))", "TestTransientErrorsAreRetried"},
	{"the backoff is never reset", "controller.go", "c.queue.Forget(key)", "",
		"TestBackoffStartsAgainAfterASuccess"},
	{"conflicts are reported", "controller.go", "case apierrors.IsConflict(err):", "case false:",
		"TestConflictIsRetriedQuietly"},
	{"the cache is trusted at once", "controller.go",
		"!c.fooWrites.seen(key) || !c.deploymentWrites.seen(key)", "false",
		"TestLaggingInformerCausesNoWriteOfItsOwn"},
	{"a stale key is dropped", "controller.go", "c.queue.AddAfter(key, writeCheck)\n\t\treturn nil",
		"return nil", "TestDeploymentThatNoWatchEverShowedComesBack"},
	{"Foos that are being deleted are synced", "controller.go",
		"if foo.DeletionTimestamp != nil {", "if false {", "TestNothingIsMadeForAFooThatIsBeingDeleted"},
	{"Foos that are being deleted are forgotten", "controller.go",
		"return c.syncStatusOnly(ctx, foo)", "return nil",
		"TestStatusOfAFooThatIsBeingDeletedStaysTrue"},
	{"a scale that nobody follows looks ready", "writes.go",
		"if observed.DeletionTimestamp == nil && !equality.Semantic.DeepEqual(observed, desired) {",
		"if false {", "TestStatusOfAFooThatIsBeingDeletedStaysTrue"},
	{"a Deployment of others counts for a Foo that is being deleted", "writes.go",
		"err != nil || !metav1.IsControlledBy(observed, foo)", "err != nil",
		"TestOrphanDoesNotCountForAFooThatIsBeingDeleted"},
	{"a Deployment is made again for a Foo that is gone", "writes.go",
		"if apierrors.IsNotFound(err) {\n\t\treturn true, nil", "if apierrors.IsNotFound(err) {\n\t\treturn false, nil",
		"TestDeploymentOfAFooThatIsGoneIsNotMadeAgain"},
	{"visible foreign Deployments are taken over", "controller.go",
		"!metav1.IsControlledBy(observed, foo)", "false", "TestForeignDeploymentIsNotTouched"},
	{"Deployments are always updated", "controller.go",
		"equality.Semantic.DeepEqual(observed, desired)", "equality.Semantic.DeepEqual(observed, nil)",
		"TestSteadyStateWritesNothing"},
	{"the old Deployment stays", "controller.go", "err := c.deleteOtherDeployments(ctx, foo)",
		"err := error(nil)", "TestRenamedFooMovesItsDeployment"},
	{"the old Deployment goes at once", "controller.go", "if rolledOut(observed) {", "if true {",
		"TestRenamedFooMovesItsDeployment"},

	{"a write without an event is forgotten", "writes.go",
		"if c.deploymentWrites.pending(key) {", "if false {",
		"TestDeploymentThatNoWatchEverShowedComesBack"},
	{"a write that a sync has seen is looked at again", "writes.go",
		"if c.deploymentWrites.pending(key) {", "if true {",
		"TestWriteIsLookedAtOnceMoreIfNoSyncHasSeenIt"},
	{"unseen foreign Deployments are taken over", "writes.go",
		"if !metav1.IsControlledBy(observed, foo)", "if false", "TestForeignDeploymentIsNotTouched"},
	{"a taken name is not tried again", "writes.go",
		"c.queue.AddAfter(cache.MetaObjectToName(foo), slowRetry)\n\t\treturn c.reportNameTaken", "return c.reportNameTaken",
		"TestFooProceedsWhenTheForeignDeploymentGoes"},
	{"a refused Deployment is not tried again", "writes.go",
		"c.queue.AddAfter(cache.MetaObjectToName(foo), slowRetry)\n\t\tready", "ready",
		"TestRefusedDeploymentIsReportedOnce"},
	{"a refusal is retried like an error", "writes.go",
		"case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):",
		"case false:", "TestRefusedDeploymentIsReportedOnce"},
	{"a terminating namespace is an error", "writes.go",
		", apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)", "",
		"TestTerminatingNamespaceIsNoError"},
	{"a lost label stays lost", "writes.go", "setOwnedFields(desired, foo)\n\treturn c.updateDeployment(ctx, foo, desired)",
		"_ = desired\n\treturn nil", "TestRemovedLabelIsPutBack"},
	{"a Deployment that is being deleted is repaired", "controller.go",
		"if observed.DeletionTimestamp == nil {", "if true {", "TestTerminatingDeploymentIsNotRepaired"},
	{"an update that met nothing is forgotten", "writes.go",
		"case deployment != nil && apierrors.IsNotFound(err):", "case false:",
		"TestDeploymentThatGoesWhileItsLabelIsPutBackIsLookedAtAgain"},
	{"the status is always written", "writes.go", "equality.Semantic.DeepEqual(foo.Status, desired)",
		"equality.Semantic.DeepEqual(foo.Status, nil)", "TestSteadyStateWritesNothing"},
	{"the status of an older Foo is written", "writes.go", "updated.Status = desired",
		"updated.Status, updated.ResourceVersion = desired, \"\"",
		"TestFooOfTheSameNameDoesNotInheritAStatus"},
	{"the status is written into the cache", "writes.go", "updated := foo.DeepCopy()",
		"updated := foo", "TestForeignDeploymentIsNotTouched"},
	{"each status makes an event", "writes.go", "before != nil && before.Reason == ready.Reason",
		"false", "TestForeignDeploymentIsNotTouched"},

	{"a write is seen at once", "consistency.go", "order < 0", "order < -1",
		"TestWriteIsSeenWhenTheStoreHasItsVersion"},
	{"a lost write blocks for ever", "consistency.go", "&& time.Since(write.at) < maxStaleness", "",
		"TestStoreThatNeverCatchesUpDoesNotBlockForEver"},
	{"events are not flushed", "events.go", "\t\tr.pending.Wait()\n", "",
		"TestFlushWaitsForTheEventsUnderWay"},
	{"events of a burst are dropped", "events.go", "\t\tr.queue.Add(object.(*eventsv1.Event))\n",
		"\t\tr.queue.Add(object.(*eventsv1.Event))\n\t\ttime.Sleep(500 * time.Millisecond)\n",
		"TestNoEventOfABurstIsLost"},
	{"flushing has no end", "events.go", "case <-time.After(timeout):", "case <-time.After(time.Hour):",
		"TestFlushDoesNotWaitForEver"},
	{"the Lease is released too early", "leader.go", "context.WithCancel(context.WithoutCancel(ctx))",
		"context.WithCancel(ctx)", "TestLeaseIsHeldUntilTheWorkIsDone"},
	{"the Lease is not released", "leader.go", `record.HolderIdentity = ""`, "",
		"TestLeaseIsHeldUntilTheWorkIsDone"},
	{"the Lease is released before a lost leader ends", "leader.go", "Callbacks: callbacks,",
		"ReleaseOnCancel: true, Callbacks: callbacks,", "TestLeaderOfAHangingServerEndsBeforeItsLease"},
	{"a lost Lease is ignored", "leader.go", "if working.Load() || ctx.Err() == nil {", "if false {",
		"TestLostLeaseIsAnError"},
	{"a standby does not stop", "leader.go", "if !elector.IsLeader() {", "if false {",
		"TestStandbyWaitsAndStops"},
	{"--namespace is ignored", "main.go", "fooinformers.WithNamespace(o.namespace),", "",
		"TestNamespaceFlagNarrowsTheWatch"},
	{"a missing permission is retried for ever", "main.go", "case apierrors.IsForbidden(err):",
		"case false:", "TestForbiddenWatchEndsTheProcess"},
	{"a permission that is missing for a moment ends it", "main.go", "synced.Load() && ", "false && ",
		"TestForbiddenWatchEndsTheProcess"},
	{"a missing CRD is an error like others", "clients.go", "case apierrors.IsNotFound(err):",
		"case false:", "TestStartFailsWithWhatToDo"},
	{"not ready looks ready", "serve.go", "http.StatusServiceUnavailable", "http.StatusOK",
		"TestReadyzFollowsItsCheck"},
	{"any port in use is a riddle", "serve.go", "syscall.EADDRINUSE", "syscall.ENOENT",
		"TestPortInUseSaysWhatToDo"},
	{"any token will do", "metrics.go", "if !who.Status.Authenticated {", "if false {",
		"TestMetricsAreForThoseWhoMayGetThem"},
	{"any user will do", "metrics.go", "!may.Status.Allowed", "may == nil",
		"TestMetricsAreForThoseWhoMayGetThem"},
	{"the user's groups are forgotten", "metrics.go", "Groups: user.Groups, ", "",
		"TestMetricsAreForThoseWhoMayGetThem"},
	{"metrics are for all while the API server is down", "metrics.go",
		"return http.StatusServiceUnavailable, err", "return http.StatusOK, err",
		"TestNobodyReadsMetricsWhileTheAPIServerIsDown"},
	{"every scrape asks the API server", "metrics.go", "g.decisions.Set(key, code, decisionTTL)",
		"", "TestDecisionsHoldForTenSeconds"},
	{"a decision holds too long", "metrics.go", "decisionTTL = 10 *", "decisionTTL = 30 *",
		"TestDecisionsHoldForTenSeconds"},
	{"a scrape waits for ever", "metrics.go", "decisionTimeout = 5 *", "decisionTimeout = 50 *",
		"TestAPIServerThatHangsDoesNotHoldAScrapeForEver"},
	{"the API server is asked about no token", "metrics.go", `if token == "" {`, "if false {",
		"TestStrangersDoNotReachTheAPIServer"},
	{"the API server is asked without a limit", "metrics.go", "!g.limit.TryAccept()", "false",
		"TestStrangersDoNotReachTheAPIServer"},
	{"secure metrics are plain", "metrics.go", "if !o.secureMetrics() {", "if true {",
		"TestSecureMetricsAreEncryptedAndGuarded"},
	{"secure metrics are unguarded", "metrics.go", "newGuard(reviews, mux)", "mux",
		"TestSecureMetricsAreEncryptedAndGuarded"},
	{"metrics are served over HTTP/2", "metrics.go", "&tls.Config{",
		`&tls.Config{NextProtos: []string{"h2"}, `, "TestSecureMetricsAreEncryptedAndGuarded"},
	{"any address is plain", "flags.go", `return host != "localhost" && `, "return false && ",
		"TestMetricsAreSecureButOnALoopbackAddress"},
	{"a renewed certificate is not read", "metrics.go", "return read, err",
		"first, err := read(nil)\n\treturn func(*tls.ClientHelloInfo) (*tls.Certificate, error) " +
			"{ return first, err }, err", "TestRenewedCertificateIsServed"},
	{"bad flags are accepted", "flags.go", "case o.workers < 1:", "case false:",
		"TestBadFlagsAreRefusedWithOneLine"},
}

// TestMutants checks that each mutant can still be made, and with -mutants, that the test that it
// names fails on it.
func TestMutants(t *testing.T) {
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			source, err := os.ReadFile(mutant.file)
			if err != nil {
				t.Fatal(err)
			}
			old := anySpacing(mutant.old)
			if n := len(old.FindAllIndex(source, -1)); n != 1 {
				t.Fatalf("%s has %d places that read %q, want 1", mutant.file, n, mutant.old)
			}
			if *runMutants {
				t.Parallel()
				changed := old.ReplaceAllLiteral(source, []byte(mutant.new))
				killMutant(t, mutant.file, changed, mutant.test)
			}
		})
	}
}

// anySpacing matches code however gofmt breaks its lines, which depends on how long the names are.
func anySpacing(code string) *regexp.Regexp {
	words := strings.Fields(code)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// killMutant runs one test with file replaced by changed, and expects it to fail.
func killMutant(t *testing.T, file string, changed []byte, test string) {
	t.Helper()
	dir := t.TempDir()
	mutated := filepath.Join(dir, file)
	original, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	err = errors.Join(
		os.WriteFile(mutated, changed, 0o600), os.WriteFile(overlayFile, overlay, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("go", "test", "-vet=off", "-overlay", overlayFile, "-run", "^"+test+"$",
		"-timeout", "1m", ".").CombinedOutput()
	output := string(text)
	// A controller that never comes to rest keeps its bubble busy. Such a test takes a second else.
	restless := strings.Contains(output, "panic: test timed out") &&
		strings.Contains(output, "synctest bubble")
	switch {
	case err == nil:
		t.Errorf("survived %s", test)
	case strings.Contains(output, "[build failed]"):
		t.Errorf("does not compile:\n%s", output)
	case !restless && !strings.Contains(output, "--- FAIL: "+test+" "):
		t.Errorf("%s did not fail, something else did:\n%s", test, output)
	}
}
