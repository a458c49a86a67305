package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/owned"
)

// Reasons of the conditions. The package owned has more, such as DeploymentNameTaken.
const (
	reasonAvailable          = "Available"
	reasonProgressing        = "Progressing"
	reasonRolloutFailed      = "RolloutFailed"
	reasonWebsiteTerminating = "WebsiteTerminating"

	reasonRegistered           = "Registered"
	reasonNoService            = "NoService"
	reasonRegistrationFailed   = "RegistrationFailed"
	reasonDeregistrationFailed = "DeregistrationFailed"
	reasonDeregistered         = "Deregistered"
)

// observedStatus returns the status of website by what the informers show, with ready as its Ready
// condition. What the status says about the registry stays as it is.
func (c *Controller) observedStatus(
	website *v1alpha1.Website, ready metav1.Condition,
) (v1alpha1.WebsiteStatus, error) {
	service, err := c.services.Get(website)
	if err != nil {
		return v1alpha1.WebsiteStatus{}, err
	}
	deployment, err := c.deployments.Get(website)
	if err != nil {
		return v1alpha1.WebsiteStatus{}, err
	}
	return desiredStatus(website, service, deployment, ready), nil
}

// desiredStatus returns the status that website should have. service and deployment are nil if
// website has none.
func desiredStatus(
	website *v1alpha1.Website, service *corev1.Service, deployment *appsv1.Deployment,
	ready metav1.Condition,
) v1alpha1.WebsiteStatus {
	status := v1alpha1.WebsiteStatus{
		ObservedGeneration: website.Generation,
		URL:                urlOf(service),
		RegisteredURL:      website.Status.RegisteredURL,
		Selector:           labels.SelectorFromSet(podLabels(website)).String(),
		Conditions:         website.Status.DeepCopy().Conditions,
	}
	if deployment != nil {
		status.Replicas = deployment.Status.Replicas
		status.ReadyReplicas = deployment.Status.ReadyReplicas
	}
	setCondition(website, &status, ready)
	return status
}

// setCondition sets a condition of website in status.
func setCondition(
	website *v1alpha1.Website, status *v1alpha1.WebsiteStatus, condition metav1.Condition,
) {
	condition.ObservedGeneration = website.Generation
	// This keeps lastTransitionTime unless the condition's status changes.
	meta.SetStatusCondition(&status.Conditions, condition)
}

// urlOf returns where service serves the page, or "" if it does not.
func urlOf(service *corev1.Service) string {
	if service == nil || len(service.Spec.Ports) == 0 {
		return ""
	}
	return fmt.Sprintf("http://%s.%s.svc:%d", service.Name, service.Namespace,
		service.Spec.Ports[0].Port)
}

// readyCondition returns whether deployment is rolled out and available and, if not, why.
func readyCondition(deployment *appsv1.Deployment) metav1.Condition {
	message := fmt.Sprintf("Deployment %q has %d of %d replicas available", deployment.Name,
		deployment.Status.AvailableReplicas, desiredReplicas(deployment.Spec.Replicas))
	if rolledOut(deployment) {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: reasonAvailable, Message: message,
		}
	}
	for _, condition := range deployment.Status.Conditions {
		failed := condition.Type == appsv1.DeploymentReplicaFailure &&
			condition.Status == corev1.ConditionTrue
		stuck := condition.Type == appsv1.DeploymentProgressing &&
			condition.Status == corev1.ConditionFalse
		if failed || stuck {
			return *owned.NotReady(reasonRolloutFailed, message+": "+condition.Message)
		}
	}
	return *owned.NotReady(reasonProgressing, message)
}

// rolledOut reports whether the Deployment controller has seen the newest spec, and exactly the
// desired number of replicas exists, all updated and available.
func rolledOut(deployment *appsv1.Deployment) bool {
	status, desired := deployment.Status, desiredReplicas(deployment.Spec.Replicas)
	return status.ObservedGeneration >= deployment.Generation &&
		status.Replicas == desired &&
		status.UpdatedReplicas == desired &&
		status.AvailableReplicas == desired
}

// registered returns the Registered condition of a Website whose URL the registry knows.
func registered(url string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionRegistered, Status: metav1.ConditionTrue,
		Reason: reasonRegistered, Message: "The registry knows the Website as " + url,
	}
}

// notRegistered returns a Registered condition that is False. The message must not vary from one
// try to the next: a status that changes brings its key back at once, without the backoff.
func notRegistered(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionRegistered, Status: metav1.ConditionFalse,
		Reason: reason, Message: message,
	}
}

// updateStatus writes the status of website if it differs from desired, and an Event about a new
// failure. The API server changes only the status, and refuses one that was computed from an older
// Website (resourceVersion) or from another Website of the same name (UID).
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
	if apierrors.IsNotFound(err) {
		return nil // deleted; the event of that is on the way
	}
	if err != nil {
		return fmt.Errorf("updating status: %w", err)
	}
	c.websiteWrites.WroteAt(cache.MetaObjectToName(website), updated.ResourceVersion)
	c.recordFailures(website, desired)
	return nil
}

// recordFailures records a Warning Event for each failure in desired that the status of website
// does not report yet.
func (c *Controller) recordFailures(website *v1alpha1.Website, desired v1alpha1.WebsiteStatus) {
	for _, condition := range desired.Conditions {
		failed := owned.Failed(condition) || condition.Reason == reasonRegistrationFailed ||
			condition.Reason == reasonDeregistrationFailed
		before := meta.FindStatusCondition(website.Status.Conditions, condition.Type)
		same := before != nil && before.Reason == condition.Reason && before.Message == condition.Message
		if failed && !same {
			c.recorder.Eventf(website, nil, corev1.EventTypeWarning, condition.Reason, "SyncWebsite",
				"%s", condition.Message)
		}
	}
}
