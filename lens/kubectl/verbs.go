package kubectl

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// waitInterval is how often a delete looks whether the object is gone.
const waitInterval = 100 * time.Millisecond

// kinds are those that arguments name.
var kinds = map[string]schema.GroupVersionKind{
	"foo":        {Group: "samplecontroller.k8s.io", Version: "v1alpha1", Kind: "Foo"},
	"deployment": {Group: "apps", Version: "v1", Kind: "Deployment"},
	"quota":      {Version: "v1", Kind: "ResourceQuota"},
	"namespace":  {Version: "v1", Kind: "Namespace"},
}

// target is an object that a command is about.
type target struct {
	dynamic.ResourceInterface
	name string
	full string // with its kind, as kubectl prints it
}

// target returns the object of a kind and name.
func (c *command) target(kind schema.GroupVersionKind, namespace, name string) (*target, error) {
	r, namespaced, ok := c.LookupKind(kind)
	if !ok {
		return nil, fmt.Errorf("no matches for kind %q in version %q", kind.Kind, kind.GroupVersion())
	}
	all := c.Client.Resource(r)
	t := &target{all, name, schema.GroupKind{Group: kind.Group, Kind: strings.ToLower(kind.Kind)}.
		String() + "/" + name}
	if namespaced {
		t.ResourceInterface = all.Namespace(namespace)
	}
	return t, nil
}

// named returns the object that an argument such as foo/example-foo names.
func (c *command) named(argument string) (*target, error) {
	kind, name, _ := strings.Cut(argument, "/")
	if kinds[kind].Kind == "" || name == "" {
		return nil, fmt.Errorf("%q is not possible here", argument)
	}
	return c.target(kinds[kind], c.namespace, name)
}

// create creates or applies what files have, or what the arguments name.
func (c *command) create(ctx context.Context) (output string, err error) {
	if len(c.files) == 0 {
		return c.send(ctx, c.object(c.args[1], c.args[2]), "")
	}
	for _, file := range c.files {
		text := []byte(c.input)
		if file != "-" {
			if text, err = fs.ReadFile(c.Files, file); err != nil {
				return output, err
			}
		}
		for document := range bytes.SplitSeq(text, []byte("\n---")) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				return output, fmt.Errorf("error parsing %s: %w", file, err)
			}
			if len(object.Object) == 0 {
				continue
			}
			sent, err := c.send(ctx, object, file)
			if output += sent; err != nil {
				return output, err
			}
		}
	}
	if output == "" {
		err = fmt.Errorf("no objects passed to %s", c.args[0])
	}
	return output, err
}

// object returns the object of a kubectl create without files.
func (c *command) object(kind, name string) *unstructured.Unstructured {
	spec := map[string]any{}
	switch kind {
	case "quota":
		resource, limit, _ := strings.Cut(c.hard, "=")
		spec["hard"] = map[string]any{resource: limit}
	case "deployment":
		labels := map[string]any{"app": name}
		containers := []any{map[string]any{"name": c.image, "image": c.image}}
		spec["replicas"], spec["selector"] = int64(1), map[string]any{"matchLabels": labels}
		spec["template"] = map[string]any{"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": containers}}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kinds[kind])
	object.SetName(name)
	return object
}

// send creates or applies an object from a file, or from "".
func (c *command) send(ctx context.Context, object *unstructured.Unstructured, file string) (
	string, error,
) {
	namespace := cmp.Or(object.GetNamespace(), c.namespace)
	t, err := c.target(object.GroupVersionKind(), namespace, object.GetName())
	if err != nil {
		return "", err
	}
	if c.args[0] == "apply" {
		_, err = t.Apply(ctx, t.name, object, metav1.ApplyOptions{FieldManager: "kubectl"})
		return t.say("serverside-applied", "", err)
	}
	doing := ""
	if file != "" {
		doing = fmt.Sprintf("creating %q", file)
	}
	_, err = t.Create(ctx, object, metav1.CreateOptions{FieldManager: "kubectl-create"})
	return t.say("created", doing, err)
}

// say returns what kubectl says about what it did, or was doing when it failed.
func (t *target) say(did, doing string, err error) (string, error) {
	if err != nil {
		return "", explain(doing, err)
	}
	return t.full + " " + did + "\n", nil
}

// patchIt patches the object that an argument names.
func (c *command) patchIt(
	ctx context.Context, argument string, how types.PatchType, patch, did string,
) (string, error) {
	t, err := c.named(argument)
	if err != nil {
		return "", err
	}
	_, err = t.Patch(ctx, t.name, how, []byte(patch),
		metav1.PatchOptions{FieldManager: "kubectl-" + c.args[0]})
	return t.say(did, "", err)
}

func (c *command) change(ctx context.Context) (string, error) {
	how := map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType}[c.patchType]
	return c.patchIt(ctx, c.args[1], how, c.patch, "patched")
}

// rollout restarts one.
func (c *command) rollout(ctx context.Context) (string, error) {
	patch := fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations":
		{"kubectl.kubernetes.io/restartedAt": %q}}}}}`, time.Now().Format(time.RFC3339))
	return c.patchIt(ctx, c.args[2], types.MergePatchType, patch, "restarted")
}

// label takes a label off.
func (c *command) label(ctx context.Context) (string, error) {
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, strings.TrimSuffix(c.args[2], "-"))
	return c.patchIt(ctx, c.args[1], types.MergePatchType, patch, "unlabeled")
}

// delete deletes what the arguments name, or all of a kind, and waits until it is gone unless it is told
// not to.
func (c *command) delete(ctx context.Context) (output string, err error) {
	how := metav1.DeletionPropagation(strings.ToUpper(c.cascade[:1]) + c.cascade[1:])
	arguments := c.args[1:]
	if c.all {
		r, _, _ := c.LookupKind(kinds[c.args[1]])
		list, err := c.Client.Resource(r).Namespace(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		arguments = nil
		for _, item := range list.Items {
			arguments = append(arguments, c.args[1]+"/"+item.GetName())
		}
	}
	var isGone []wait.ConditionWithContextFunc
	for _, argument := range arguments {
		if argument == "" {
			break
		}
		t, err := c.named(argument)
		if err != nil {
			return output, err
		}
		before, err := t.Get(ctx, t.name, metav1.GetOptions{})
		if err == nil {
			err = t.Delete(ctx, t.name, metav1.DeleteOptions{PropagationPolicy: &how})
		}
		if err != nil {
			return output, explain("", err)
		}
		kind, _, _ := strings.Cut(t.full, "/")
		output += fmt.Sprintf("%s %q deleted from %s namespace\n", kind, t.name, c.namespace)
		isGone = append(isGone, func(ctx context.Context) (bool, error) {
			now, err := t.Get(ctx, t.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err) || err == nil && now.GetUID() != before.GetUID(), nil
		})
	}
	if !c.wait {
		return output, nil
	}
	for _, isGone := range isGone {
		if err := wait.PollUntilContextCancel(ctx, waitInterval, true, isGone); err != nil {
			return output, err
		}
	}
	return output, nil
}
