package apiserver

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Request is a request, understood.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection. It is empty for
	// discovery, /version and the like.
	Verb                         string
	Path                         string
	Resource                     schema.GroupVersionResource
	Subresource, Namespace, Name string // Name also for a create with metadata.name

	Body      *unstructured.Unstructured // of create, update and apply
	Patch     []byte
	PatchType types.PatchType

	List    internalversion.ListOptions // of list, watch and deletecollection
	Delete  metav1.DeleteOptions
	Options metav1.PatchOptions // of all writes

	// AsOf, if it is not 0, is the revision that a list, or the initial events of a stream, show: an
	// API server that lags behind etcd. A watch from a resourceVersion is not affected.
	AsOf int64

	kind        *kind
	malformed   error // what is wrong with the Body, if that matters later
	accept      string
	context     context.Context
	interceptor Interceptor
}

// Interceptor returns what stands between the server and the client that made the request, or nil.
func (r *Request) Interceptor() Interceptor { return r.interceptor }

// IsCustom reports whether the request is about a resource of a CustomResourceDefinition.
func (r *Request) IsCustom() bool { return r.kind != nil && r.kind.custom != nil }

func (r *Request) isApply() bool  { return r.PatchType == types.ApplyYAMLPatchType }
func (r *Request) isDryRun() bool { return len(r.Options.DryRun) > 0 }

func (r *Request) notFound() error {
	return apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
}

func (r *Request) conflict(why string) error {
	return apierrors.NewConflict(r.Resource.GroupResource(), r.Name, errors.New(why))
}

// parse understands a request. An error without a status has the code 400.
func (s *Server) parse(from *http.Request, body []byte) (*Request, error) {
	r := &Request{Path: from.URL.Path, accept: from.Header.Get("Accept")}
	if err := r.parsePath(s, from); err != nil {
		return nil, err
	}
	query := from.URL.Query()
	media, _, _ := mime.ParseMediaType(from.Header.Get("Content-Type"))
	err := metav1.Convert_url_Values_To_v1_PatchOptions(&query, &r.Options, nil)
	if err == nil && slices.Contains(manyObjects, r.Verb) {
		err = r.parseList(query)
	}
	switch {
	case err != nil:
	case strings.HasPrefix(r.Verb, "delete"):
		err = r.parseDelete(body, media, query)
	case r.Verb == "create" || r.Verb == "update" || r.Verb == "patch":
		err = r.parseWrite(body, media)
	}
	if r.Options.FieldManager == "" {
		r.Options.FieldManager, _, _ = strings.Cut(from.UserAgent(), "/")
	}
	return r, err
}

var infos = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// manyObjects are the verbs of requests that are about all objects that they select.
var manyObjects = []string{"list", "watch", "deletecollection"}

func (r *Request) parsePath(s *Server, from *http.Request) error {
	info, err := infos.NewRequestInfo(from)
	if err != nil || !info.IsResourceRequest {
		return err
	}
	r.Verb, r.Name, r.Subresource, r.Namespace = info.Verb, info.Name, info.Subresource, info.Namespace
	r.Resource = schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion,
		Resource: info.Resource}
	if r.Verb == "list" || r.Verb == "watch" {
		r.Name = "" // it is that of a selector
	}
	if r.Resource == namespaces {
		r.Namespace = ""
	}
	r.kind = s.kinds[r.Resource]
	switch k := r.kind; {
	case k == nil, !k.Namespaced && r.Namespace != "", r.Subresource != "" && !k.has(r.Subresource):
		return errNotServed
	case r.Verb == "", r.Verb == "delete" && r.Subresource != "",
		(r.Name == "") != (r.Verb == "create" || slices.Contains(manyObjects, r.Verb)):
		return apierrors.NewMethodNotSupported(r.Resource.GroupResource(), from.Method)
	}
	return nil
}

func (r *Request) parseList(query url.Values) error {
	// It decodes nothing if there is no option at all.
	r.List.LabelSelector, r.List.FieldSelector = labels.Everything(), fields.Everything()
	err := internalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &r.List)
	if err != nil {
		return err
	}
	for _, requirement := range r.List.FieldSelector.Requirements() {
		name := requirement.Field
		if name != "metadata.name" && name != "metadata.namespace" &&
			!slices.Contains(r.kind.Fields, name) {
			return fmt.Errorf("field label not supported: %s", name)
		}
	}
	return nil
}

var (
	protobufSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

	errNoKind = errors.New("the object has no kind")
	errFormat = refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format")
)

// readObject reads an object in one of the formats that there are.
func readObject(body []byte, media string) (object map[string]any, err error) {
	switch media {
	case runtime.ContentTypeProtobuf:
		typed, _, err := protobufSerializer.Decode(body, nil, nil)
		if err != nil {
			return nil, err
		}
		return converter.ToUnstructured(typed)
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		body, err = yaml.YAMLToJSONStrict(body)
	case runtime.ContentTypeJSON, "":
	default:
		return nil, errFormat
	}
	if err == nil {
		err = json.Unmarshal(body, &object)
	}
	return object, err
}

func (r *Request) parseWrite(body []byte, media string) error {
	patchType := types.PatchType(media)
	if errs := validation.ValidatePatchOptions(&r.Options, patchType); len(errs) > 0 {
		return apierrors.NewInvalid(metav1.Kind("PatchOptions"), "", errs)
	}
	if r.Verb != "patch" {
		return r.parseBody(body, media)
	}
	r.Patch, r.PatchType = body, patchType
	switch patchType {
	case types.ApplyYAMLPatchType:
		r.malformed = r.parseBody(body, media)
		if r.Subresource == "" { // otherwise, it matters only if there is the object
			return r.malformed
		}
		return nil
	case types.JSONPatchType, types.MergePatchType:
		return nil
	case types.StrategicMergePatchType:
		if r.kind.custom == nil {
			return nil
		}
	}
	return errFormat
}

func (r *Request) parseBody(body []byte, media string) error {
	object, err := readObject(body, media)
	if err == nil {
		err = r.checkKind(object)
	}
	if err != nil {
		return err
	}
	r.Body = &unstructured.Unstructured{Object: object}
	if r.Verb == "create" {
		r.Name = r.Body.GetName()
	}
	return nil
}

// checkKind sets the kind of an object that has none, and may have none. It refuses another one.
func (r *Request) checkKind(object map[string]any) error {
	mustSayIt := r.kind.custom != nil || r.isApply()
	if kind := object["kind"]; object == nil || mustSayIt && (kind == nil || kind == "") {
		return errNoKind
	}
	apiVersion, kind := r.kind.gvk.ToAPIVersionAndKind()
	setDefaults(object, map[string]any{"apiVersion": apiVersion, "kind": kind})
	if object["apiVersion"] != apiVersion || object["kind"] != kind {
		return apierrors.NewBadRequest(fmt.Sprintf("%v in version %v cannot be handled as a %s in %s",
			object["kind"], object["apiVersion"], kind, apiVersion))
	}
	return nil
}

// decode brings an object that a client has sent into the form in which it is kept.
func (r *Request) decode(object *unstructured.Unstructured) error {
	err := r.kind.canonical(object.Object)
	if err == nil && r.kind.custom != nil {
		err = r.kind.custom.complete(object.Object)
	}
	return err
}

// parseDelete understands the options of a delete, in the body or in the query.
func (r *Request) parseDelete(body []byte, media string, query url.Values) error {
	if len(body) == 0 {
		return metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &r.Delete, nil)
	}
	object, err := readObject(body, media)
	if err == nil {
		err = converter.FromUnstructured(object, &r.Delete)
	}
	r.Options.DryRun = r.Delete.DryRun
	return err
}
