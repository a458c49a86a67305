package apiserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// encode returns an object as the client wants it.
func (s *Server) encode(object *unstructured.Unstructured, accept string) []byte {
	if strings.Contains(accept, "as=PartialObjectMetadata") && object.GetKind() != "Status" {
		return marshal(map[string]any{"kind": "PartialObjectMetadata",
			"apiVersion": "meta.k8s.io/v1", "metadata": object.Object["metadata"]})
	}
	s.encodedMu.Lock()
	defer s.encodedMu.Unlock()
	text, kept := s.encoded[object]
	if text == nil {
		if text = marshal(object.Object); kept {
			s.encoded[object] = text
		}
	}
	return text
}

func marshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // what has come as JSON goes as JSON
	}
	return text
}

// encodeResponse returns the body of an answer.
func (s *Server) encodeResponse(response *Response, accept string) []byte {
	switch {
	case response.raw != nil:
		return response.raw
	case response.items == nil:
		return s.encode(response.Object, accept)
	}
	header := maps.Clone(response.Object.Object)
	delete(header, "items")
	if strings.Contains(accept, "as=PartialObjectMetadata") {
		header["kind"], header["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	text := append(bytes.TrimSuffix(marshal(header), []byte("}")), `,"items":[`...)
	for i, item := range response.items {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, s.encode(item, accept)...)
	}
	return append(text, "]}"...)
}
