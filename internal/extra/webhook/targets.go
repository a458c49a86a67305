package webhook

import (
	"context"
	"encoding/base64"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// Target is an object that tells API servers how to call webhooks. The Server writes the caBundle
// into all webhooks of the object.
type Target struct {
	Resource schema.GroupVersionResource
	Name     string
}

// CustomResourceDefinition is the target of a conversion webhook.
func CustomResourceDefinition(name string) Target {
	return Target{Name: name, Resource: schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}}
}

// ValidatingWebhookConfiguration is the target of validating admission webhooks.
func ValidatingWebhookConfiguration(name string) Target {
	return admission("validatingwebhookconfigurations", name)
}

// MutatingWebhookConfiguration is the target of mutating admission webhooks.
func MutatingWebhookConfiguration(name string) Target {
	return admission("mutatingwebhookconfigurations", name)
}

func admission(resource, name string) Target {
	return Target{Name: name, Resource: schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource,
	}}
}

// watch sends to changed when the target changes, until ctx is done. changed has room for one.
func (t Target) watch(ctx context.Context, client dynamic.Interface, changed chan<- struct{}) {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, t.Resource, "", 0, nil,
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.Name).String()
		}).Informer()
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // a change that nobody has handled yet covers this one
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only if it is stopped
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
	})
	go informer.RunWithContext(ctx)
}

// write writes bundle into the target, unless it is there. A target that does not exist needs none.
func (t Target) write(
	ctx context.Context, client dynamic.Interface, manager string, bundle []byte,
) error {
	objects := client.Resource(t.Resource)
	object, err := objects.Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // an event tells when it is created
	}
	if err != nil || !setBundle(object.Object, bundle) {
		return err
	}
	// Because of the resourceVersion, the API server refuses it if somebody else wrote in between.
	_, err = objects.Update(ctx, object, metav1.UpdateOptions{FieldManager: manager})
	return err
}

// setBundle sets the caBundle of all webhooks in object, and reports whether it changed anything.
func setBundle(object map[string]any, bundle []byte) (changed bool) {
	webhooks, _, _ := unstructured.NestedFieldNoCopy(object, "webhooks")
	all, _ := webhooks.([]any)
	conversion, found, _ := unstructured.NestedFieldNoCopy(object, "spec", "conversion", "webhook")
	if found {
		all = append(all, conversion)
	}
	encoded := base64.StdEncoding.EncodeToString(bundle)
	for _, webhook := range all {
		fields, _ := webhook.(map[string]any)
		config, _ := fields["clientConfig"].(map[string]any)
		if config != nil && config["caBundle"] != encoded {
			config["caBundle"] = encoded
			changed = true
		}
	}
	return changed
}
