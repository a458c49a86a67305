package explore

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore/apiserver"
)

// Cluster lets steps happen in a namespace of a real cluster. There, the steps find no other
// namespace than this one: it stands for [Namespace].
type Cluster struct {
	kinds *apiserver.Server // knows the resources, and has no objects
	users dynamic.Interface
}

// NewCluster returns a Cluster that has the kinds of these YAML files, besides Kubernetes' own.
func NewCluster(config *rest.Config, namespace string, crds ...string) (*Cluster, error) {
	read, err := apiserver.ReadCRDs(crds...)
	if err != nil {
		return nil, err
	}
	kinds, err := apiserver.New(read...)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return into{next, namespace} })
	users, err := dynamic.NewForConfig(config)
	return &Cluster{kinds, users}, err
}

// into sends the requests for Namespace to another one.
type into struct {
	http.RoundTripper
	namespace string
}

func (i into) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Path = strings.Replace(r.URL.Path, "/namespaces/"+Namespace, "/namespaces/"+i.namespace, 1)
	return i.RoundTripper.RoundTrip(r)
}

// Play lets a step happen. [CollectGarbage] and [RollOut] do nothing, because a cluster does so by
// itself. What only an API server in memory can do is an error: that writes fail or are refused,
// that a watch is held or lost, and [Restart].
func (c *Cluster) Play(s Step) error {
	w := &World{server: c.kinds, users: c.users}
	if s.Do(w); len(w.mistakes) > 0 {
		return fmt.Errorf("%s: %s", s, strings.Join(w.mistakes, "; "))
	}
	return nil
}
