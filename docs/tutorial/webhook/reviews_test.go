package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// post returns the code and the body of the answer to body.
func post(h http.Handler, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// toVersion converts objects that have only metadata. It refuses those that are named "bad".
func toVersion(object []byte, apiVersion string) (runtime.Object, error) {
	converted := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(object, converted); err != nil {
		return nil, err
	}
	if converted.Name == "bad" {
		return nil, errors.New("bad name")
	}
	converted.APIVersion = apiVersion
	return converted, nil
}

const conversionRequest = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",` +
	`"request":{"uid":"1","desiredAPIVersion":"example.com/v2","objects":[` +
	`{"kind":"Foo","apiVersion":"example.com/v1","metadata":{"name":"a"}},` +
	`{"kind":"Foo","apiVersion":"example.com/v1","metadata":{"name":"NAME"}}]}}`

func TestConversion(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"b", `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"1",` +
			`"convertedObjects":[{"kind":"Foo","apiVersion":"example.com/v2","metadata":{"name":"a"}},` +
			`{"kind":"Foo","apiVersion":"example.com/v2","metadata":{"name":"b"}}],` +
			`"result":{"metadata":{},"status":"Success"}}}`},
		{"bad", `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"1",` +
			`"convertedObjects":null,"result":{"metadata":{},"status":"Failure",` +
			`"message":"object 1: bad name"}}}`},
	} {
		code, got := post(Conversion(toVersion), strings.Replace(conversionRequest, "NAME", test.name, 1))
		if code != http.StatusOK || got != test.want {
			t.Errorf("%s: got %d\n%s\nwant\n%s", test.name, code, got, test.want)
		}
	}
}

func TestAdmission(t *testing.T) {
	handler := Admission(func(
		_ context.Context, r *admissionv1.AdmissionRequest,
	) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: r.Name == "good"}
	})
	code, got := post(handler, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`+
		`"request":{"uid":"1","name":"good"}}`)
	want := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",` +
		`"response":{"uid":"1","allowed":true}}`
	if code != http.StatusOK || got != want {
		t.Errorf("got %d %s, want %s", code, got, want)
	}
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	admit := func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		t.Error("admit was called")
		return nil
	}
	tooLarge := `{"request":{}}` + strings.Repeat(" ", maxReview)
	for _, body := range []string{"", "[]", "{}", `{"kind":"AdmissionReview"}`, tooLarge} {
		for name, h := range map[string]http.Handler{
			"conversion": Conversion(toVersion), "admission": Admission(admit),
		} {
			code, answer := post(h, body)
			if code != http.StatusBadRequest || !strings.Contains(answer, "no review") {
				t.Errorf("%s of %.20q: got %d %s", name, body, code, answer)
			}
		}
	}
}
