// Package conformance tests, from the outside and on a real API server, what a controller of
// Websites has to do. The controller is a program that the tests start:
//
//	go test ./website/conformance            # on a cluster that it starts
//	go test ./website/conformance -cluster   # on that of KUBECONFIG
//
// What is not about Websites is in the package suite, below internal/. There is one registry for
// all tests, in their own process. It can fail for one namespace alone.
package conformance

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	clientset "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
)

var onCluster = flag.Bool("cluster", false, "test on the cluster of KUBECONFIG, and not on one that is started")

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "website.example.com/v1alpha1", Kind: "Website", Resource: "websites",
		Name: "website-controller",
		CRD:  "../artifacts/crd.yaml",
		Root: "../../..",
		Controller: "website-controller --metrics-bind-address=0 " +
			"--health-probe-bind-address=0",
		Build: "go -C examples build -o ../.local/bin/website-controller ./website",
		Flags: "--registry=" + theRegistry.URL + " --resync=2s",
		Create: func(n *suite.Namespace, name string) {
			with(n).websites.Create(newWebsite(name, 0))
		},
		Await: func(n *suite.Namespace, name string) { with(n).websites.When(name, "is up", isUp) },
	})
	flag.Parse()
	if !*onCluster {
		os.Unsetenv("KUBECONFIG")
	}
	os.Exit(suite.Run(m))
}

// namespace is the namespace of one test, with the Websites in it.
type namespace struct {
	*suite.Namespace
	websites suite.Objects[*v1alpha1.Website]
}

// parallelNamespace lets t run in parallel, in its own namespace, with the controller that all
// parallel tests share.
func parallelNamespace(t *testing.T) *namespace {
	t.Helper()
	return with(suite.ParallelNamespace(t))
}

// with adds the Websites to a namespace.
func with(n *suite.Namespace) *namespace {
	client := clientset.NewForConfigOrDie(suite.Cluster).WebsiteV1alpha1().Websites(n.Name)
	return &namespace{n, suite.NewObjects(n.T, "Website", client)}
}

// newWebsite returns a Website that asks for that many replicas.
func newWebsite(name string, replicas int32) *v1alpha1.Website {
	return &v1alpha1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.WebsiteSpec{Content: "<h1>Hello</h1>", Replicas: &replicas},
	}
}

// createUp creates a Website and waits until it is served and registered.
func (n *namespace) createUp(website *v1alpha1.Website) *v1alpha1.Website {
	n.T.Helper()
	n.websites.Create(website)
	return n.websites.When(website.Name, "is up", isUp)
}

// url returns what the registry knows of newWebsite.
func (n *namespace) url(name string) string {
	return fmt.Sprintf("http://%s.%s.svc:80", name, n.Name)
}

// createWaiting creates a Website that is not Ready: somebody else has a ConfigMap of its name.
func (n *namespace) createWaiting(name string) {
	n.T.Helper()
	n.Kubectl("create", "configmap", name, "--from-literal=index.html=mine")
	n.websites.Create(newWebsite(name, 1))
	n.websites.When(name, "is not Ready", says("ConfigMapNameTaken"))
}

// isUp reports whether the Website is served and registered, as the newest spec says.
func isUp(website *v1alpha1.Website) bool { return says("Available", "Registered")(website) }

// says returns a check for the reasons of conditions, about the newest spec.
func says(reasons ...string) func(*v1alpha1.Website) bool {
	return func(website *v1alpha1.Website) bool {
		for _, reason := range reasons {
			isSaid := func(condition metav1.Condition) bool {
				return condition.Reason == reason && condition.ObservedGeneration == website.Generation
			}
			if !slices.ContainsFunc(website.Status.Conditions, isSaid) {
				return false
			}
		}
		return website.Status.ObservedGeneration == website.Generation
	}
}

// fewRequests fails the test if the controller is in a loop.
func (n *namespace) fewRequests(begin audit.Mark) {
	n.T.Helper()
	n.FewRequests(begin, 60) // a Website has three children
}

// child is a kind of object that each Website owns one of.
type child struct {
	kind     string
	resource schema.GroupVersionResource
	change   string // a patch that the controller has to undo
}

var children = []child{
	{"ConfigMap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		`{"data": {"index.html": "Bye"}}`},
	{"Service", schema.GroupVersionResource{Version: "v1", Resource: "services"},
		`{"spec": {"selector": {"app": "other"}, "ports": [{"name": "other", "port": 81}]}}`},
	{"Deployment", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		`{"spec": {"replicas": 7, "template": {"spec": {"containers": [
			{"name": "web", "image": "example.com/other"}]}}}}`},
}

// of returns the children of that kind in the namespace.
func (c child) of(n *namespace) suite.Objects[*unstructured.Unstructured] {
	resource := dynamic.NewForConfigOrDie(suite.Cluster).Resource(c.resource).Namespace(n.Name)
	return suite.NewObjects(n.T, c.kind, untyped{resource: resource})
}

// theRegistry is the registry of all tests.
var theRegistry = httptest.NewServer(outside.NewServer())

// registered returns the URLs by which the registry knows a Website.
func (n *namespace) registered(name string) (urls []string) {
	n.T.Helper()
	response := must.Get(http.Get(theRegistry.URL + "/entries"))(n.T)
	defer response.Body.Close()
	var all map[string]outside.Entry
	must.Do(n.T, json.NewDecoder(response.Body).Decode(&all))
	for _, entry := range all {
		if entry.Name == n.Name+"/"+name {
			urls = append(urls, entry.URL)
		}
	}
	return urls
}

// registryKnows waits until the registry knows the Website by these URLs, and by no other.
func (n *namespace) registryKnows(name string, urls ...string) {
	n.T.Helper()
	what := "the registry knows Website " + name + " by " + strings.Join(urls, " and ")
	suite.Eventually(n.T, what, func() (bool, string) {
		known := n.registered(name)
		return slices.Equal(known, urls), strings.Join(known, " and ")
	})
}

// sameAs returns a check for an object that has the spec or the data of before, and its labels.
func sameAs(before *unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return reflect.DeepEqual(object.Object["data"], before.Object["data"]) &&
			reflect.DeepEqual(object.Object["spec"], before.Object["spec"]) &&
			reflect.DeepEqual(object.GetLabels(), before.GetLabels())
	}
}

// untyped is a Client of any kind, which only reads.
type untyped struct {
	suite.Client[*unstructured.Unstructured] // nil
	resource                                 dynamic.ResourceInterface
}

func (u untyped) Get(
	ctx context.Context, name string, options metav1.GetOptions,
) (*unstructured.Unstructured, error) {
	return u.resource.Get(ctx, name, options)
}
