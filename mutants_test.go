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

// mutants are small changes that break the controller, each with the test that must notice, which is
// in the package of the file. There, the one place that reads old, but for spaces and ends of lines,
// is made to read new.
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
		"!c.fooWrites.Seen(key) || !c.deploymentWrites.Seen(key)", "false",
		"TestLaggingInformerCausesNoWriteOfItsOwn"},
	{"a stale key is dropped", "controller.go", "c.queue.AddAfter(key, staleRetryDelay)\n\t\treturn nil",
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
		"c.deploymentWrites.WroteAt(key, written.ResourceVersion)\n\tc.queue.AddAfter(key, staleRetryDelay)",
		"c.deploymentWrites.WroteAt(key, written.ResourceVersion)",
		"TestDeploymentThatNoWatchEverShowedComesBack"},
	{"unseen foreign Deployments are taken over", "writes.go",
		"if !metav1.IsControlledBy(observed, foo)", "if false", "TestForeignDeploymentIsNotTouched"},
	{"a taken name is not tried again", "writes.go",
		"c.queue.AddAfter(cache.MetaObjectToName(foo), blockedRetryDelay)\n\t\treturn c.reportNameTaken", "return c.reportNameTaken",
		"TestFooProceedsWhenTheForeignDeploymentGoes"},
	{"a refused Deployment is not tried again", "writes.go",
		"c.queue.AddAfter(cache.MetaObjectToName(foo), blockedRetryDelay)\n\t\tready", "ready",
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
	{"each status makes an event", "writes.go", "before != nil && before.Reason == ready.Reason",
		"false", "TestForeignDeploymentIsNotTouched"},

	{"a write is seen at once", "internal/consistency/consistency.go", "order < 0", "order < -1",
		"TestWriteIsSeenWhenTheStoreHasItsVersion"},
	{"a lost write blocks for ever", "internal/consistency/consistency.go",
		"&& time.Since(last.at) < maxStaleness", "", "TestStoreThatNeverCatchesUpDoesNotBlockForEver"},
	{"that there was a write is forgotten", "internal/consistency/consistency.go",
		"w.written.Insert(key)", "", "TestWriteIsRememberedUntilItsKeyIsCleared"},
	{"the last write of a deleted object is remembered", "internal/consistency/consistency.go",
		"delete(w.pending, key)\n\tw.written.Delete(key)", "w.written.Delete(key)",
		"TestWriteIsRememberedUntilItsKeyIsCleared"},
	{"events are not flushed", "internal/recorder/recorder.go", "\t\tr.pending.Wait()\n", "",
		"TestFlushWaitsForTheEventsUnderWay"},
	{"events of a burst are dropped", "internal/recorder/recorder.go",
		"\t\tr.queue.Add(object.(*eventsv1.Event))\n",
		"\t\tr.queue.Add(object.(*eventsv1.Event))\n\t\ttime.Sleep(500 * time.Millisecond)\n",
		"TestNoEventOfABurstIsLost"},
	{"flushing has no end", "internal/recorder/recorder.go",
		"case <-time.After(timeout):", "case <-time.After(time.Hour):",
		"TestFlushDoesNotWaitForEver"},
	{"the Lease is released too early", "internal/leader/leader.go", "context.WithCancel(context.WithoutCancel(ctx))",
		"context.WithCancel(ctx)", "TestLeaseIsHeldUntilTheWorkIsDone"},
	{"the Lease is not released", "internal/leader/leader.go", `record.HolderIdentity = ""`, "",
		"TestLeaseIsHeldUntilTheWorkIsDone"},
	{"the Lease is released before a lost leader ends", "internal/leader/leader.go", "Callbacks: callbacks,",
		"ReleaseOnCancel: true, Callbacks: callbacks,", "TestLeaderOfAHangingServerEndsBeforeItsLease"},
	{"a lost Lease is ignored", "internal/leader/leader.go", "if working.Load() || ctx.Err() == nil {", "if false {",
		"TestLostLeaseIsAnError"},
	{"a frozen leader looks healthy", "internal/leader/leader.go", "healthTolerance = 20 *",
		"healthTolerance = 200 *", "TestCheckFailsForALeaderThatIsFrozenLongAfterItsLease"},
	{"a standby does not stop", "internal/leader/leader.go", "if !elector.IsLeader() {", "if false {",
		"TestStandbyWaitsAndStops"},
	{"all Deployments are cached", "main.go",
		`list.LabelSelector = managedByLabel + "=" + controllerName`, "",
		"TestCacheHoldsOnlyDeploymentsOfFoos"},
	{"--namespace is ignored", "main.go", "fooinformers.WithNamespace(o.namespace),", "",
		"TestNamespaceFlagNarrowsTheWatch"},
	{"a process that failed ends well", "main.go", "if ctx.Err() == nil {", "if false {",
		"TestForbiddenWatchEndsTheProcess"},
	{"a missing permission is retried for ever", "internal/informers/informers.go",
		"case apierrors.IsForbidden(err):", "case false:", "TestStartSaysWhyTheCachesCannotBeFilled"},
	{"a permission that is missing for a moment ends it", "internal/informers/informers.go",
		"g.synced.Load() && ", "false && ", "TestForbiddenWatchFailsInTheEnd"},
	{"an old error counts", "internal/informers/informers.go", "since = time.Now()", "",
		"TestForbiddenWatchFailsInTheEnd"},
	{"ready before the caches are filled", "internal/informers/informers.go",
		"if !g.synced.Load() {", "if false {", "TestGroupIsReadyWhenItsCachesAreFilled"},
	{"managedFields are cached", "internal/informers/informers.go",
		"accessor.SetManagedFields(nil)", "_ = accessor", "TestCacheHasNoManagedFields"},
	{"clients have client-go's limit", "internal/clientconfig/clientconfig.go", "config.QPS = -1", "",
		"TestFlagComesBeforeTheVariable"},
	{"no cluster is a riddle", "internal/clientconfig/clientconfig.go",
		"if clientcmd.IsEmptyConfig(err) {", "if false {", "TestNoClusterConfiguredSaysWhatToDo"},
	{"a missing CRD is an error like others", "clients.go", "case apierrors.IsNotFound(err):",
		"case false:", "TestStartFailsWithWhatToDo"},
	{"not ready looks ready", "internal/probes/probes.go", "http.StatusServiceUnavailable",
		"http.StatusOK", "TestEachProbeFollowsItsCheck"},
	{"any port in use is a riddle", "internal/serving/serving.go", "syscall.EADDRINUSE", "syscall.ENOENT",
		"TestPortInUseSaysWhatToDo"},
	{"any token will do", "internal/metrics/guard.go", "if !who.Status.Authenticated {",
		"if false {", "TestMetricsAreForThoseWhoMayGetThem"},
	{"any user will do", "internal/metrics/guard.go", "!may.Status.Allowed", "may == nil",
		"TestMetricsAreForThoseWhoMayGetThem"},
	{"the user's groups are forgotten", "internal/metrics/guard.go", "Groups: user.Groups, ", "",
		"TestMetricsAreForThoseWhoMayGetThem"},
	{"metrics are for all while the API server is down", "internal/metrics/guard.go",
		"return http.StatusServiceUnavailable, err", "return http.StatusOK, err",
		"TestNobodyReadsMetricsWhileTheAPIServerIsDown"},
	{"every scrape asks the API server", "internal/metrics/guard.go",
		"g.decisions.Set(key, code, decisionTTL)", "", "TestDecisionsHoldForTenSeconds"},
	{"a decision holds too long", "internal/metrics/guard.go", "decisionTTL = 10 *",
		"decisionTTL = 30 *", "TestDecisionsHoldForTenSeconds"},
	{"a scrape waits for ever", "internal/metrics/guard.go", "decisionTimeout = 5 *",
		"decisionTimeout = 50 *", "TestAPIServerThatHangsDoesNotHoldAScrapeForEver"},
	{"the API server is asked about no token", "internal/metrics/guard.go", `if token == "" {`,
		"if false {", "TestStrangersDoNotReachTheAPIServer"},
	{"the API server is asked without a limit", "internal/metrics/guard.go",
		"!g.limit.TryAccept()", "false", "TestStrangersDoNotReachTheAPIServer"},
	{"secure metrics are plain", "internal/metrics/metrics.go", "if !config.Secure {", "if true {",
		"TestSecureMetricsAreEncryptedAndGuarded"},
	{"secure metrics are unguarded", "internal/metrics/metrics.go", "newGuard(config.Reviews, mux)",
		"mux", "TestSecureMetricsAreEncryptedAndGuarded"},
	{"metrics are served over HTTP/2", "internal/metrics/metrics.go", "&tls.Config{",
		`&tls.Config{NextProtos: []string{"h2"}, `, "TestSecureMetricsAreEncryptedAndGuarded"},
	{"any address is plain", "flags.go", `return host != "localhost" && `, "return false && ",
		"TestMetricsAreSecureButOnALoopbackAddress"},
	{"a renewed certificate is not read", "internal/metrics/metrics.go", "return read, err",
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

// killMutant runs one test of the package of file, which is replaced by changed, and expects it to
// fail.
func killMutant(t *testing.T, file string, changed []byte, test string) {
	t.Helper()
	dir := t.TempDir()
	mutated := filepath.Join(dir, filepath.Base(file))
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
		"-timeout", "1m", "./"+filepath.Dir(file)).CombinedOutput()
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
