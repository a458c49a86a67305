package apiserver

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kind is a kind of objects that a server serves. Servers share kinds, so that nothing in one
// changes.
type kind struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	storage    schema.GroupVersionResource // whose objects these are: of the version that is stored
	namespaced bool
	goType     reflect.Type // nil for a custom resource
	names      apiextensionsv1.CustomResourceDefinitionNames
	status     bool        // has the subresource status
	scale      *scalePaths // nil without the subresource
	generation bool        // a change of the spec increments metadata.generation
	fields     []string    // field selectors, apart from the metadata's
	custom     *customKind
	review     string // of a question for access: the status that says yes. It is not stored
	converter  func() managedfields.TypeConverter
}

// scalePaths are the fields that the subresource scale shows.
type scalePaths struct{ replicas, statusReplicas, selector string }

func (k *kind) is(list string) bool {
	return k.custom == nil && slices.Contains(strings.Fields(list), k.gvr.Resource)
}

// What the scheme does not tell of the built-in resources.
const (
	clusterScoped = `namespaces nodes persistentvolumes componentstatuses clusterroles
		clusterrolebindings storageclasses volumeattachments csinodes csidrivers
		volumeattributesclasses priorityclasses runtimeclasses ingressclasses flowschemas
		prioritylevelconfigurations mutatingwebhookconfigurations validatingwebhookconfigurations
		mutatingadmissionpolicies mutatingadmissionpolicybindings validatingadmissionpolicies
		validatingadmissionpolicybindings certificatesigningrequests clustertrustbundles
		servicecidrs ipaddresses deviceclasses resourceslices devicetaintrules storageversions
		storageversionmigrations customresourcedefinitions resourcepoolstatusrequests
		selfsubjectaccessreviews subjectaccessreviews tokenreviews`
	withGeneration = `priorityclasses ingressclasses networkpolicies ingresses endpointslices
		poddisruptionbudgets resourceslices deviceclasses horizontalpodautoscalers flowschemas
		prioritylevelconfigurations daemonsets statefulsets deployments replicasets jobs cronjobs
		pods podtemplates replicationcontrollers validatingadmissionpolicies
		mutatingadmissionpolicies mutatingwebhookconfigurations validatingwebhookconfigurations
		mutatingadmissionpolicybindings validatingadmissionpolicybindings
		customresourcedefinitions`
	scalable    = "deployments replicasets statefulsets replicationcontrollers"
	conditional = `podcertificaterequests clustertrustbundles runtimeclasses podgroups workloads
		storageversionmigrations poddisruptionbudgets storageversions csidrivers
		csistoragecapacities volumeattachments csinodes leases leasecandidates
		validatingadmissionpolicies mutatingadmissionpolicies mutatingwebhookconfigurations
		validatingwebhookconfigurations mutatingadmissionpolicybindings
		validatingadmissionpolicybindings customresourcedefinitions`
	createdByUpdate = `runtimeclasses rolebindings clusterrolebindings roles clusterroles leases
		leasecandidates limitranges events services endpoints`
	returnedByDelete = `resourceclaimtemplates resourceslices resourceclaims deviceclasses csidrivers
		storageclasses volumeattachments csinodes volumeattributesclasses resourcequotas
		persistentvolumes serviceaccounts persistentvolumeclaims namespaces pods services
		podtemplates`
)

// selectable are the field selectors of built-in resources.
var selectable = map[string]string{
	"pods": `spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName
		spec.hostNetwork status.phase status.podIP status.nominatedNodeName`,
	"events": `involvedObject.kind involvedObject.namespace involvedObject.name
		involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion
		involvedObject.fieldPath reason reportingComponent source type`,
	"secrets": "type", "namespaces": "status.phase", "nodes": "spec.unschedulable",
	"jobs": "status.successful", "replicasets": "status.replicas",
	"replicationcontrollers": "status.replicas", "certificatesigningrequests": "spec.signerName",
}

// reviews are the questions for access, and what answers them: that everything is allowed.
var reviews = map[string]string{"SelfSubjectAccessReview": "allowed",
	"SubjectAccessReview": "allowed", "LocalSubjectAccessReview": "allowed", "TokenReview": "authenticated"}

// builtin are Kubernetes' own kinds, each in its best version.
var builtin = sync.OnceValue(func() []*kind {
	types := scheme.Scheme.AllKnownTypes()
	best := map[schema.GroupKind]string{}
	for gvk := range types {
		_, hasList := types[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		older := version.CompareKubeAwareVersionStrings(best[gvk.GroupKind()], gvk.Version) > 0
		if (hasList || reviews[gvk.Kind] != "") && gvk.Group != "extensions" && !older {
			best[gvk.GroupKind()] = gvk.Version
		}
	}
	kinds := []*kind{builtinKind(apiextensionsv1.SchemeGroupVersion.
		WithKind("CustomResourceDefinition"), reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]())}
	for gk, version := range best {
		kinds = append(kinds, builtinKind(gk.WithVersion(version), types[gk.WithVersion(version)]))
	}
	slices.SortFunc(kinds, func(a, b *kind) int {
		return strings.Compare(a.gvr.String(), b.gvr.String())
	})
	return kinds
})

// builtinKind makes a kind of what its Go type tells.
func builtinKind(gvk schema.GroupVersionKind, goType reflect.Type) *kind {
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	k := &kind{gvk: gvk, gvr: plural, storage: plural, goType: goType}
	k.names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural.Resource,
		Singular: singular.Resource, Kind: gvk.Kind, ListKind: gvk.Kind + "List"}
	if gvk.Group == "events.k8s.io" {
		k.storage = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	} else {
		k.fields = strings.Fields(selectable[plural.Resource])
	}
	k.review = reviews[gvk.Kind]
	_, k.status = goType.FieldByName("Status")
	k.status = k.status && k.review == ""
	k.namespaced, k.generation = !k.is(clusterScoped), k.is(withGeneration)
	if k.is(scalable) {
		k.scale = &scalePaths{"spec.replicas", "status.replicas", "spec.selector"}
	}
	k.converter = builtinConverter
	return k
}

// validName returns the rule for names of this kind.
func (k *kind) validName() validation.ValidateNameFunc {
	switch {
	case k.gvk.Group == "rbac.authorization.k8s.io":
		return path.ValidatePathSegmentName //nolint:staticcheck // as the API server
	case k.is("namespaces services"):
		return validation.NameIsDNSLabel
	}
	return validation.NameIsDNSSubdomain
}
