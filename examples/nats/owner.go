package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// foo returns the Foo of key, or nil if there is none. It combines both buckets and the defaults,
// and sets what the API server would have set. An error says why the Foo is not valid.
func (c *Controller) foo(key string) (*v1alpha1.Foo, error) {
	r := c.foos.get(key)
	if r == nil {
		return nil, nil
	}
	foo := &v1alpha1.Foo{Spec: *r.foo.Spec.DeepCopy()}
	foo.Namespace, foo.Name, _ = strings.Cut(key, ".")
	foo.UID = c.uid(key)
	foo.Generation = int64(r.revision) // each put counts, even if it changes nothing
	if status := c.statuses.get(key); status != nil {
		foo.Status = *status.foo.Status.DeepCopy()
		foo.ResourceVersion = strconv.FormatUint(status.revision, 10) // for writeStatus
	}
	if r.err != nil || foo.Spec.Replicas != nil {
		return foo, r.err
	}
	defaults, err := c.configMaps.ConfigMaps(foo.Namespace).Get(defaultsName)
	if err != nil || defaults.Data[defaultsKey] == "" {
		return foo, nil // a lister has no other error than NotFound
	}
	replicas, err := strconv.ParseInt(defaults.Data[defaultsKey], 10, 32)
	if err != nil {
		return foo, fmt.Errorf("reading %s of ConfigMap %q: %w", defaultsKey, defaultsName, err)
	}
	foo.Spec.Replicas = new(int32(replicas))
	return foo, nil
}

// uid returns the UID of a Foo: a valid label value, whatever its name. It is computed from the
// bucket's identity and the key, so nothing has to be stored. Unlike a UID from the API server, it
// is the same again if a Foo is deleted and put again.
func (c *Controller) uid(key string) types.UID {
	sum := sha256.Sum256([]byte(c.foos.store + "/" + key))
	return types.UID(hex.EncodeToString(sum[:16]))
}

// keyOf returns the key that a Foo of that namespace and name has in the buckets.
func keyOf(namespace, name string) string { return namespace + "." + name }

// isOwnedBy reports whether foo owns deployment. The label takes the place of a controller
// reference, which would need an object in the API server to refer to.
func isOwnedBy(deployment metav1.Object, foo *v1alpha1.Foo) bool {
	return deployment.GetLabels()[meaning.FooUIDLabel] == string(foo.UID)
}

// ownerKey returns the key of the Foo that owns deployment, if that Foo is or was in this bucket.
func (c *Controller) ownerKey(deployment metav1.Object) (key string, ours bool) {
	key, ours = strings.CutPrefix(deployment.GetAnnotations()[ownerAnnotation], c.foos.store+"/")
	return key, ours && deployment.GetLabels()[meaning.FooUIDLabel] == string(c.uid(key))
}
