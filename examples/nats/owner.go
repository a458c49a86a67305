package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// ownerKey is an annotation, NAMESPACE.NAME of the owner. That may be too long for a label, so the
// label of that name has the owner's UID. ownerKind is a label and an annotation, too.
//
// A real owner reference would be harmful: the garbage collector would not find the owner, and
// delete the Deployment.
const (
	ownerKey  = v1alpha1.GroupName + "/owner-key"
	ownerKind = v1alpha1.GroupName + "/owner-kind"
)

// newFoo returns a Foo of which only the key is known. Its UID follows from that. So a Foo that is
// deleted and put again owns what it owned before.
func newFoo(key cache.ObjectName) *v1alpha1.Foo {
	sum := sha256.Sum256([]byte(key.String()))
	return &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: types.UID(hex.EncodeToString(sum[:16]))}}
}

// setFields sets the fields of a Deployment that the controller decides on, and what leads to foo.
func setFields(d *appsv1.Deployment, foo *v1alpha1.Foo) {
	meaning.SetOwnedFields(d, foo)
	metav1.SetMetaDataLabel(&d.ObjectMeta, meaning.ManagedByLabel, controllerName)
	metav1.SetMetaDataLabel(&d.ObjectMeta, ownerKey, string(foo.UID))
	metav1.SetMetaDataLabel(&d.ObjectMeta, ownerKind, meaning.FooKind.Kind)
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, ownerKey, foo.Namespace+"."+foo.Name)
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, ownerKind, meaning.FooKind.Kind)
}

// transform is for the Deployments' informer.
func transform(object any) (any, error) {
	if d, ok := object.(*appsv1.Deployment); ok {
		adopt(d)
	}
	return informers.StripManagedFields(object)
}

// adopt gives a Deployment of a Foo an owner reference, in memory only, which package owned reads. No
// patch has that, because the Deployment has it before and after.
func adopt(d *appsv1.Deployment) {
	if metav1.GetControllerOfNoCopy(d) == nil {
		name, ok := strings.CutPrefix(d.Annotations[ownerKey], d.Namespace+".")
		foo := newFoo(cache.NewObjectName(d.Namespace, name))
		if ok && d.Labels[ownerKey] == string(foo.UID) && d.Labels[ownerKind] == meaning.FooKind.Kind {
			d.OwnerReferences = append(d.OwnerReferences, *metav1.NewControllerRef(foo, meaning.FooKind))
		}
	}
}

// client writes no owner reference, but shows one. It makes a bad request of what no retry changes
// soon: package owned puts that into the status of the Foo, and tries again later.
type client struct{ appsclient.DeploymentInterface }

func (c client) Create(
	ctx context.Context, d *appsv1.Deployment, o metav1.CreateOptions,
) (*appsv1.Deployment, error) {
	d.OwnerReferences = nil
	created, err := c.DeploymentInterface.Create(ctx, d, o)
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		err = apierrors.NewBadRequest(err.Error()) // the Foo does not go with its namespace
	}
	return created, err
}

func (c client) Get(
	ctx context.Context, name string, o metav1.GetOptions,
) (*appsv1.Deployment, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, apierrors.NewNotFound(appsv1.Resource("deployments"), name) // a Create says what is wrong
	}
	d, err := c.DeploymentInterface.Get(ctx, name, o)
	if err == nil {
		adopt(d)
	}
	return d, err
}
