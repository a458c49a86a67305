package wire

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
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
	withoutType := object.DeepCopy()
	withoutType.TypeMeta = metav1.TypeMeta{} // as typed clients return it
	for name, object := range map[string]runtime.Object{
		"typed": object, "without its type": withoutType,
		"unstructured": &unstructured.Unstructured{Object: fields},
	} {
		if got := ObjectOf("deployments.apps", object); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestOwnerOfAnEventIsWhatItIsAbout(t *testing.T) {
	about := corev1.ObjectReference{Kind: "Foo", Namespace: "a", Name: "b", UID: types.UID("c")}
	for _, event := range []runtime.Object{
		&eventsv1.Event{Regarding: about, Reason: "Synced", Note: "All is well"},
		&corev1.Event{InvolvedObject: about, Reason: "Synced", Message: "All is well"},
	} {
		got := ObjectOf("events", event)
		want := &Object{Resource: "events", Kind: "Event", Summary: "Synced: All is well",
			Owner: &Owner{Kind: "Foo", Name: "b", UID: "c"}}
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
		for _, mediaType := range []string{jsonType, protobufType} {
			c := decode(encode(t, mediaType, object), mediaType, "")
			got := c.object("deployments.apps")
			if fmt.Sprint(got.Managers) != want || want != "[]" && !got.Written.Equal(late) {
				t.Errorf("%s: got %v at %v, want %s", mediaType, got.Managers, got.Written, want)
			}
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
	if got := ObjectOf("", &autoscalingv1.Scale{}); got == nil || got.Kind != "Scale" {
		t.Errorf("got %+v, want a Scale", got)
	}
}
