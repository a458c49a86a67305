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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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

	List   metav1.ListOptions // of list, watch and deletecollection
	Delete metav1.DeleteOptions
	Force  bool
	DryRun bool
	// FieldManager is that of the options, or else the beginning of the user agent.
	FieldManager string

	// AsOf, if it is not 0, is the revision that a list, or the initial events of a stream, show: an
	// API server that lags behind etcd. A watch from a resourceVersion is not affected.
	AsOf int64

	kind        *kind
	list        internalversion.ListOptions
	accept      string
	context     context.Context
	interceptor Interceptor
}

// parse understands a request. An error without a status has the code 400.
func (s *Server) parse(r *http.Request, body []byte) (*Request, error) {
	query := r.URL.Query()
	request := &Request{Path: r.URL.Path, accept: r.Header.Get("Accept"),
		DryRun: query.Get("dryRun") == metav1.DryRunAll, Force: query.Get("force") == "true",
		FieldManager: query.Get("fieldManager")}
	options := &metav1.PatchOptions{FieldManager: request.FieldManager}
	if request.FieldManager == "" {
		request.FieldManager, _, _ = strings.Cut(r.UserAgent(), "/")
	}
	if query.Has("force") {
		options.Force = &request.Force
	}
	if a := request.accept; strings.Contains(a, "protobuf") && !strings.Contains(a, "json") &&
		!strings.Contains(a, "*/*") {
		return nil, refusal(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"this server answers in JSON; it reads Protocol Buffers")
	}
	if dryRun := query.Get("dryRun"); dryRun != "" && !request.DryRun {
		return nil, fmt.Errorf("dryRun: Unsupported value: %s", dryRun)
	}
	if err := request.parsePath(s, r); err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch request.Verb {
	case "list", "watch":
		return request, request.parseList(query)
	case "patch":
		return request, request.parsePatch(body, types.PatchType(media), options)
	case "create", "update":
		return request, request.parseBody(body, media)
	case "deletecollection":
		if err := request.parseList(query); err != nil {
			return nil, err
		}
		fallthrough
	case "delete":
		return request, request.parseDelete(body, media, query)
	}
	return request, nil
}

var infos = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// nameless are the verbs of requests whose path has no name of an object.
var nameless = []string{"create", "list", "watch", "deletecollection"}

// parsePath understands the path and the method.
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
	case k == nil, !k.namespaced && r.Namespace != "", !k.has(r.Subresource):
		return notFound()
	case r.Verb == "", r.Verb == "delete" && r.Subresource != "", k.review != "" && r.Verb != "create",
		(r.Name == "") != slices.Contains(nameless, r.Verb):
		return apierrors.NewMethodNotSupported(r.Resource.GroupResource(), from.Method)
	}
	return nil
}

// has reports whether a kind has a subresource. Each has the one without a name.
func (k *kind) has(subresource string) bool {
	switch subresource {
	case "status":
		return k.status
	case "scale":
		return k.scale != nil
	case "finalize":
		return k.gvr == namespaces
	}
	return subresource == ""
}

// parseList understands the options of a list.
func (r *Request) parseList(query url.Values) error {
	err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &r.List, nil)
	if err == nil {
		err = internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&r.List, &r.list, nil)
	}
	if err != nil {
		return err
	}
	for _, requirement := range r.list.FieldSelector.Requirements() {
		name := requirement.Field
		if name != "metadata.name" && name != "metadata.namespace" &&
			!slices.Contains(r.kind.fields, name) {
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

// parseBody understands an object.
func (r *Request) parseBody(body []byte, media string) error {
	object, err := readObject(body, media)
	if err != nil {
		return err
	}
	mustSay := r.kind.custom != nil || r.PatchType == types.ApplyYAMLPatchType
	if object == nil || mustSay && object["kind"] == nil {
		return errNoKind
	}
	r.Body = &unstructured.Unstructured{Object: object}
	if r.Verb == "create" {
		r.Name = r.Body.GetName()
	}
	gvk := r.kind.gvk
	if r.Subresource == "scale" {
		gvk = scaleKind
	}
	return checkKind(object, gvk)
}

// checkKind sets the kind of an object that has none, and refuses another one.
func checkKind(object map[string]any, want schema.GroupVersionKind) error {
	apiVersion, kind := want.ToAPIVersionAndKind()
	setDefaults(object, map[string]any{"apiVersion": apiVersion, "kind": kind})
	if object["apiVersion"] != apiVersion || object["kind"] != kind {
		return apierrors.NewBadRequest(fmt.Sprintf("%v in version %v cannot be handled as a %s in %s",
			object["kind"], object["apiVersion"], kind, apiVersion))
	}
	return nil
}

// parsePatch understands a patch.
func (r *Request) parsePatch(
	body []byte, media types.PatchType, options *metav1.PatchOptions,
) error {
	r.Patch, r.PatchType = body, media
	if errs := validation.ValidatePatchOptions(options, media); len(errs) > 0 {
		return apierrors.NewInvalid(metav1.Kind("PatchOptions"), "", errs)
	}
	switch {
	case media == types.ApplyYAMLPatchType:
		return r.parseBody(body, string(media))
	case media == types.JSONPatchType, media == types.MergePatchType,
		media == types.StrategicMergePatchType && r.kind.custom == nil:
		return nil
	}
	return errFormat
}

// parseDelete understands the options of a delete, in the body or in the query.
func (r *Request) parseDelete(body []byte, media string, query url.Values) error {
	if len(body) == 0 {
		return metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &r.Delete, nil)
	}
	object, err := readObject(body, media)
	if err != nil {
		return err
	}
	err = converter.FromUnstructured(object, &r.Delete)
	r.DryRun = len(r.Delete.DryRun) > 0
	return err
}
