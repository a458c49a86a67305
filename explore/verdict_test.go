package explore_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/explore"
)

// What users do in many tests.
var (
	createGadget = explore.Create(
		"{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, spec: {value: '1'}}")
	changeGadget    = explore.Patch("gadgets/a", "spec: {value: '2'}")
	deleteGadget    = explore.Delete("gadgets/a")
	createConfigMap = explore.Create(`{apiVersion: v1, kind: ConfigMap,
		metadata: {name: a, labels: {tier: gold}}, data: {value: theirs}}`)
	changeConfigMap = explore.Patch("configmaps/a", "data: {value: others}")
	deleteConfigMap = explore.Delete("configmaps/a")
)

// trial explores a program, and expects a finding that contains a text. "" stands for no finding.
type trial struct {
	run    run
	steps  []explore.Step
	finds  string
	settle time.Duration
}

// expect explores the program. What else is known of the controller is in c.
func (test trial) expect(t *testing.T, c explore.Controller) {
	t.Helper()
	c.Run, c.CRDs, c.Settle = test.run, []string{gadgets}, test.settle
	c.Scenarios = []explore.Scenario{{Name: "users", Steps: test.steps}}
	if test.finds != "" { // soon
		budget := flag.Lookup("explore.budget").Value
		defer func(cases string) { _ = budget.Set(cases) }(budget.String())
		_ = budget.Set("25")
	}
	findings := explore.Find(t, c, "")
	var problems []string
	for _, f := range findings {
		problems = append(problems, strings.TrimPrefix(f.Case, t.Name()+"/")+": "+f.Problem)
	}
	found := slices.ContainsFunc(problems, func(problem string) bool {
		return strings.Contains(problem, test.finds)
	})
	if test.finds == "" && len(problems) > 0 || !found && test.finds != "" {
		t.Errorf("want %q, found:\n%s", test.finds, strings.Join(problems, "\n"))
	}
}

// forConfigMaps returns a program whose sync gets a copy of each ConfigMap in the cache.
func forConfigMaps(sync func(*process, *corev1.ConfigMap) error) run {
	return rawProgram(func(p *process, key cache.ObjectName) error {
		c, err := p.configMaps.ConfigMaps(key.Namespace).Get(key.Name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return sync(p, c.DeepCopy())
	})
}

func (p *process) update(c *corev1.ConfigMap) error {
	_, err := p.kube.CoreV1().ConfigMaps(c.Namespace).Update(p.ctx, c, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func (p *process) create(c *corev1.ConfigMap) error {
	_, err := p.kube.CoreV1().ConfigMaps(c.Namespace).Create(p.ctx, c, metav1.CreateOptions{})
	return err
}

func (p *process) delete(key cache.ObjectName) error {
	return ignoreNotFound(p.kube.CoreV1().ConfigMaps(key.Namespace).Delete(p.ctx, key.Name,
		metav1.DeleteOptions{}))
}

// TestVerdicts shows what is said of objects of others, and of controllers that do nothing.
func TestVerdicts(t *testing.T) {
	const finalizer = "example.com/outside"
	for name, test := range map[string]trial{
		"nothing is written": {program(func(*process, object) error { return nil }),
			steps(createGadget), "none of its", 0},
		"each write fails": {program(func(p *process, _ object) error {
			return p.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "nowhere"}})
		}), steps(createGadget), `failed like this: create-configmaps-nowhere-a: namespaces "nowhere" not found`,
			0},

		"marks on objects of users, and more data": {forConfigMaps(func(p *process, c *corev1.ConfigMap) error {
			if c.Labels["seen"] != "" {
				return nil
			}
			c.Data["more"] = "of mine"
			metav1.SetMetaDataLabel(&c.ObjectMeta, "seen", "yes")
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "example.com/by", "me")
			return p.update(c)
		}), steps(createConfigMap, changeConfigMap), "", 0},
		"a finalizer on objects of users": {forConfigMaps(func(p *process, c *corev1.ConfigMap) error {
			has := slices.Contains(c.Finalizers, finalizer)
			patch := `{"metadata": {"finalizers": ["` + finalizer + `"]}}`
			switch goes := c.DeletionTimestamp != nil; {
			case goes != has:
				return nil
			case goes:
				patch = `{"metadata": {"finalizers": null}}`
			}
			_, err := p.kube.CoreV1().ConfigMaps(c.Namespace).Patch(p.ctx, c.Name, types.MergePatchType,
				[]byte(patch), metav1.PatchOptions{})
			return ignoreNotFound(err)
		}), steps(createConfigMap, changeConfigMap, deleteConfigMap), "", 0},
		"a label that users have set": {forConfigMaps(func(p *process, c *corev1.ConfigMap) error {
			if c.Labels = map[string]string{"tier": "mine"}; c.Data["value"] == "others" {
				return p.update(c)
			}
			return nil
		}), steps(createConfigMap, changeConfigMap),
			"the ConfigMap a was changed although users had set its metadata.labels.tier", 0},

		"a deletion that is the purpose": {forConfigMaps(func(p *process, c *corev1.ConfigMap) error {
			if c.Data["value"] != "others" {
				return nil
			}
			return p.delete(cache.MetaObjectToName(c))
		}), steps(createConfigMap, changeConfigMap), "", 0},
		"a deletion by mistake": {rawProgram(func(p *process, key cache.ObjectName) error {
			gadget, err := p.gadgets.Namespace(key.Namespace).Get(p.ctx, key.Name, metav1.GetOptions{})
			if err != nil { // any error
				return p.delete(key)
			}
			return p.setStatus(gadget, map[string]any{"seen": true})
		}), steps(createGadget, createConfigMap),
			"the ConfigMap a was deleted although it belongs to somebody else", 0},

		"a name that is free": {program(func(p *process, gadget object) error {
			_, err := p.kube.CoreV1().ConfigMaps(gadget.GetNamespace()).Get(p.ctx, gadget.GetName(),
				metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return err
			}
			return ignoreAlreadyExists(p.create(childOf(gadget))) // its event comes
		}), []explore.Step{createGadget,
			explore.Patch("gadgets/a", "metadata: {labels: {new: event}}")}, "", 0},
		"a wait that is longer than Settle": {program(func(p *process, g object) error {
			err := p.create(childOf(g))
			if err != nil && !apierrors.IsAlreadyExists(err) {
				p.queue.AddAfter(cache.MetaObjectToName(g), 20*time.Minute)
			}
			return nil
		}), steps(createGadget), "later: if that is soon enough, set Settle to more", time.Minute},
		"a process that ends": {func(context.Context, *rest.Config) error { return errors.New("no port") },
			steps(createGadget), "the controller ended by itself: no port", 0},
	} {
		t.Run(name, func(t *testing.T) { test.expect(t, explore.Controller{}) })
	}
}
