package main

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/sample-controller/examples/internal/lagging"
	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/examples/website/websites"
	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
)

func TestReadDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		website := &v1alpha1.Website{}
		begin := time.Now()

		err := boundedClient{lagging.Client{}}.Get(t.Context(), client.ObjectKey{Name: "web"}, website)

		if err != nil || website.Name != "web" {
			t.Errorf("got Website %q and error %v, want Website \"web\" and no error", website.Name, err)
		}
		if waited := time.Since(begin); waited != maxStaleness {
			t.Errorf("waited %v, want %v", waited, maxStaleness)
		}
	})
}

// TestExplore tries every fault at every place, as that of examples/website does.
func TestExplore(t *testing.T) {
	ctrl.SetLogger(klog.Logger{})
	explore.Test(t, websites.Controller("../artifacts/crd.yaml",
		func(ctx context.Context, config *rest.Config, registry http.RoundTripper) error {
			o := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
			o.Controller.SkipNameValidation = new(true) // there is one after the other
			if err := complete(&o, ""); err != nil {
				return err
			}
			client, err := outside.NewClient("http://registry", registry)
			if err != nil {
				return err
			}
			r := &Reconciler{registry: client, resync: 10 * time.Minute}
			return runManager(ctx, config, o, r, 2)
		}))
}

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
