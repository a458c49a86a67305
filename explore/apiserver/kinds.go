package apiserver

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
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
	scale      *apiextensionsv1.CustomResourceSubresourceScale
	generation bool     // a change of the spec increments metadata.generation
	fields     []string // field selectors, apart from the metadata's
	parts      []string // its subresources
	custom     *customKind
	review     string // of a question for access: the status that says yes. It is not stored
	converter  func() managedfields.TypeConverter
}

func (k *kind) has(subresource string) bool { return slices.Contains(k.parts, subresource) }

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
var builtin = sync.OnceValue(func() map[schema.GroupVersionResource]*kind {
	types := scheme.Scheme.AllKnownTypes()
	best := map[schema.GroupKind]string{}
	for gvk := range types {
		_, hasList := types[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		older := version.CompareKubeAwareVersionStrings(best[gvk.GroupKind()], gvk.Version) > 0
		if (hasList || reviews[gvk.Kind] != "") && gvk.Group != "extensions" && !older {
			best[gvk.GroupKind()] = gvk.Version
		}
	}
	definition := builtinKind(crdKind, reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]())
	kinds := map[schema.GroupVersionResource]*kind{definition.gvr: definition}
	for gk, version := range best {
		k := builtinKind(gk.WithVersion(version), types[gk.WithVersion(version)])
		kinds[k.gvr] = k
	}
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
	if _, ok := goType.FieldByName("Status"); ok && k.review == "" {
		k.parts = append(k.parts, "status")
	}
	if k.is("namespaces") {
		k.parts = append(k.parts, "finalize")
	}
	k.namespaced, k.generation = !k.is(clusterScoped), k.is(withGeneration)
	if k.is(scalable) {
		k.parts = append(k.parts, "scale")
		k.scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas",
			StatusReplicasPath: ".status.replicas", LabelSelectorPath: new(".spec.selector")}
	}
	k.converter = builtinConverter
	return k
}
