package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/testing/must"
)

func TestSetControllerReferenceTakesOverObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	must.Do(t, v1alpha1.Install(scheme))
	owner := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Website", Name: name, UID: "old",
			Controller: new(true),
		}
	}
	for name, test := range map[string]struct {
		owners    []metav1.OwnerReference
		takesOver bool
	}{
		"of nobody":                    {nil, true},
		"of a deleted Website":         {[]metav1.OwnerReference{owner("web")}, true},
		"of a Website of another name": {[]metav1.OwnerReference{owner("other")}, false},
	} {
		website := &v1alpha1.Website{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "new"}}
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "web", UID: "exists", OwnerReferences: test.owners,
		}}
		err := controllerutil.SetControllerReference(website, configMap, scheme)
		got := metav1.IsControlledBy(configMap, website)
		if got != test.takesOver || got != (err == nil) {
			t.Errorf("%s: taken over is %v, want %v; error %v", name, got, test.takesOver, err)
		}
	}
}
