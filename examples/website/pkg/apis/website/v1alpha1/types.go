package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ConditionReady is the condition that says whether the Website is served: its ConfigMap, its
	// Service and its Deployment are what it asks for, but for fields that the message names because
	// the API server does not keep them, and every replica is available.
	ConditionReady = "Ready"
	// ConditionRegistered is the condition that says whether the registry knows the URL.
	ConditionRegistered = "Registered"
)

// Website serves one page, and is known to a registry outside the cluster. A ConfigMap, a
// Deployment and a Service of the same name belong to it.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=websites,shortName=ws,scope=Namespaced,categories=all
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Up",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Registered",type=string,JSONPath=`.status.conditions[?(@.type=="Registered")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!format.dns1035Label().validate(self.metadata.name).hasValue()",message="metadata.name must be a valid Service name: at most 63 lower-case letters, digits and '-', starting with a letter and ending with a letter or a digit, for example \"example-website\""
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Website struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec WebsiteSpec `json:"spec"`
	// status is the observed state, written by the controller only.
	// +optional
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec is the desired state of a Website.
type WebsiteSpec struct {
	// content is the page, in HTML. When it changes, the Pods are replaced one by one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Content string `json:"content"`

	// replicas is the desired number of Pods. When it is absent, it becomes 1. `kubectl scale` and
	// autoscalers set it through the scale subresource.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the container image of the web server. It must serve /usr/share/nginx/html on port
	// 8080, and run as a user other than root.
	// +optional
	// +kubebuilder:default="nginxinc/nginx-unprivileged:1.27-alpine"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('\\\\s')",message="must be the name of an image, without spaces, for example \"nginxinc/nginx-unprivileged:1.27-alpine\""
	Image string `json:"image,omitempty"`

	// port is the port of the Service. When it is absent, it becomes 80.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// WebsiteStatus is the observed state of a Website.
type WebsiteStatus struct {
	// observedGeneration is the metadata.generation that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// url is where the Service serves the page, inside the cluster. It is absent if there is no
	// Service of this Website.
	// +optional
	URL string `json:"url,omitempty"`

	// registeredURL is the URL that the registry has accepted last. It is absent if the registry
	// knows none.
	// +optional
	RegisteredURL string `json:"registeredURL,omitempty"`

	// replicas is the number of Pods that the Deployment has.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of Pods that are ready to serve the page.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the Pods, as autoscalers read it from the scale
	// subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// conditions: Ready is True when everything is as the spec asks, and every replica is
	// available. Registered is True when the registry knows the url.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// WebsiteList is a list of Websites.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Website `json:"items"`
}
