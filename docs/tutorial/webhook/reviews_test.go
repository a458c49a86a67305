package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/internal/testing/must"
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
	for _, body := range []string{"", "[]", "{}", `{"kind":"AdmissionReview"}`} {
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

// decoding is an Admission that decodes the object, and allows it if there is one.
func decoding(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	err := json.Unmarshal(r.Object.Raw, &metav1.PartialObjectMetadata{})
	return &admissionv1.AdmissionResponse{Allowed: err == nil}
}

// asIs is a Convert that decodes the object, and changes nothing.
func asIs(object []byte, _ string) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(object)
}

// filled returns a text of that size: before, then unit again and again, then after.
func filled(size int, before, unit, after string) string {
	n := (size - len(before) - len(after)) / len(unit)
	return before + strings.TrimSuffix(strings.Repeat(unit, n), ",") + after
}

func TestReviewsThatNeedTooMuchAreRefused(t *testing.T) {
	h := Admission(decoding)
	const before, after = `{"request":{"uid":"1","userInfo":{"groups":["`, `"]}}}`
	for _, test := range []struct {
		name, body string
		length     int64
		want       int
	}{
		{"no length", "{}", -1, http.StatusRequestEntityTooLarge},
		{"16 MiB", filled(maxReview, before, "a", after), 0, http.StatusOK},
		{"more", filled(maxReview+1, before, "a", after), 0, http.StatusRequestEntityTooLarge},
		{"4 MiB of tiny values", filled(4<<20, before, `","`, after), 0,
			http.StatusRequestEntityTooLarge},
		{"4 MiB of tiny objects", strings.Repeat(`{"":`, 1<<20), 0, http.StatusRequestEntityTooLarge},
		{"all that an API server can store", filled(3<<19, before, `","`, after), 0, http.StatusOK},
		{"less than it says", "{}", 9, http.StatusBadRequest},
	} {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body))
		if test.length != 0 {
			request.ContentLength = test.length
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request)
		if w.Code != test.want {
			t.Errorf("%s: got code %d %s, want %d", test.name, w.Code, w.Body, test.want)
		}
		if ends := w.Header().Get("Connection") == "close"; ends != (test.want != http.StatusOK) {
			t.Errorf("%s: the connection ends: %v", test.name, ends)
		}
	}
	if !memory.TryAcquire(maxMemory) {
		t.Fatal("not all memory is given back")
	}
	memory.Release(maxMemory)
}

func TestReviewsWaitForMemoryOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		must.Do(t, memory.Acquire(t.Context(), maxMemory))
		defer memory.Release(maxMemory)
		start := time.Now()
		code, _ := post(Admission(decoding), `{"request":{"uid":"1"}}`)
		if took := time.Since(start); code != http.StatusServiceUnavailable || took != 10*time.Second {
			t.Errorf("got code %d after %v, want 503 after 10s", code, took)
		}
	})
}

// TestFloodOfReviewsHasRoomInItsContainer sends the reviews that take most to a process of its own.
func TestFloodOfReviewsHasRoomInItsContainer(t *testing.T) {
	const variable, metadata = "TEST_FLOOD_OF_REVIEWS", `{"request":{"object":{"metadata":{`
	if os.Getenv(variable) == "" {
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		command.Env = append(os.Environ(), variable+"=1", "GOMEMLIMIT=400MiB") // as in a manifest
		output, err := command.CombinedOutput()
		t.Logf("%s", output)
		must.Do(t, err)
		return
	}
	info, _ := debug.ReadBuildInfo()
	if _, err := os.Stat("/proc/self/status"); err != nil ||
		slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("this system has no /proc, or the race detector takes memory, too")
	}
	nested := strings.Repeat(`{"":`, 500) + "{}" + strings.Repeat("}", 500) + ","
	admission, conversion := Admission(decoding), Conversion(asIs)
	var wg sync.WaitGroup
	for size, times := range map[int]int{64 << 10: 50, 2500 << 10: 2} {
		for range times {
			for body, h := range map[string]http.Handler{
				filled(size, metadata+`"managedFields":[`, "{},", "]}}}}"):                     admission,
				filled(size, metadata+`"ownerReferences":[`, "null,", "]}}}}"):                 admission,
				filled(size, `{"request":{"objects":[{"kind":"Foo","spec":[`, nested, "]}]}}"): conversion,
			} {
				wg.Go(func() {
					code, answer := post(h, body)
					if code != http.StatusOK && code != http.StatusServiceUnavailable {
						t.Errorf("got code %d %s", code, answer)
					}
				})
			}
		}
	}
	wg.Wait()
	status := must.Get(os.ReadFile("/proc/self/status"))(t)
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	used := must.Get(strconv.Atoi(string(peak[1])))(t)
	t.Logf("the process had up to %d MiB", used>>10)
	if used > 480<<10 {
		t.Errorf("the process had %d MiB, want at most 480", used>>10)
	}
}
