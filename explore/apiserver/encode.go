package apiserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

var protobufSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// mediaType returns the type of an answer: JSON, unless the client cannot read it.
func mediaType(accept string) string {
	if strings.Contains(accept, "protobuf") && !strings.Contains(accept, "json") &&
		!strings.Contains(accept, "*/*") {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// encode returns an object as the client wants it.
func (s *Server) encode(object *unstructured.Unstructured, accept string) []byte {
	if strings.Contains(accept, "as=PartialObjectMetadata") && object.GetKind() != "Status" {
		return marshal(map[string]any{"kind": "PartialObjectMetadata",
			"apiVersion": "meta.k8s.io/v1", "metadata": object.Object["metadata"]})
	}
	if mediaType(accept) == runtime.ContentTypeProtobuf {
		return encodeProtobuf(object.Object)
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

// encodeProtobuf returns an object of the scheme as a Protocol Buffer; anything else, as JSON.
func encodeProtobuf(content map[string]any) []byte {
	gvk := (&unstructured.Unstructured{Object: content}).GroupVersionKind()
	object, err := scheme.Scheme.New(gvk)
	if err == nil {
		err = converter.FromUnstructured(content, object)
	}
	var buffer bytes.Buffer
	if err == nil {
		err = protobufSerializer.Encode(object, &buffer)
	}
	if err != nil {
		return marshal(content)
	}
	return buffer.Bytes()
}

// encodeResponse returns the body of an answer.
func (s *Server) encodeResponse(response *Response, accept string) []byte {
	switch {
	case response.raw != nil:
		return response.raw
	case response.items == nil || mediaType(accept) == runtime.ContentTypeProtobuf:
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

// frame appends an event as the stream of a watch has it.
func frame(buffer []byte, eventType watch.EventType, object []byte, media string) []byte {
	if media == runtime.ContentTypeJSON {
		buffer = append(buffer, `{"type":"`+string(eventType)+`","object":`...)
		return append(append(buffer, object...), "}\n"...)
	}
	event := metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: object}}
	body, _ := event.Marshal() // it writes to memory
	return append(binary.BigEndian.AppendUint32(buffer, uint32(len(body))), body...)
}
