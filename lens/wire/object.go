package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// content is what is read of an object, of whatever kind it is.
type content struct {
	Kind     string
	Metadata *metav1.ObjectMeta
	Spec     struct {
		Replicas any // a number in most kinds
		Selector struct{ MatchLabels map[string]string }
	}
	Status json.RawMessage // in a Status, it is a string
	// These are of a Status.
	Code   int
	Reason string
	// These are of an Event, in its two versions.
	Regarding, InvolvedObject *Owner
}

// ObjectOf returns what a picture needs to know of an object. It returns nil if object has no
// metadata. It takes off the managedFields, which are long.
func ObjectOf(resource string, object runtime.Object) *Object {
	c := contentOf(object)
	return c.object(resource)
}

// contentOf reads an object of any type.
func contentOf(object runtime.Object) (c content) {
	if accessor, err := meta.Accessor(object); err == nil {
		entries := accessor.GetManagedFields()
		for i := range entries {
			entries[i].FieldsV1 = nil // long, and not needed
		}
		accessor.SetManagedFields(entries)
	}
	if data, err := json.Marshal(object); err == nil {
		unmarshal(data, &c)
	}
	return c
}

// object returns nil if c is not the content of an object.
func (c *content) object(resource string) *Object {
	if c.Metadata == nil || c.Kind == "Status" {
		return nil
	}
	o := &Object{
		Resource: resource, Kind: c.Kind, Namespace: c.Metadata.Namespace, Name: c.Metadata.Name,
		UID: string(c.Metadata.UID), ResourceVersion: c.Metadata.ResourceVersion,
		Deleting: c.Metadata.DeletionTimestamp != nil,
		Summary:  c.summary(), Owner: cmp.Or(c.Regarding, c.InvolvedObject),
		Selects: slices.Sorted(maps.Values(c.Spec.Selector.MatchLabels)),
	}
	if owner := metav1.GetControllerOf(c.Metadata); owner != nil {
		o.Owner = &Owner{owner.Kind, owner.Name, string(owner.UID)}
	}
	for _, entry := range c.Metadata.ManagedFields {
		if entry.Time == nil {
			continue
		}
		if entry.Time.After(o.Written) {
			o.Written, o.Managers = entry.Time.UTC(), nil
		}
		if entry.Time.Time.Equal(o.Written) && !slices.Contains(o.Managers, entry.Manager) {
			o.Managers = append(o.Managers, entry.Manager)
		}
	}
	return o
}

func (c *content) summary() string {
	var status struct {
		AvailableReplicas int64
		Conditions        []struct{ Type, Status, Reason string }
	}
	unmarshal(c.Status, &status)
	for _, condition := range status.Conditions {
		switch {
		case condition.Type != "Ready":
		case condition.Status == "True":
			return "Ready"
		case condition.Reason == "":
			return "Ready " + condition.Status
		default:
			return "Ready " + condition.Status + ": " + condition.Reason
		}
	}
	switch replicas, ok := c.Spec.Replicas.(float64); {
	case !ok, c.Kind == "Scale": // a Scale does not say what is available
		return ""
	case slices.Contains([]string{"", "null", "{}"}, string(c.Status)):
		return "no status yet"
	default:
		return fmt.Sprintf("%d of %.0f available", status.AvailableReplicas, replicas)
	}
}

// unmarshal reads JSON. A field that has another type than usual stays empty.
func unmarshal(data []byte, into any) { _ = json.Unmarshal(data, into) }

// decode reads an object. What it cannot read stays empty.
func decode(data []byte, mediaType string) (c content) {
	switch mediaType {
	case runtime.ContentTypeJSON, string(types.ApplyPatchType):
		unmarshal(data, &c)
	case runtime.ContentTypeProtobuf: // a request about a type that client-go knows
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err == nil {
			c = contentOf(object)
		}
	}
	return c
}

// mediaType returns the Content-Type without parameters.
func mediaType(header http.Header) string {
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type")) // empty if it is wrong
	return mediaType
}
