package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	// controllerName is this controller's name wherever it needs one: in the queue's metrics, in
	// Events, as field manager, as value of the managed-by label, and as name of its Lease, if any.
	controllerName = "sample-controller"
	// managedByLabel is on every Deployment that this controller creates. The informer selects by
	// it: a Deployment without this label is not in the cache.
	managedByLabel = "app.kubernetes.io/managed-by"
	// fooUIDLabel selects the Pods of a Foo. A Foo's name may be too long for a label, a UID never
	// is. And a Foo that is deleted and created again does not inherit the Pods of the old one.
	fooUIDLabel = v1alpha1.GroupName + "/foo-uid"

	containerName  = "web"
	containerImage = "nginxinc/nginx-unprivileged:1.27-alpine"
	containerPort  = 8080
)

var fooKind = schema.GroupVersionKind{
	Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "Foo",
}

// Reasons of the Ready condition. Those in failures are reasons of Warning Events, too.
const (
	reasonAvailable      = "Available"
	reasonProgressing    = "Progressing"
	reasonPaused         = "DeploymentPaused"
	reasonTerminating    = "DeploymentTerminating"
	reasonNameTaken      = "DeploymentNameTaken"
	reasonRejected       = "DeploymentRejected"
	reasonFooTerminating = "FooTerminating"
	// These two are reasons of the Overridden condition, too.
	reasonNotKept   = "DeploymentNotKept"
	reasonContested = "DeploymentContested"
)

// failures are the reasons of which a Warning Event tells.
var failures = []string{reasonNameTaken, reasonRejected, reasonNotKept, reasonContested}

// maxMessage is the maximum size of an Event's note, in bytes. A condition's message may be longer.
const maxMessage = 1024

// conditionReason matches only what the API server accepts as the reason of a Foo's condition. As
// the reason of a Deployment's condition, it accepts any text, even an empty one.
var conditionReason = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,99}$`)

// newDeployment returns the Deployment to create for foo.
func newDeployment(foo *v1alpha1.Foo) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            foo.Spec.DeploymentName,
			Namespace:       foo.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, fooKind)},
		},
		// The selector is immutable, so it is set here and not in setOwnedFields.
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: podLabels(foo)}},
	}
	setOwnedFields(deployment, foo)
	return deployment
}

// setOwnedFields sets the fields of deployment that this controller decides on, and no others. What
// the API server fills in, and what other people and programs write, stays as it is.
func setOwnedFields(deployment *appsv1.Deployment, foo *v1alpha1.Foo) {
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, managedByLabel, controllerName)
	deployment.Spec.Replicas = new(desiredReplicas(foo.Spec.Replicas))
	template := &deployment.Spec.Template
	for key, value := range podLabels(foo) {
		metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
	}
	container := containerNamed(&template.Spec, containerName)
	container.Image = containerImage
	container.Ports = []corev1.ContainerPort{
		{Name: "http", ContainerPort: containerPort, Protocol: corev1.ProtocolTCP},
	}
	container.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	// The "restricted" Pod Security Standard requires this of a container.
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		RunAsNonRoot:             new(true),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// withOwnedFields returns a copy of deployment in which setOwnedFields has set its fields.
func withOwnedFields(deployment *appsv1.Deployment, foo *v1alpha1.Foo) *appsv1.Deployment {
	desired := deployment.DeepCopy()
	setOwnedFields(desired, foo)
	return desired
}

// containerNamed returns the container of that name in spec, and adds one if there is none.
func containerNamed(spec *corev1.PodSpec, name string) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return &spec.Containers[i]
		}
	}
	spec.Containers = append(spec.Containers, corev1.Container{Name: name})
	return &spec.Containers[len(spec.Containers)-1]
}

// podLabels returns the labels that select the Pods of foo, and of no other Foo.
func podLabels(foo *v1alpha1.Foo) map[string]string {
	return map[string]string{fooUIDLabel: string(foo.UID)}
}

// desiredStatus returns the status that foo should have. deployment is its Deployment, or nil if
// there is none. The conditions are Ready and perhaps Overridden.
func desiredStatus(
	foo *v1alpha1.Foo, deployment *appsv1.Deployment, conditions ...metav1.Condition,
) v1alpha1.FooStatus {
	status := v1alpha1.FooStatus{
		ObservedGeneration: foo.Generation,
		Selector:           labels.SelectorFromSet(podLabels(foo)).String(),
		Conditions:         foo.Status.DeepCopy().Conditions,
	}
	if deployment != nil {
		status.Replicas = deployment.Status.Replicas
		status.AvailableReplicas = deployment.Status.AvailableReplicas
	}
	if len(conditions) == 1 {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOverridden)
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = foo.Generation
		// This keeps lastTransitionTime unless the condition's status changes.
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// judgedConditions returns the conditions of foo after a judgment about its Deployment: Ready and, if
// the Deployment does not keep what the controller sends, Overridden. There are none if a repair
// comes soon. What admission changes does not make the Foo less ready: the administrators decide where
// images come from. The exceptions are the count, which the Foo asks for, and the label, without which
// the controller does not see the Deployment. While another writer sets repairs back, Ready is False.
func judgedConditions(
	foo *v1alpha1.Foo, deployment *appsv1.Deployment, judgment patch.Judgment,
) []metav1.Condition {
	var reason, message string
	switch judgment.Outcome {
	case patch.Kept:
		return []metav1.Condition{readyCondition(deployment)}
	case patch.NotKept:
		reason, message = reasonNotKept, fmt.Sprintf("Deployment %q: the API server does not keep "+
			"what the controller sends as %s", deployment.Name, judgment.Fields)
	case patch.Contested:
		reason, message = reasonContested, fmt.Sprintf("Deployment %q: %s sets back each repair of %s",
			deployment.Name, judgment.Writers, judgment.Fields)
	default:
		return nil
	}
	ready := readyCondition(deployment)
	if judgment.Outcome == patch.Contested ||
		desiredReplicas(deployment.Spec.Replicas) != desiredReplicas(foo.Spec.Replicas) ||
		deployment.Labels[managedByLabel] != controllerName {
		ready = notReady(reason, message)
	}
	return []metav1.Condition{ready, {
		Type: v1alpha1.ConditionOverridden, Status: metav1.ConditionTrue,
		Reason: reason, Message: clean(message),
	}}
}

// readyCondition returns whether deployment is rolled out and available and, if not, why.
func readyCondition(deployment *appsv1.Deployment) metav1.Condition {
	message := fmt.Sprintf("Deployment %q has %d of %d replicas available", deployment.Name,
		deployment.Status.AvailableReplicas, desiredReplicas(deployment.Spec.Replicas))
	if deployment.DeletionTimestamp != nil {
		return notReady(reasonTerminating,
			fmt.Sprintf("Deployment %q is being deleted", deployment.Name))
	}
	if rolledOut(deployment) {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: reasonAvailable, Message: message,
		}
	}
	if deployment.Spec.Paused {
		return notReady(reasonPaused, message+"; its rollout is paused")
	}
	for _, condition := range deployment.Status.Conditions {
		failed := condition.Type == appsv1.DeploymentReplicaFailure &&
			condition.Status == corev1.ConditionTrue
		stuck := condition.Type == appsv1.DeploymentProgressing &&
			condition.Status == corev1.ConditionFalse
		if failed || stuck {
			reason := condition.Reason
			if !conditionReason.MatchString(reason) {
				reason = reasonProgressing
			}
			return notReady(reason, message+": "+condition.Message)
		}
	}
	return notReady(reasonProgressing, message)
}

// nameTaken returns the Ready condition of a Foo that names deployment but does not own it.
func nameTaken(deployment *appsv1.Deployment) metav1.Condition {
	holder := "no controller"
	if owner := metav1.GetControllerOfNoCopy(deployment); owner != nil {
		holder = fmt.Sprintf("%s %q", owner.Kind, owner.Name)
	}
	return notReady(reasonNameTaken, fmt.Sprintf("Deployment %q exists and belongs to %s, not to "+
		"this Foo: delete it or choose another spec.deploymentName", deployment.Name, holder))
}

// terminatingStatus returns the status of a Foo that is being deleted. deployment is the Deployment
// that the Foo names, or nil. Nothing more is created or repaired, so Ready must not
// promise a repair.
func terminatingStatus(foo *v1alpha1.Foo, deployment *appsv1.Deployment) v1alpha1.FooStatus {
	if deployment == nil || !metav1.IsControlledBy(deployment, foo) {
		return desiredStatus(foo, nil, notReady(reasonFooTerminating, fmt.Sprintf("The Foo has no "+
			"Deployment %q and gets none, because it is being deleted", foo.Spec.DeploymentName)))
	}
	desired := withOwnedFields(deployment, foo)
	if deployment.DeletionTimestamp != nil || equality.Semantic.DeepEqual(deployment, desired) {
		return desiredStatus(foo, deployment, readyCondition(deployment))
	}
	fields := patch.Names(patch.Fields(deployment, desired))
	notKept := judgedConditions(foo, deployment, patch.Judgment{Outcome: patch.NotKept, Fields: fields})
	before := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionOverridden)
	if before != nil && before.Message == notKept[1].Message {
		return desiredStatus(foo, deployment, notKept...)
	}
	return desiredStatus(foo, deployment, notReady(reasonFooTerminating, fmt.Sprintf("Deployment %q "+
		"is not what the Foo asks for and stays so, because the Foo is being deleted", deployment.Name)))
}

// notReady returns a Ready condition that is False.
func notReady(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: reason, Message: clean(message),
	}
}

// clean returns a message that may come from anybody, for example from an admission webhook. What
// cannot be printed is replaced, because kubectl could not print the Foo. A message that is too long
// is cut, because the API server would refuse the Event.
func clean(message string) string {
	message = strings.Map(printable, message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("...")], "") + "..."
	}
	return message
}

// printable returns r, or a replacement if r is neither printable nor white space. With some control
// characters in the status of a Foo, such as U+007F, `kubectl get -o yaml` prints only an error.
func printable(r rune) rune {
	if unicode.IsPrint(r) || unicode.IsSpace(r) {
		return r
	}
	return unicode.ReplacementChar
}

// rolledOut reports whether the Deployment controller has seen the newest spec, and exactly the
// desired number of replicas exists, all updated and available. `kubectl rollout status` accepts
// more replicas. But a Foo that was scaled down is not ready until the surplus is gone.
func rolledOut(deployment *appsv1.Deployment) bool {
	status, desired := deployment.Status, desiredReplicas(deployment.Spec.Replicas)
	return status.ObservedGeneration >= deployment.Generation &&
		status.Replicas == desired &&
		status.UpdatedReplicas == desired &&
		status.AvailableReplicas == desired
}

// desiredReplicas returns how many Pods the spec.replicas of a Foo or of a Deployment asks for. The
// API server fills in an absent count. But the cache may still hold a Foo that was read before the
// CustomResourceDefinition had that default.
func desiredReplicas(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
