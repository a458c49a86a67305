package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is the condition that says whether the Deployment of a Foo is what the Foo asks
// for: rolled out, with every replica available.
const ConditionReady = "Ready"

// ConditionOverridden is the condition that says which fields of the Deployment have other values
// than the controller has sent, because admission or another writer sets them back. A Foo has it
// only as long as that is so.
const ConditionOverridden = "Overridden"

// Foo keeps a Deployment of the given name running, with the given number of replicas.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=foos,scope=Namespaced,shortName=fo,categories=all
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only"
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Foo struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec FooSpec `json:"spec"`
	// status is the observed state, written by the controller only.
	// +optional
	Status FooStatus `json:"status,omitempty"`
}

// FooSpec is the desired state of a Foo.
type FooSpec struct {
	// deploymentName is the name of the Deployment that runs this Foo, in the Foo's namespace.
	// When it changes, a Deployment of the new name is created, and the old one is deleted once
	// the new one is available. A Deployment of this name that does not belong to this Foo is never
	// touched.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be a valid Deployment name: lower-case letters, digits, '-' and '.', starting and ending with a letter or a digit, for example \"example-foo\""
	DeploymentName string `json:"deploymentName"`

	// replicas is the desired number of Pods. When it is absent, it becomes 1. `kubectl scale` and
	// autoscalers set it through the scale subresource.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is the observed state of a Foo.
type FooStatus struct {
	// observedGeneration is the metadata.generation that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of Pods that the Deployment has.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// availableReplicas is the number of Pods that have been ready long enough to be available.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas int32 `json:"availableReplicas"`

	// selector is the label selector of the Pods, as autoscalers read it from the scale
	// subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// conditions: Ready is True when the Deployment is rolled out and every replica is available.
	// Overridden is True when admission or another writer sets fields of the Deployment back.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// FooList is a list of Foos.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Foo `json:"items"`
}
