package meaning

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/sample-controller/examples/internal/owned"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
)

// Reasons of the conditions. The package owned has more, such as DeploymentNameTaken.
const (
	ReasonAvailable          = "Available"
	ReasonProgressing        = "Progressing"
	ReasonRolloutFailed      = "RolloutFailed"
	ReasonWebsiteTerminating = "WebsiteTerminating"

	ReasonRegistered           = "Registered"
	ReasonNoService            = "NoService"
	ReasonRegistrationFailed   = "RegistrationFailed"
	ReasonDeregistrationFailed = "DeregistrationFailed"
	ReasonDeregistered         = "Deregistered"
	ReasonFinalizerRejected    = "FinalizerRejected"
)

// DesiredStatus returns the status that website should have. service and deployment are nil if
// website has none.
func DesiredStatus(
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
	SetCondition(website, &status, ready)
	return status
}

// SetCondition sets a condition of website in status.
func SetCondition(
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

// ReadyCondition returns whether deployment is rolled out and available and, if not, why.
func ReadyCondition(deployment *appsv1.Deployment) metav1.Condition {
	message := fmt.Sprintf("Deployment %q has %d of %d replicas available", deployment.Name,
		deployment.Status.AvailableReplicas, desiredReplicas(deployment.Spec.Replicas))
	if rolledOut(deployment) {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: ReasonAvailable, Message: message,
		}
	}
	for _, condition := range deployment.Status.Conditions {
		failed := condition.Type == appsv1.DeploymentReplicaFailure &&
			condition.Status == corev1.ConditionTrue
		stuck := condition.Type == appsv1.DeploymentProgressing &&
			condition.Status == corev1.ConditionFalse
		if failed || stuck {
			return *owned.NotReady(ReasonRolloutFailed, message+": "+condition.Message)
		}
	}
	return *owned.NotReady(ReasonProgressing, message)
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

// Registered returns the Registered condition of a Website whose URL the registry knows.
func Registered(url string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionRegistered, Status: metav1.ConditionTrue,
		Reason: ReasonRegistered, Message: "The registry knows the Website as " + url,
	}
}

// NotRegistered returns a Registered condition that is False. The message must not vary from one
// try to the next: a status that changes brings its key back at once, without the backoff.
func NotRegistered(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionRegistered, Status: metav1.ConditionFalse,
		Reason: reason, Message: message,
	}
}

// NewFailures returns the failures in desired that the status of website does not report yet. Each
// deserves a Warning.
func NewFailures(
	website *v1alpha1.Website, desired v1alpha1.WebsiteStatus,
) (failures []metav1.Condition) {
	for _, condition := range desired.Conditions {
		failed := owned.Failed(condition) || condition.Reason == ReasonRegistrationFailed ||
			condition.Reason == ReasonDeregistrationFailed
		before := meta.FindStatusCondition(website.Status.Conditions, condition.Type)
		same := before != nil && before.Reason == condition.Reason && before.Message == condition.Message
		if failed && !same {
			failures = append(failures, condition)
		}
	}
	return failures
}
