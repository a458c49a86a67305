package explore_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/explore"
)

// TestMain explores fifty cases of each program, which take a second: users have ten.
func TestMain(m *testing.M) {
	flag.Parse()
	if budget := flag.Lookup("explore.budget"); budget.Value.String() == budget.DefValue {
		_ = flag.Set("explore.budget", "50")
	}
	debug.SetGCPercent(400) // each case makes a world, so a fifth of the time was garbage collection
	os.Exit(m.Run())
}

func valueOf(gadget object) string {
	value, _, _ := unstructured.NestedString(gadget.Object, "spec", "value")
	return value
}

// createOrUpdate makes the child what the Gadget asks for. onConflict gets the error of the update.
func createOrUpdate(onConflict func(error) error, mayTake bool) syncer {
	return func(p *process, gadget object) error {
		if gadget.GetDeletionTimestamp() != nil {
			return nil
		}
		want := childOf(gadget)
		got, err := p.kube.CoreV1().ConfigMaps(want.Namespace).Get(p.ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return p.create(want)
		case err != nil:
			return err
		case !mayTake && !metav1.IsControlledBy(got, gadget):
			return p.setStatus(gadget, map[string]any{"taken": true})
		case got.Data["value"] == want.Data["value"]:
			return nil
		}
		got.Data, got.OwnerReferences = want.Data, want.OwnerReferences
		return onConflict(p.update(got))
	}
}

func report(err error) error  { return err }
func swallow(err error) error { return utilerrors.FilterOut(err, apierrors.IsConflict) }
func ignoreAlreadyExists(err error) error {
	return utilerrors.FilterOut(err, apierrors.IsAlreadyExists)
}

const held = "example.com/held"

// outside registers a Gadget, and removes it from the registry before the Gadget may go, or after.
func outside(cleansFirst bool) syncer {
	return func(p *process, gadget object) error {
		r, has := explore.Outside(p.ctx).(*registry), slices.Contains(gadget.GetFinalizers(), held)
		setFinalizers := func(finalizers ...string) error {
			gadget.SetFinalizers(finalizers)
			_, err := p.gadgets.Namespace(gadget.GetNamespace()).Update(p.ctx, gadget, metav1.UpdateOptions{})
			return ignoreNotFound(err)
		}
		switch {
		case gadget.GetDeletionTimestamp() != nil && has:
			r.hasA.Store(!cleansFirst)
			err := setFinalizers()
			r.hasA.Store(err != nil && !cleansFirst)
			return err
		case gadget.GetDeletionTimestamp() != nil:
			return nil
		case !has:
			return setFinalizers(held) // and its event comes
		}
		r.hasA.Store(true)
		return nil
	}
}

// once makes a ConfigMap for each value, unless the status says that it was made.
func once(cached, generated bool) syncer {
	return func(p *process, gadget object) error {
		value, ran := valueOf(gadget), ranOf(gadget)
		if cached {
			old, err := p.cached.ByNamespace(gadget.GetNamespace()).Get(gadget.GetName())
			if err != nil {
				return err
			}
			ran = ranOf(old.(object))
		}
		if ran == value {
			return nil
		}
		child := childOf(gadget)
		if child.Name = "run-" + value; generated {
			child.Name, child.GenerateName = "", child.Name+"-"
		}
		if err := ignoreAlreadyExists(p.create(child)); err != nil {
			return err
		}
		return p.setStatus(gadget, map[string]any{"ran": value})
	}
}

func ranOf(gadget object) string {
	ran, _, _ := unstructured.NestedString(gadget.Object, "status", "ran")
	return ran
}

// createBoth creates two objects. The second one may depend on who has created the first one.
func createBoth(onFirst func(error) error, goesOn bool) syncer {
	return func(p *process, gadget object) error {
		err := p.create(childOf(gadget))
		if onFirst(err) != nil || err != nil && !goesOn {
			return onFirst(err)
		}
		second := childOf(gadget)
		second.Name += "-2"
		return ignoreAlreadyExists(p.create(second))
	}
}

func remember(p *process, gadget object) error {
	if p.memory[gadget.GetName()] {
		return nil
	}
	err := ignoreAlreadyExists(p.create(childOf(gadget)))
	p.memory[gadget.GetName()] = err == nil
	return err
}

// forgetful cleans up when it hears that the Gadget is gone: a process that was not there does not.
func forgetful(p *process, key cache.ObjectName) error {
	gadget, err := p.gadgets.Namespace(key.Namespace).Get(p.ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		explore.Outside(p.ctx).(*registry).hasA.Store(false)
		return nil
	case err != nil:
		return err
	}
	return register(p, gadget)
}

// repair returns a program that repairs the image of its Deployment, if it is to be.
func repair(isToBe func(image string) bool) run {
	return keep(func(d *appsv1.Deployment) {
		if c := d.Spec.Template.Spec.Containers; isToBe(c[0].Image) {
			c[0].Image = "web"
		}
	})
}

var (
	steps     = func(steps ...explore.Step) []explore.Step { return steps }
	isOther   = func(image string) bool { return image != "web" }
	isNew     = func(g object, value string) bool { return ranOf(g) != value }
	restarted atomic.Int64
)

// catalogue has the bugs that everybody writes: with each, what is said, and the right way, which is nil
// if another bug has the same.
var catalogue = []struct {
	bug, says    string
	wrong, right run
	steps        []explore.Step
}{
	{"only the process that creates the first object creates the second",
		"there is no ConfigMap a-2, but there is one if nothing goes wrong",
		program(createBoth(ignoreAlreadyExists, false)), program(createBoth(ignoreAlreadyExists, true)),
		steps(createGadget)},
	{"the finalizer goes before what is outside", "a is left in the registry",
		program(outside(false)), program(outside(true)), steps(createGadget, deleteGadget)},
	{"a deletion is noticed only by its event", "a is left in the registry",
		rawProgram(forgetful), nil, steps(createGadget, deleteGadget)},
	{"an old state is read from the cache", "the ConfigMap run-1- (2) is left, but there is none if nothing goes wrong",
		program(once(true, true)), program(once(false, false)), steps(createGadget)},
	{"a name is generated", "the ConfigMap run-1- (2) is left, but there is none if nothing goes wrong",
		program(once(false, true)), nil, steps(createGadget)},
	{"a conflict is taken for success", `the ConfigMap a has data.value "1", but "2" if nothing goes wrong`,
		program(createOrUpdate(swallow, false)), program(createOrUpdate(report, false)),
		steps(createGadget, changeGadget)},
	{"what has the right name is taken over",
		"the ConfigMap a was changed although users had set its data.value",
		program(createOrUpdate(report, true)), program(createOrUpdate(report, false)),
		steps(createConfigMap, createGadget)},
	{"a process remembers what it has made",
		"the ConfigMap a of Gadget a was created although nothing had happened: a new process did that",
		program(remember), program(createOrUpdate(report, false)),
		steps(createGadget, deleteConfigMap, changeGadget)},
	{"the status has a time",
		"the controller never comes to rest: each sync changes status.last of the Gadget a",
		program(clock(time.RFC3339Nano)), program(condition(isNew)), steps(createGadget, changeGadget)},
	{"the status has a time in seconds",
		"the Gadget a goes on changing (status.last, by update-gadgets-status-a)",
		program(clock(time.RFC3339)), nil, steps(createGadget, changeGadget)},
	{"`lastTransitionTime` is always now", "each sync changes status.conditions[Ready].lastTransitionTime",
		program(condition(func(object, string) bool { return true })), nil,
		steps(createGadget, changeGadget)},
	{"the status has a map in random order", "each sync changes status.labels of the Gadget a",
		program(status(randomly)), program(status(sorted)), steps(createGadget)},
	{"the status counts the syncs", "each sync changes status.syncs of the Gadget a",
		program(status(counted)), program(status(observed)), steps(createGadget, changeGadget)},
	{"what admission changes is repaired", "each sync changes spec.template.spec.containers[web].image",
		repair(isOther), repair(func(image string) bool { return !strings.HasPrefix(image, "web@") }),
		steps(resolve(), createGadget)},
	{"what the server fills in is taken for a difference",
		"each sync changes spec.template.metadata.annotations.restart",
		keep(func(d *appsv1.Deployment) {
			want := deploymentOf(&unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "a"}}}).Spec
			if !equality.Semantic.DeepEqual(d.Spec, want) { // and so the Pods are started again
				metav1.SetMetaDataAnnotation(
					&d.Spec.Template.ObjectMeta, "restart", fmt.Sprint(restarted.Add(1)))
			}
		}), repair(isOther), steps(createGadget)},
	{"another writer is never left alone", "and somebody else (another-writer) changes it back",
		repair(isOther), repair(func(string) bool { return false }),
		steps(createGadget, explore.Insist("deployments.apps/a",
			`spec: {template: {spec: {containers: [{name: web, image: evil}]}}}`))},
}

// isLeft says what is wrong in the registry.
func isLeft(now explore.State) (problems []string) {
	gadget := explore.Get[metav1.PartialObjectMetadata](now, "gadgets", "a")
	if gadget == nil && now.Outside.(*registry).hasA.Load() {
		problems = append(problems, "a is left in the registry")
	}
	return problems
}

// TestCatalogue shows that each of the usual bugs is found in less than the time that users have by
// default, and that nothing is said of the right programs. The table is in docs/explore.md.
func TestCatalogue(t *testing.T) {
	page, err := os.ReadFile("../docs/explore.md")
	if err != nil && !os.IsNotExist(err) { // who has only this module has no pages
		t.Fatal(err)
	}
	c := explore.Controller{Outside: func() any { return &registry{} }, Eventually: isLeft}
	for _, entry := range catalogue {
		t.Run(entry.bug, func(t *testing.T) {
			trial{run: entry.wrong, steps: entry.steps, finds: entry.says}.expect(t, c)
		})
		if entry.right != nil {
			t.Run("not "+entry.bug, func(t *testing.T) {
				trial{run: entry.right, steps: entry.steps}.expect(t, c)
			})
		}
		row := fmt.Sprintf("| %s | %s |", entry.bug, entry.says)
		if page != nil && !strings.Contains(string(page), row) {
			t.Errorf("docs/explore.md has no row %s", row)
		}
	}
}
