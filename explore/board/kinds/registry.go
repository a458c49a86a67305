package kinds

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	"k8s.io/kubernetes/pkg/capabilities"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	autoscalingrest "k8s.io/kubernetes/pkg/registry/autoscaling/rest"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	certificatesrest "k8s.io/kubernetes/pkg/registry/certificates/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	endpointstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	pvstore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	pvcstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	flowcontrolrest "k8s.io/kubernetes/pkg/registry/flowcontrol/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	noderest "k8s.io/kubernetes/pkg/registry/node/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resourcerest "k8s.io/kubernetes/pkg/registry/resource/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
	svmrest "k8s.io/kubernetes/pkg/registry/storagemigration/rest"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
)

// load makes the stores of all kinds as an API server does it.
func load() kinds {
	capabilities.Setup(true, 0) // as kubeadm
	all := authorizerfactory.NewAlwaysAllowAuthorizer()
	enabled := serverstorage.NewResourceConfig()
	enabled.EnableVersions(slices.DeleteFunc(legacyscheme.Scheme.PrioritizedVersionsAllGroups(),
		func(gv schema.GroupVersion) bool { // what is behind feature gates would only log that it is
			return gv.Group == schedulingv1.GroupName && gv.Version != "v1"
		})...)
	k := kinds{}
	for _, p := range []interface {
		NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (
			genericapiserver.APIGroupInfo, error)
	}{
		&corerest.GenericConfig{}, admissionregistrationrest.RESTStorageProvider{Authorizer: all},
		appsrest.StorageProvider{}, autoscalingrest.RESTStorageProvider{}, batchrest.RESTStorageProvider{},
		certificatesrest.RESTStorageProvider{Authorizer: all}, coordinationrest.RESTStorageProvider{},
		discoveryrest.StorageProvider{}, eventsrest.RESTStorageProvider{},
		flowcontrolrest.RESTStorageProvider{}, networkingrest.RESTStorageProvider{}, noderest.RESTStorageProvider{},
		policyrest.RESTStorageProvider{}, rbacrest.RESTStorageProvider{Authorizer: all},
		resourcerest.RESTStorageProvider{NamespaceClient: namespaces{}, Authorizer: all},
		schedulingrest.RESTStorageProvider{}, storagerest.RESTStorageProvider{}, svmrest.RESTStorageProvider{},
	} {
		info := must(p.NewRESTStorage(enabled, nowhere))
		for version, resources := range info.VersionedResourcesStorageMap {
			gv := schema.GroupVersion{Group: info.PrioritizedVersions[0].Group, Version: version}
			for resource, storage := range resources {
				k[gv.String()+"/"+resource] = storage
			}
		}
	}
	// What Kubernetes has for these wants connections to nodes, and addresses that are stored.
	node := must(nodestore.NewStorage(nowhere, kubeletclient.KubeletClientConfig{}, nil))
	pod := must(podstore.NewStorage(nowhere, nil, nil, nil, nil))
	controller := must(controllerstore.NewStorage(nowhere))
	pv, pvStatus, errPV := pvstore.NewREST(nowhere)
	pvc, pvcStatus, errPVC := pvcstore.NewREST(nowhere)
	maps.Copy(k, serviceStores(""))
	maps.Copy(k, must(kinds{"v1/nodes": node.Node, "v1/nodes/status": node.Status, "v1/pods": pod.Pod,
		"v1/pods/status": pod.Status, "v1/pods/ephemeralcontainers": pod.EphemeralContainers,
		"v1/pods/resize": pod.Resize, "v1/replicationcontrollers": controller.Controller,
		"v1/replicationcontrollers/status": controller.Status,
		"v1/replicationcontrollers/scale":  controller.Scale, "v1/persistentvolumes": pv,
		"v1/persistentvolumes/status": pvStatus, "v1/persistentvolumeclaims": pvc,
		"v1/persistentvolumeclaims/status": pvcStatus, "v1/endpoints": must(endpointstore.NewREST(nowhere)),
		"v1/podtemplates": must(podtemplatestore.NewREST(nowhere)),
		"v1/limitranges":  must(limitrangestore.NewREST(nowhere))}, errors.Join(errPV, errPVC)))
	return k
}

// must returns what Kubernetes' own code returns, which is the same each time.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// nowhere has the options of stores that never store anything.
var nowhere = generic.RESTOptions{ResourcePrefix: "none", StorageConfig: &storagebackend.ConfigForResource{},
	Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error),
		func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs,
		*cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		return nil, nil, nil
	}}

// namespaces have no labels.
type namespaces struct{ typedcorev1.NamespaceInterface }

func (namespaces) Get(context.Context, string, metav1.GetOptions) (*corev1.Namespace, error) {
	return &corev1.Namespace{}, nil
}

// plugins are the admission plugins that each API server has, and that ask for no other object.
var plugins = func() []admission.MutationInterface {
	tolerations := defaulttolerationseconds.NewDefaultTolerationSeconds()
	tolerations.InspectFeatureGates(nil)
	return []admission.MutationInterface{tolerations, nodetaint.NewPlugin()}
}()

// serviceStores makes the stores for a Service. What it gets comes from its UID, which has its number
// in its server, so that all Services of a server get something else.
func serviceStores(uid types.UID) kinds {
	number, _ := strconv.ParseInt(string(uid[max(0, len(uid)-12):]), 16, 64)
	next := int(number) * 8
	service, status, _, err := servicestore.NewREST(nowhere, core.IPv4Protocol, map[core.IPFamily]ipallocator.Interface{
		core.IPv4Protocol: addresses{next: next}}, ports{next: &next}, nil, nil, nil)
	return must(kinds{"v1/services": service, "v1/services/status": status}, err)
}

// addresses gives a Service one. Nobody else has it.
type addresses struct {
	ipallocator.Interface
	next int
}

func (addresses) Allocate(net.IP) error { return nil }
func (addresses) Release(net.IP) error  { return nil }
func (a addresses) AllocateNext() (net.IP, error) {
	return net.IPv4(10, 0, byte(a.next>>8), byte(a.next)), nil
}

// ports gives a Service up to eight ports of nodes.
type ports struct {
	portallocator.Interface
	next *int
}

var nodePorts = utilnet.PortRange{Base: 30000, Size: 2768}

func (ports) Release(int) error { return nil }
func (ports) Allocate(port int) error {
	if !nodePorts.Contains(port) {
		return &portallocator.ErrNotInRange{ValidPorts: nodePorts.String()}
	}
	return nil
}

func (p ports) AllocateNext() (int, error) {
	*p.next++
	return nodePorts.Base + *p.next%nodePorts.Size, nil
}
