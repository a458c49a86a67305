package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	buckets "example.com/sample-controller/examples/internal/memory"
	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// memory is a server whose buckets are in the API server of package explore.
type memory struct{ client kubernetes.Interface }

func (memory) Check(*http.Request) error { return nil }

func (m memory) Bucket(_ context.Context, name string) (bucket, error) {
	configMaps := m.client.CoreV1().ConfigMaps(explore.Namespace)
	return buckets.Bucket{ConfigMapInterface: configMaps, Name: name}, nil
}

// The key is that of Foo a, or of the default, in the namespace.
const fooKey, defaultKey = "spec.explored.a", "spec.explored.default"

func putKey(bucket, key, spec string) explore.Step {
	return explore.Create(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s,
		labels: {bucket: %s}}, data: {value: '{"spec":%s}'}}`, key, bucket, spec))
}

func changeKey(key, data string) explore.Step {
	return explore.Patch("configmaps/"+key, "data: "+data)
}

var (
	create           = putKey(fooBucket, fooKey, `{"deploymentName":"x"}`)
	scale            = changeKey(fooKey, `{value: '{"spec":{"deploymentName":"x","replicas":3}}'}`)
	rename           = changeKey(fooKey, `{value: '{"spec":{"deploymentName":"y"}}'}`)
	remove           = changeKey(fooKey, `{value: null, gone: "yes"}`)
	restore          = changeKey(fooKey, `{value: '{"spec":{"deploymentName":"x"}}', gone: null}`)
	empty            = explore.Delete("configmaps/" + fooKey)
	deleteDeployment = explore.Delete("deployments.apps/x")
)

func scenario(name string, steps ...explore.Step) explore.Scenario {
	return explore.Scenario{Name: name, Steps: steps, AnyEnd: true} // statuses contain times
}

// TestExplore tries every fault at every request, and at every call of a bucket.
func TestExplore(t *testing.T) {
	explore.Test(t, explore.Controller{
		Run: func(ctx context.Context, config *rest.Config) error {
			o := must.Get(parseFlags([]string{"--workers=2", "--leader-elect-resource-namespace=default",
				"--metrics-bind-address=0", "--health-probe-bind-address=0"}, nil))(t)
			s := memory{kubernetes.NewForConfigOrDie(config)}
			return must.Get(NewController(ctx, config, o, s))(t).Run(ctx)
		},
		Scenarios: []explore.Scenario{
			scenario("create", create), scenario("scale", create, scale),
			scenario("rename", create, rename), scenario("delete", create, remove),
			scenario("delete and put", create, remove, restore), scenario("empty", create, empty),
			scenario("deleted Deployment", create, deleteDeployment),
			scenario("default", create, putKey(defaultBucket, defaultKey, `{"replicas":2}`),
				changeKey(defaultKey, `{value: null, gone: "yes"}`)),
			scenario("restart", create, explore.Restart),
		},
		Always:     unasked,
		Eventually: problems,
		Delay:      35 * time.Second,
		Settle:     time.Hour,
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
	at("status.explored.a", &status)
	deployments := explore.List[appsv1.Deployment](now, "deployments.apps")
	switch {
	case spec == nil:
		return nil // it was never put, or unasked has looked at what happened
	case spec.Data["gone"] != "":
		if len(deployments) > 0 || status.Status.ObservedGeneration != 0 {
			return []string{"something is left of a Foo that was deleted"}
		}
		return nil
	}
	replicas := *cmp.Or(foo.Spec.Replicas, value.Spec.Replicas, new(int32(1)))
	if len(deployments) != 1 || deployments[0].Name != foo.Spec.DeploymentName ||
		*deployments[0].Spec.Replicas != replicas || len(deployments[0].OwnerReferences) > 0 {
		problems = append(problems, fmt.Sprintf("Deployments %v, want one", deployments))
	}
	if !meta.IsStatusConditionTrue(status.Status.Conditions, v1alpha1.ConditionReady) ||
		strconv.FormatInt(status.Status.ObservedGeneration, 10) != spec.ResourceVersion {
		problems = append(problems, fmt.Sprintf("the status is %v", status.Status))
	}
	return problems
}
