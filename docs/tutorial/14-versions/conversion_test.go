package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/randfill"

	"example.com/sample-controller/docs/tutorial/14-versions/pkg/apis/samplecontroller/v1beta1"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var (
	alpha = v1alpha1.GroupVersion.String()
	beta  = v1beta1.GroupVersion.String()
)

// converted returns object as an object of apiVersion, both in JSON.
func converted(t *testing.T, object []byte, apiVersion string) []byte {
	t.Helper()
	foo, err := convert(object, apiVersion)
	if err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	return must.Get(json.Marshal(foo))(t)
}

func TestFieldMoves(t *testing.T) {
	const rest = `,"metadata":{"name":"a","labels":{"deploymentName":"x"}},"status":{"replicas":2}}`
	for _, test := range []struct{ alpha, beta string }{
		{`{"deploymentName":"web","replicas":3}`, `{"deployment":{"name":"web"},"replicas":3}`},
		{`{"deploymentName":"web"}`, `{"deployment":{"name":"web"}}`},
		{`{"replicas":0}`, `{"replicas":0}`}, // a part of a Foo
		{`{}`, `{}`},
		{`{"deploymentName":"` + strings.Repeat("a", 253) + `"}`,
			`{"deployment":{"name":"` + strings.Repeat("a", 253) + `"}}`},
		{`{"deploymentName":null,"other":[1,{"deploymentName":2.5}]}`, // no version has the other field
			`{"deployment":{"name":null},"other":[1,{"deploymentName":2.5}]}`},
	} {
		asAlpha := `{"apiVersion":"` + alpha + `","kind":"Foo","spec":` + test.alpha + rest
		asBeta := `{"apiVersion":"` + beta + `","kind":"Foo","spec":` + test.beta + rest
		equalJSON(t, converted(t, []byte(asAlpha), beta), []byte(asBeta))
		equalJSON(t, converted(t, []byte(asBeta), alpha), []byte(asAlpha))
	}
}

// equalJSON fails unless both documents say the same.
func equalJSON(t *testing.T, got, want []byte) {
	t.Helper()
	var a, b any
	must.Do(t, json.Unmarshal(got, &a))
	must.Do(t, json.Unmarshal(want, &b))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatIsNoFooIsRefused(t *testing.T) {
	for object, to := range map[string]string{
		`{"apiVersion":"` + alpha + `","kind":"Bar"}`:             beta,
		`{"apiVersion":"` + alpha + `","kind":"Foo"}`:             "samplecontroller.k8s.io/v1",
		`{"apiVersion":"v1","kind":"Foo"}`:                        beta,
		`{"apiVersion":"` + alpha + `","kind":"Foo","spec":"no"}`: beta,
		`no JSON`: beta,
	} {
		if _, err := convert([]byte(object), to); err == nil {
			t.Errorf("%s to %s: no error", object, to)
		}
	}
}

// TestRoundTripsLoseNothing fills in every field that the Go types have, and goes there and back.
// Decoding is strict: a field that only one of the versions has is an error.
func TestRoundTripsLoseNothing(t *testing.T) {
	filler := randfill.NewWithSeed(1).NilChance(0.25).NumElements(0, 2).Funcs(
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(c.Int63n(1e10), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = *metav1.NewFieldsV1(`{"f:spec":{}}`) })
	for range 1000 {
		roundTrip[v1alpha1.Foo, v1beta1.Foo](t, filler, alpha, beta)
		roundTrip[v1beta1.Foo, v1alpha1.Foo](t, filler, beta, alpha)
	}
}

func roundTrip[A, B any](t *testing.T, filler *randfill.Filler, a, b string) {
	t.Helper()
	original := new(A)
	filler.Fill(original)
	typeMeta := reflect.ValueOf(metav1.TypeMeta{APIVersion: a, Kind: "Foo"})
	reflect.ValueOf(original).Elem().FieldByName("TypeMeta").Set(typeMeta)
	data := must.Get(json.Marshal(original))(t)
	there := new(B)
	decode(t, converted(t, data, b), there)
	data = must.Get(json.Marshal(there))(t)
	back := new(A)
	decode(t, converted(t, data, a), back)
	if !equality.Semantic.DeepEqual(original, back) {
		t.Fatalf("a Foo is another one after a round trip to %s:\n%s", b, diff.Diff(original, back))
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}
