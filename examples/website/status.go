package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/patch"
)

// updateStatus writes the status of website if it differs from desired, and a Warning Event for each
// failure that it does not report yet. The API server changes only the status, and refuses one that
// was computed from an older Website (resourceVersion) or from another Website of the same name (UID).
func (c *Controller) updateStatus(
	ctx context.Context, website *v1alpha1.Website, desired v1alpha1.WebsiteStatus,
) error {
	if equality.Semantic.DeepEqual(website.Status, desired) {
		return nil
	}
	updated := website.DeepCopy() // website belongs to the cache
	updated.Status = desired
	updated, err := c.websiteClient.WebsiteV1alpha1().Websites(website.Namespace).UpdateStatus(
		ctx, updated, metav1.UpdateOptions{FieldManager: controllerName})
	if patch.IsGone(err) {
		return nil // deleted; the event of that is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	c.websiteWrites.WroteAt(cache.MetaObjectToName(website), updated.ResourceVersion)
	for _, failure := range meaning.NewFailures(website, desired) {
		c.recorder.Eventf(website, nil, corev1.EventTypeWarning, failure.Reason, "SyncWebsite",
			"%s", failure.Message)
	}
	return nil
}
