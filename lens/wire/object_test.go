package wire

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/testing/must"
)

func TestObjectOf(t *testing.T) {
	object := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "b", UID: "c", ResourceVersion: "12",
			DeletionTimestamp: new(metav1.Now()),
			OwnerReferences: []metav1.OwnerReference{
				{Kind: "Bar", Name: "another"},
				{Kind: "Foo", Name: "d", UID: "e", Controller: new(true)},
			},
		},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"g": "f"}}},
		Status: appsv1.DeploymentStatus{AvailableReplicas: 2},
	}
	want := &Object{
		Resource: "deployments.apps", Kind: "Deployment", Namespace: "a", Name: "b", UID: "c",
		ResourceVersion: "12", Deleting: true,
		Owner:   &Owner{Kind: "Foo", Name: "d", UID: "e"},
		Selects: []string{"f"}, Summary: "2 of 3 available",
	}
	fields := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(object))(t)
	for name, object := range map[string]runtime.Object{
		"typed": object, "unstructured": &unstructured.Unstructured{Object: fields},
	} {
		if got := ObjectOf("deployments.apps", object); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestOwnerOfAnEventIsWhatItIsAbout(t *testing.T) {
	about := corev1.ObjectReference{Kind: "Foo", Namespace: "a", Name: "b", UID: types.UID("c")}
	for _, event := range []runtime.Object{
		&eventsv1.Event{Regarding: about}, &corev1.Event{InvolvedObject: about},
	} {
		got := ObjectOf("events", event)
		want := &Object{Resource: "events", Owner: &Owner{Kind: "Foo", Name: "b", UID: "c"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %+v, want %+v", event, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	conditions := func(status, reason string) map[string]any {
		return map[string]any{"availableReplicas": int64(1), "conditions": []any{
			map[string]any{"type": "Progressing", "status": "True", "reason": "Other"},
			map[string]any{"type": "Ready", "status": status, "reason": reason},
		}}
	}
	two := map[string]any{"replicas": int64(2)}
	for _, test := range []struct {
		kind         string
		spec, status any
		want         string
	}{
		{"Foo", two, conditions("True", "Available"), "Ready"},
		{"Foo", two, conditions("False", "DeploymentNameTaken"), "Ready False: DeploymentNameTaken"},
		{"Foo", two, conditions("Unknown", ""), "Ready Unknown"},
		{"Deployment", two, map[string]any{"availableReplicas": int64(1)}, "1 of 2 available"},
		{"Deployment", two, nil, "no status yet"},
		{"Foo", two, map[string]any{}, "no status yet"},
		{"Deployment", two, map[string]any{"observedGeneration": int64(1)}, "0 of 2 available"},
		{"Deployment", two, map[string]any{"conditions": []any{
			map[string]any{"type": "Available", "status": "True"},
		}}, "0 of 2 available"},
		{"Scale", two, map[string]any{"replicas": int64(2)}, ""},
		{"ConfigMap", nil, nil, ""},
		{"Odd", map[string]any{"replicas": "many"}, "fine", ""},
		{"Odd", "none", map[string]any{"conditions": "fine"}, ""},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"kind": test.kind, "metadata": map[string]any{"name": "a"},
			"spec": test.spec, "status": test.status,
		}}
		if got := ObjectOf("", object).Summary; got != test.want {
			t.Errorf("%s, spec %v, status %v: got %q, want %q",
				test.kind, test.spec, test.status, got, test.want)
		}
	}
}

func TestNewestManagedFieldsTellWhoHasWritten(t *testing.T) {
	early := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	late := early.Add(time.Second)
	entry := func(manager string, at time.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: new(metav1.NewTime(at)),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}
	}
	for want, entries := range map[string][]metav1.ManagedFieldsEntry{
		"[]":    nil,
		"[b]":   {entry("a", early), entry("b", late), entry("c", early)},
		"[b c]": {entry("b", late), entry("c", late), entry("c", late), entry("a", early)},
	} {
		object := &appsv1.Deployment{TypeMeta: typeMeta,
			ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: entries}}
		got := ObjectOf("deployments.apps", object)
		if fmt.Sprint(got.Managers) != want || want != "[]" && !got.Written.Equal(late) {
			t.Errorf("got %v at %v, want %s", got.Managers, got.Written, want)
		}
	}
}

func TestObjectOfWhatIsNotAnObject(t *testing.T) {
	for _, object := range []runtime.Object{
		&metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}}, &metav1.DeleteOptions{},
	} {
		if got := ObjectOf("pods", object); got != nil {
			t.Errorf("%T: got %+v, want nil", object, got)
		}
	}
}

func TestRequested(t *testing.T) {
	const apps, foos = "/apis/apps/v1", "/apis/samplecontroller.k8s.io/v1alpha1"
	for request, want := range map[string]string{ // verb, version, resource, namespace/name/subresource
		"GET /version":                                          "get",
		"GET /api/v1/pods?watch=false":                          "list v1 pods",
		"GET " + foos + "/namespaces/a/foos?watch=true":         "watch v1alpha1 foos.samplecontroller.k8s.io a",
		"GET " + foos + "/foos?fieldSelector=metadata.name%3Db": "list v1alpha1 foos.samplecontroller.k8s.io",
		"PUT " + foos + "/namespaces/a/foos/b/status":           "update v1alpha1 foos.samplecontroller.k8s.io a/b/status",
		"DELETE " + apps + "/namespaces/a/deployments":          "deletecollection v1 deployments.apps a",
		"GET /api/v1/namespaces/a":                              "get v1 namespaces /a",
		"PUT /api/v1/namespaces/a/finalize":                     "update v1 namespaces /a/finalize",
	} {
		method, target, _ := strings.Cut(request, " ")
		e := requested(httptest.NewRequest(method, target, nil))
		got := fmt.Sprintf("%s %s %s %s/%s/%s", e.Verb, e.Version, e.Resource, e.Namespace, e.Name, e.Subresource)
		if got = strings.TrimRight(got, " /"); got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}

func TestWhatIsHeldAndWhatIsAWrite(t *testing.T) {
	for what, want := range map[string][2]bool{ // held, and a write
		"get ":                              {false, false},
		"update leases.coordination.k8s.io": {false, false},
		"get foos.samplecontroller.k8s.io":  {true, false},
		"list pods":                         {true, false},
		"watch pods":                        {true, false},
		"create events":                     {true, false},
		"patch events.events.k8s.io":        {true, false},
		"create tokenreviews.authentication.k8s.io": {true, false},
		"create deployments.apps":                   {true, true},
		"update deployments.apps":                   {true, true},
		"patch deployments.apps":                    {true, true},
		"delete deployments.apps":                   {true, true},
		"deletecollection deployments.apps":         {true, true},
	} {
		var e Event
		e.Verb, e.Resource, _ = strings.Cut(what, " ")
		if got := [2]bool{e.mayBeHeld(), e.isWrite()}; got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
}

func TestHowARequestEnds(t *testing.T) {
	notFound := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "metadata": {}, "reason": "NotFound", "code": 404}`)
	}
	breaks := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	for name, test := range map[string]struct {
		query  string
		answer http.HandlerFunc // nil: there is no API server
		code   int
		reason string
	}{
		"refused":         {"/b", notFound, 404, "NotFound"},
		"a watch refused": {"?watch=true", notFound, 404, "NotFound"},
		"no API server":   {"/b", nil, 0, "connection refused"},
		"a broken answer": {"/b", breaks, 0, io.ErrUnexpectedEOF.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			l := startLine(t, test.answer)
			if test.answer == nil {
				l.api.Close()
			}
			response, err := l.do(http.MethodGet, deploymentsPath+test.query, "", nil)
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			if (err != nil) != (test.code == 0) {
				t.Errorf("got the error %v", err)
			}
			e := l.awaitKind(1, Answered)[0]
			if e.Code != test.code || !strings.Contains(e.Reason, test.reason) ||
				e.Object != nil || e.Injected {
				t.Errorf("got %+v, want %d, %s", e, test.code, test.reason)
			}
			if e.Verb == "watch" {
				l.awaitKind(1, WatchClosed) // each watch ends with it
			}
		})
	}
}
