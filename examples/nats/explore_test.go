package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// memory is a NATS server in memory. Each key of its buckets is a ConfigMap in the API server of
// package explore. So that package disturbs each call of a bucket, and each entry that a watch
// shows, as it disturbs requests and events.
type memory struct{ client kubernetes.Interface }

func (memory) Check(*http.Request) error { return nil }

func (m memory) Bucket(_ context.Context, name string) (bucket, error) {
	return memoryBucket{m.client.CoreV1().ConfigMaps(explore.Namespace), name}, nil
}

type memoryBucket struct {
	corev1client.ConfigMapInterface
	name string
}

// entry is a ConfigMap as an entry: with "gone" in its data, it is a delete marker.
type entry struct {
	jetstream.KeyValueEntry
	*corev1.ConfigMap
}

func (e entry) Key() string        { return e.Name }
func (e entry) Value() []byte      { return []byte(e.Data["value"]) }
func (e entry) Created() time.Time { return e.CreationTimestamp.Time }

func (e entry) Revision() uint64 {
	revision, _ := strconv.ParseUint(e.ResourceVersion, 10, 64)
	return revision
}

func (e entry) Operation() jetstream.KeyValueOp {
	if e.Data["gone"] != "" {
		return jetstream.KeyValueDelete
	}
	return jetstream.KeyValuePut
}

func (b memoryBucket) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	c, err := b.ConfigMapInterface.Get(ctx, key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && c.Data["gone"] != "" {
		return nil, jetstream.ErrKeyNotFound
	}
	return entry{ConfigMap: c}, err
}

func (b memoryBucket) Update(
	ctx context.Context, key string, value []byte, revision uint64,
) (uint64, error) {
	c := &corev1.ConfigMap{Data: map[string]string{"value": string(value)}}
	c.Name, c.Labels = key, map[string]string{"bucket": b.name}
	var err error
	if revision == 0 {
		c, err = b.Create(ctx, c, metav1.CreateOptions{})
	} else {
		c.ResourceVersion = strconv.FormatUint(revision, 10)
		c, err = b.ConfigMapInterface.Update(ctx, c, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return 0, jetstream.ErrKeyRevisionMismatch
	}
	return entry{ConfigMap: c}.Revision(), err
}

func (b memoryBucket) Delete(ctx context.Context, key string, _ ...jetstream.KVDeleteOpt) error {
	_, err := b.Patch(ctx, key, types.MergePatchType, []byte(`{"data":{"gone":"yes","value":null}}`),
		metav1.PatchOptions{})
	return err
}

// Watch sends all entries, nil, and then each change. An entry that is removed leaves no trace.
func (b memoryBucket) Watch(
	ctx context.Context, _ string, _ ...jetstream.WatchOpt,
) (jetstream.KeyWatcher, error) {
	options := metav1.ListOptions{LabelSelector: "bucket=" + b.name}
	list, err := b.List(ctx, options)
	if err != nil {
		return nil, err
	}
	options.ResourceVersion = list.ResourceVersion
	events, err := b.ConfigMapInterface.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(x, y corev1.ConfigMap) int {
		return cmp.Compare(entry{ConfigMap: &x}.Revision(), entry{ConfigMap: &y}.Revision())
	})
	w := memoryWatcher{updates: make(chan jetstream.KeyValueEntry)}
	go func() {
		defer close(w.updates)
		defer events.Stop()
		for i := range list.Items {
			w.updates <- entry{ConfigMap: &list.Items[i]}
		}
		w.updates <- nil
		for e := range events.ResultChan() {
			switch e.Type {
			case watch.Added, watch.Modified:
				w.updates <- entry{ConfigMap: e.Object.(*corev1.ConfigMap)}
			case watch.Error:
				return
			}
		}
	}()
	return w, nil
}

type memoryWatcher struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (w memoryWatcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

// The key is that of Foo a, or of the default, in the namespace.
const fooKey, defaultKey = "spec." + explore.Namespace + ".a", "spec." + explore.Namespace + ".default"

func putKey(bucket, key, spec string) explore.Step {
	return explore.Create(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s,
		labels: {bucket: %s}}, data: {value: '{"spec":%s}'}}`, key, bucket, spec))
}

func changeKey(key, data string) explore.Step {
	return explore.Patch("configmaps/"+key, "data: "+data)
}

var (
	create  = putKey(fooBucket, fooKey, `{"deploymentName":"x"}`)
	scale   = changeKey(fooKey, `{value: '{"spec":{"deploymentName":"x","replicas":3}}'}`)
	rename  = changeKey(fooKey, `{value: '{"spec":{"deploymentName":"y"}}'}`)
	remove  = changeKey(fooKey, `{value: null, gone: "yes"}`)
	restore = changeKey(fooKey, `{value: '{"spec":{"deploymentName":"x"}}', gone: null}`)
	empty   = explore.Delete("configmaps/" + fooKey)
	foreign = explore.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {
		selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}},
		spec: {containers: [{name: other, image: other}]}}}}`)
	deleteDeployment = explore.Delete("deployments.apps/x")
	spoil            = explore.Patch("deployments.apps/x", "spec: {replicas: 7}")
)

func scenario(name string, steps ...explore.Step) explore.Scenario {
	return explore.Scenario{Name: name, Steps: steps, AnyEnd: true} // statuses contain times
}

// TestExplore tries every fault at every place of the requests and of the calls of the buckets.
func TestExplore(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, config *rest.Config) error {
			o, err := parseFlags([]string{"--workers=2", "--leader-elect-resource-namespace=default",
				"--metrics-bind-address=0", "--health-probe-bind-address=0"}, nil)
			if err != nil {
				return err
			}
			c, err := NewController(ctx, config, o, memory{kubernetes.NewForConfigOrDie(config)})
			if err != nil {
				return err
			}
			return c.Run(ctx)
		},
		Scenarios: []explore.Scenario{
			scenario("create", create), scenario("scale", create, scale),
			scenario("rename", create, rename), scenario("delete", create, remove),
			scenario("delete and put", create, remove, restore), scenario("empty", create, empty),
			scenario("deleted Deployment", create, deleteDeployment), scenario("repair", create, spoil),
			scenario("taken", foreign, create, deleteDeployment),
			scenario("default", create, putKey(defaultBucket, defaultKey, `{"replicas":2}`),
				changeKey(defaultKey, `{value: null, gone: "yes"}`)),
			scenario("restart", create, explore.Restart),
		},
		Always:     unasked,
		Eventually: problems,
		Delay:      35 * time.Second,
		Settle:     time.Hour, // several times the resync
	})
}

// unasked returns what speaks against a write: it deletes the Deployment of a Foo that is missing.
func unasked(w explore.Write, now explore.State) string {
	if w.New == nil && w.Resource == "deployments" &&
		explore.Get[corev1.ConfigMap](now, "configmaps", fooKey) == nil {
		return "the Foo is missing, and no delete marker says why"
	}
	return ""
}

// problems returns what is wrong with Foo a when everything is quiet.
func problems(now explore.State) (problems []string) {
	var foo, value, status v1alpha1.Foo
	at := func(key string, to *v1alpha1.Foo) *corev1.ConfigMap {
		c := explore.Get[corev1.ConfigMap](now, "configmaps", key)
		if c != nil {
			_ = json.Unmarshal([]byte(c.Data["value"]), to)
		}
		return c
	}
	spec := at(fooKey, &foo)
	at(defaultKey, &value)
	at("status."+explore.Namespace+".a", &status)
	deployments := explore.List[appsv1.Deployment](now, "deployments.apps")
	switch {
	case spec == nil:
		return nil // it was never put, or unasked has looked at what happened
	case spec.Data["gone"] != "":
		if len(deployments) > 0 || status.Status.ObservedGeneration != 0 {
			problems = append(problems, "something is left of a Foo that was deleted")
		}
		return problems
	}
	replicas := *cmp.Or(foo.Spec.Replicas, value.Spec.Replicas, new(int32(1)))
	if len(deployments) != 1 || deployments[0].Name != foo.Spec.DeploymentName ||
		*deployments[0].Spec.Replicas != replicas || len(deployments[0].OwnerReferences) > 0 {
		problems = append(problems, fmt.Sprintf("Deployments %v, want one, %s with %d replicas",
			deployments, foo.Spec.DeploymentName, replicas))
	}
	if !meta.IsStatusConditionTrue(status.Status.Conditions, v1alpha1.ConditionReady) ||
		strconv.FormatInt(status.Status.ObservedGeneration, 10) != spec.ResourceVersion {
		problems = append(problems, fmt.Sprintf("the status is %v", status.Status))
	}
	return problems
}
