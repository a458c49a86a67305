package apiserver

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// view returns an object that is stored in the version of a kind.
func (s *Server) view(k *kind, object *unstructured.Unstructured) *unstructured.Unstructured {
	return converted(object, k.gvk.GroupVersion().String())
}

// stored returns an object in the version in which it is stored.
func (s *Server) stored(k *kind, object *unstructured.Unstructured) *unstructured.Unstructured {
	return converted(object, k.storage.GroupVersion().String())
}

// converted returns an object in another version.
func converted(object *unstructured.Unstructured, apiVersion string) *unstructured.Unstructured {
	if object.GetAPIVersion() == apiVersion {
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
func (s *Server) withRevision(object *unstructured.Unstructured, revision int64) *unstructured.Unstructured {
	content := maps.Clone(object.Object)
	metadata := maps.Clone(content["metadata"].(map[string]any))
	metadata["resourceVersion"] = strconv.FormatInt(revision, 10)
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// suffix returns what makes a name of a generateName: always the next of the same sequence.
func (s *Server) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	s.suffixes++
	result := make([]byte, 5)
	for i, n := 0, s.suffixes*2654435761; i < len(result); i, n = i+1, n/int64(len(letters)) {
		result[i] = letters[n%int64(len(letters))]
	}
	return string(result)
}
