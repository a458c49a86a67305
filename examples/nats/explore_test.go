package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// memory is a server whose buckets are in the API server of package explore.
type memory struct {
	server // of which only Bucket is called
	client kubernetes.Interface
}

func (m memory) Bucket(_ context.Context, name string) (bucket, error) {
	return configMaps{m.client.CoreV1().ConfigMaps(explore.Namespace), name}, nil
}

func TestFoosOfANamespaceAreFoundWithoutReadingAll(t *testing.T) {
	indexers := (&source{}).informer().GetIndexer().GetIndexers()
	if indexers[cache.NamespaceIndex] == nil {
		t.Errorf("got the indexers %v, want one of namespaces", indexers)
	}
}

// The keys are those of Foo a and its status, and of the default, in the namespace.
const fooKey, statusKey, defaultKey = "spec.explored.a", "status.explored.a", "spec.explored.default"

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
	unnamed = changeKey(fooKey, `{value: 'not JSON'}`)
	remove  = changeKey(fooKey, `{value: null, gone: "yes"}`)
	restore = changeKey(fooKey, `{value: '{"spec":{"deploymentName":"x"}}', gone: null}`)
)

func scenario(name string, steps ...explore.Step) explore.Scenario {
	return explore.Scenario{Name: name, Steps: steps, EndVaries: true} // statuses contain times
}

// TestExplore tries every fault at every request, and at every call of a bucket.
func TestExplore(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, config *rest.Config) error {
			o := must.Get(parseFlags([]string{"--workers=2", "--metrics-bind-address=0",
				"--health-probe-bind-address=0"}, nil))(t)
			kube := kubernetes.NewForConfigOrDie(config)
			return must.Get(NewController(ctx, config, o, memory{nil, kube}))(t).Run(ctx)
		},
		Scenarios: []explore.Scenario{
			scenario("create", create), scenario("scale", create, scale), scenario("rename", create, rename),
			scenario("unnamed", create, unnamed),
			scenario("unseen rename", create, explore.RollOut, rename, explore.HoldWatch("configmaps"),
				restore, explore.RollOut, explore.LetWatchesGo),
			scenario("delete", create, remove), scenario("delete and put", create, remove, restore),
			scenario("empty", create, explore.Delete("configmaps/"+fooKey)),
			scenario("deleted Deployment", create, explore.Delete("deployments.apps/x")),
			scenario("restart", create, explore.Restart),
			scenario("default", create, putKey(defaultBucket, defaultKey, `{"replicas":2}`),
				changeKey(defaultKey, `{value: null, gone: "yes"}`)),
			scenario("default in Kubernetes", create, explore.Create(`{apiVersion: v1, kind: ConfigMap,
				metadata: {name: foo-defaults}, data: {replicas: "2"}}`)),
			scenario("status", create, changeKey(statusKey, `{value: '{}'}`),
				changeKey(statusKey, `{value: null, gone: "yes"}`)),
		},
		Always: unasked, Eventually: problems, Delay: 35 * time.Second, Settle: time.Hour,
	})
}

// unasked returns what speaks against a write: it deletes the Deployment of a Foo that is missing, or
// that asks for it.
func unasked(w explore.Write, now explore.State) string {
	spec := explore.Get[corev1.ConfigMap](now, "configmaps", fooKey)
	switch {
	case w.New != nil || w.Resource != "deployments":
		return ""
	case spec == nil:
		return "the Foo is missing, and no delete marker says why"
	case strings.Contains(spec.Data["value"], `"deploymentName":"`+w.Old.GetName()+`"`):
		return "the Foo asks for it"
	}
	return ""
}

// problems returns what is wrong with Foo a when everything is quiet.
func problems(now explore.State) []string {
	var foo, value, status v1alpha1.Foo
	for key, to := range map[string]any{fooKey: &foo, defaultKey: &value, statusKey: &status} {
		if c := explore.Get[corev1.ConfigMap](now, "configmaps", key); c != nil {
			_ = json.Unmarshal([]byte(c.Data["value"]), to) // what cannot be read is empty
		}
	}
	var local *int32
	if c := explore.Get[corev1.ConfigMap](now, "configmaps", defaultConfigMap); c != nil {
		_ = json.Unmarshal([]byte(c.Data["replicas"]), &local)
	}
	spec := explore.Get[corev1.ConfigMap](now, "configmaps", fooKey)
	deployments := explore.List[appsv1.Deployment](now, "deployments.apps")
	if spec == nil || spec.Data["gone"] != "" && len(deployments)+len(status.Status.Conditions) == 0 {
		return nil // it is gone; or it is missing, and unasked has looked at what happened
	}
	ready := meta.FindStatusCondition(status.Status.Conditions, v1alpha1.ConditionReady)
	if foo.Spec.DeploymentName == "" && ready != nil && ready.Reason == "DeploymentRejected" {
		return nil
	}
	replicas := *cmp.Or(foo.Spec.Replicas, value.Spec.Replicas, local, new(int32(1)))
	if len(deployments) != 1 || deployments[0].Name != foo.Spec.DeploymentName ||
		*deployments[0].Spec.Replicas != replicas || len(deployments[0].OwnerReferences) > 0 ||
		!meta.IsStatusConditionTrue(status.Status.Conditions, v1alpha1.ConditionReady) ||
		fmt.Sprint(status.Status.ObservedGeneration) != spec.ResourceVersion {
		return []string{fmt.Sprintf("Deployments %v, status %v", deployments, status.Status)}
	}
	return nil
}
