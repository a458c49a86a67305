package apiserver

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
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
	Labels labels.Selector
	Fields fields.Selector
	Delete metav1.DeleteOptions
	Force  bool
	DryRun bool
	// FieldManager is that of the options, or else the beginning of the user agent.
	FieldManager string

	// AsOf, if it is not 0, is the revision that a list, or the initial events of a stream, show: an
	// API server that lags behind etcd. A watch from a resourceVersion is not affected.
	AsOf int64

	kind   *kind
	accept string
}

// parse understands a request.
func (s *Server) parse(r *http.Request, body []byte) (*Request, error) {
	query := r.URL.Query()
	request := &Request{Path: r.URL.Path, accept: r.Header.Get("Accept"),
		DryRun: query.Get("dryRun") == metav1.DryRunAll, Force: query.Get("force") == "true",
		FieldManager: query.Get("fieldManager")}
	manager := request.FieldManager
	if manager == "" {
		request.FieldManager, _, _ = strings.Cut(r.UserAgent(), "/")
	}
	if dryRun := query["dryRun"]; len(dryRun) > 0 && !request.DryRun {
		return nil, apierrors.NewBadRequest("dryRun: Unsupported value: " + dryRun[0])
	}
	found, err := request.parsePath(s)
	if err != nil || !found {
		return request, err
	}
	if err := request.parseVerb(r.Method, query); err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch request.Verb {
	case "patch":
		options := &metav1.PatchOptions{FieldManager: manager}
		if query.Has("force") {
			options.Force = &request.Force
		}
		err = request.parsePatch(body, types.PatchType(media), options)
	case "create", "update":
		err = request.parseBody(body, media)
	case "delete", "deletecollection":
		err = request.parseDelete(body, media, query)
	}
	return request, err
}

// parsePath understands the path, and reports whether it is that of a resource.
func (r *Request) parsePath(s *Server) (bool, error) {
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		r.Resource.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Resource.Group, r.Resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return false, nil
	}
	isObject := len(parts) == 3 && slices.Contains([]string{"status", "finalize"}, parts[2])
	if parts[0] == "namespaces" && len(parts) > 2 && !isObject {
		r.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	r.Resource.Resource, r.Name, r.Subresource = parts[0], parts[1], parts[2]
	r.kind = s.kinds[r.Resource]
	switch {
	case r.kind == nil:
		if r.kind = reviewKind(r.Resource); r.kind != nil {
			return true, nil
		}
	case !r.kind.namespaced && r.Namespace != "":
	case r.Subresource == "",
		r.Subresource == "status" && r.kind.status,
		r.Subresource == "scale" && r.kind.scale != nil,
		r.Subresource == "finalize" && r.kind.is("namespaces"):
		return true, nil
	}
	return false, notFound()
}

// parseVerb understands the method and the options.
func (r *Request) parseVerb(method string, query url.Values) error {
	r.Labels, r.Fields = labels.Everything(), fields.Everything()
	verbs := map[string]string{http.MethodPost: "create", http.MethodPut: "update",
		http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodGet: "get"}
	r.Verb = verbs[method]
	wrong := r.Verb == "" || (r.Name == "") != (r.Verb == "create") &&
		r.Verb != "get" && r.Verb != "delete"
	if wrong || r.Verb == "delete" && r.Subresource != "" {
		return apierrors.NewMethodNotSupported(r.Resource.GroupResource(), strings.ToLower(method))
	}
	if r.Name != "" || r.Verb == "create" {
		return nil
	}
	if r.Verb == "delete" {
		r.Verb = "deletecollection"
	}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &r.List, nil); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if r.Verb == "get" {
		r.Verb = "list"
		if r.List.Watch {
			r.Verb = "watch"
		}
	}
	var err error
	if r.Labels, err = labels.Parse(r.List.LabelSelector); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if r.Fields, err = fields.ParseSelector(r.List.FieldSelector); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range r.Fields.Requirements() {
		name := requirement.Field
		if name != "metadata.name" && name != "metadata.namespace" &&
			!slices.Contains(r.kind.fields, name) {
			return apierrors.NewBadRequest("field label not supported: " + name)
		}
	}
	return nil
}

var errNoKind = errors.New("the object has no kind")

// parseBody understands an object.
func (r *Request) parseBody(body []byte, media string) error {
	object := map[string]any{}
	var err error
	switch media {
	case runtime.ContentTypeProtobuf:
		object, err = fromProtobuf(body)
	case runtime.ContentTypeYAML:
		if body, err = yaml.YAMLToJSONStrict(body); err == nil {
			err = json.Unmarshal(body, &object)
		}
	case runtime.ContentTypeJSON, "":
		err = json.Unmarshal(body, &object)
	default:
		return unknownFormat()
	}
	isApply := r.PatchType == types.ApplyYAMLPatchType
	if err == nil && (r.kind.custom != nil || isApply) && object["kind"] == nil {
		err = errNoKind
	}
	if err != nil || object == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized: %v", err))
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
	if object["apiVersion"] != apiVersion {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%v) does not match"+
			" the expected API version (%s)", object["apiVersion"], apiVersion))
	}
	if object["kind"] != kind {
		return apierrors.NewBadRequest(fmt.Sprintf("%v in version %q cannot be handled as a %s",
			object["kind"], want.Version, kind))
	}
	return nil
}

// parsePatch understands a patch.
func (r *Request) parsePatch(
	body []byte, media types.PatchType, options *metav1.PatchOptions,
) error {
	r.Patch, r.PatchType = body, media
	if errs := validation.ValidatePatchOptions(options, media); len(errs) > 0 {
		kind := schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}
		return apierrors.NewInvalid(kind, "", errs)
	}
	switch media {
	case types.JSONPatchType, types.MergePatchType:
		return nil
	case types.StrategicMergePatchType:
		if r.kind.custom == nil {
			return nil
		}
	case types.ApplyYAMLPatchType:
		return r.parseBody(body, runtime.ContentTypeYAML)
	}
	return unknownFormat()
}

func unknownFormat() error {
	return refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format")
}

// parseDelete understands the options of a delete, in the body or in the query.
func (r *Request) parseDelete(body []byte, media string, query url.Values) error {
	var err error
	switch {
	case len(body) == 0:
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &r.Delete, nil)
	case media == runtime.ContentTypeProtobuf:
		var unknown runtime.Unknown
		if unknown, err = unwrap(body); err == nil {
			err = r.Delete.Unmarshal(unknown.Raw)
		}
	default:
		err = json.Unmarshal(body, &r.Delete)
	}
	r.DryRun = slices.Equal(r.Delete.DryRun, []string{metav1.DryRunAll})
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// unwrap takes the object out of the envelope that Protocol Buffers have here.
func unwrap(body []byte) (unknown runtime.Unknown, err error) {
	if len(body) < 4 || string(body[:4]) != "k8s\x00" {
		return unknown, fmt.Errorf("the body is not a Protocol Buffer")
	}
	return unknown, unknown.Unmarshal(body[4:])
}

// fromProtobuf reads an object of the scheme.
func fromProtobuf(body []byte) (map[string]any, error) {
	unknown, err := unwrap(body)
	if err != nil {
		return nil, err
	}
	gvk := schema.FromAPIVersionAndKind(unknown.APIVersion, unknown.Kind)
	object, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	message, ok := object.(interface{ Unmarshal([]byte) error })
	if !ok {
		return nil, fmt.Errorf("%v has no Protocol Buffer", gvk)
	}
	if err := message.Unmarshal(unknown.Raw); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}
