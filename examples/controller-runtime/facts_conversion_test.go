package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Three versions of a Foo. A scheme needs a Go type for each.
type (
	fooV1 struct{ v1alpha1.Foo }
	fooV2 struct{ v1alpha1.Foo } // the hub
	fooV3 struct{ v1alpha1.Foo }
)

// converters returns a function that makes the converter of the three versions. It appends to calls
// which function it calls.
func converters(calls *[]string) func(*runtime.Scheme) (conversion.Converter, error) {
	convert := func(call string, from, to *v1alpha1.Foo) error {
		*calls = append(*calls, call)
		to.ObjectMeta, to.Spec = from.ObjectMeta, from.Spec
		return nil
	}
	return conversion.NewHubSpokeConverter(&fooV2{},
		conversion.NewSpokeConverter(&fooV1{},
			func(_ context.Context, hub *fooV2, spoke *fooV1) error {
				return convert("v2 to v1", &hub.Foo, &spoke.Foo)
			},
			func(_ context.Context, spoke *fooV1, hub *fooV2) error {
				return convert("v1 to v2", &spoke.Foo, &hub.Foo)
			}),
		conversion.NewSpokeConverter(&fooV3{},
			func(_ context.Context, hub *fooV2, spoke *fooV3) error {
				return convert("v2 to v3", &hub.Foo, &spoke.Foo)
			},
			func(_ context.Context, spoke *fooV3, hub *fooV2) error {
				return convert("v3 to v2", &spoke.Foo, &hub.Foo)
			}))
}

// TestThreeVersionsNeedFourConversions converts a Foo from each version to each other one, as the
// API server asks for it.
func TestThreeVersionsNeedFourConversions(t *testing.T) {
	scheme := runtime.NewScheme()
	group := meaning.FooKind.Group
	for version, object := range map[string]runtime.Object{
		"v1": &fooV1{}, "v2": &fooV2{}, "v3": &fooV3{},
	} {
		kind := meaning.FooKind
		kind.Version = version
		scheme.AddKnownTypeWithName(kind, object)
	}
	var calls []string
	converter := must.Get(converters(&calls)(scheme))(t)
	registry := conversion.NewRegistry()
	must.Do(t, registry.RegisterConverter(meaning.FooKind.GroupKind(), converter))
	handler := conversion.NewWebhookHandler(scheme, registry)

	for _, test := range []struct {
		from, to string
		want     []string
	}{
		{"v1", "v2", []string{"v1 to v2"}},
		{"v1", "v3", []string{"v1 to v2", "v2 to v3"}},
		{"v2", "v1", []string{"v2 to v1"}},
		{"v2", "v3", []string{"v2 to v3"}},
		{"v3", "v1", []string{"v3 to v2", "v2 to v1"}},
		{"v3", "v2", []string{"v3 to v2"}},
	} {
		calls = nil
		review := apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
			UID: "1", DesiredAPIVersion: group + "/" + test.to,
			Objects: []runtime.RawExtension{{Raw: []byte(`{"apiVersion": "` + group + "/" + test.from +
				`", "kind": "Foo", "metadata": {"name": "web"}, "spec": {"deploymentName": "web"}}`)}},
		}}
		body := must.Get(json.Marshal(review))(t)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(body)))
		must.Do(t, json.Unmarshal(answer.Body.Bytes(), &review))
		var foo v1alpha1.Foo
		if objects := review.Response.ConvertedObjects; len(objects) == 1 {
			must.Do(t, json.Unmarshal(objects[0].Raw, &foo))
		}
		if foo.APIVersion != group+"/"+test.to || foo.Spec.DeploymentName != "web" {
			t.Errorf("%s to %s: got %s", test.from, test.to, answer.Body)
		}
		if !slices.Equal(calls, test.want) {
			t.Errorf("%s to %s: got calls %q, want %q", test.from, test.to, calls, test.want)
		}
	}
}
