package apiserver

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// view returns an object that is stored in the version of a kind, or nil if there is none.
func (k *kind) view(object *unstructured.Unstructured) *unstructured.Unstructured {
	return converted(object, k.gvk.GroupVersion().String())
}

// converted returns an object in another version.
func converted(object *unstructured.Unstructured, apiVersion string) *unstructured.Unstructured {
	if object == nil || object.GetAPIVersion() == apiVersion {
		return object
	}
	content := maps.Clone(object.Object)
	for _, names := range eventFields {
		switch apiVersion {
		case "v1":
			rename(content, names[1], names[0])
		case "events.k8s.io/v1":
			rename(content, names[0], names[1])
		}
	}
	content["apiVersion"] = apiVersion
	return &unstructured.Unstructured{Object: content}
}

// eventFields are the fields of an Event whose names differ in v1 and in events.k8s.io/v1.
var eventFields = [][2]string{{"involvedObject", "regarding"}, {"message", "note"},
	{"source", "deprecatedSource"}, {"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"}, {"count", "deprecatedCount"},
	{"reportingComponent", "reportingController"}}

func rename(content map[string]any, from, to string) {
	if value, ok := content[from]; ok {
		delete(content, from)
		content[to] = value
	}
}

// withRevision returns an object that says it is of this revision.
func withRevision(object *unstructured.Unstructured, revision int64) *unstructured.Unstructured {
	content := maps.Clone(object.Object)
	content["metadata"] = maps.Clone(content["metadata"].(map[string]any))
	object = &unstructured.Unstructured{Object: content}
	object.SetResourceVersion(strconv.FormatInt(revision, 10))
	return object
}
