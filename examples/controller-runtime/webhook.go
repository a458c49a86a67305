package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	webhookHost = "127.0.0.1"
	// The webhook builder serves under these paths.
	mutatePath   = "/mutate-samplecontroller-k8s-io-v1alpha1-foo"
	validatePath = "/validate-samplecontroller-k8s-io-v1alpha1-foo"
)

// fooWebhook does what the schema of Foos and its CEL rules cannot: it fills in a default that
// depends on the Foo's name, and compares a Foo with the other Foos.
type fooWebhook struct {
	foos client.Reader
}

// Default names the Deployment of foo after foo if the user did not name it.
func (w *fooWebhook) Default(_ context.Context, foo *v1alpha1.Foo) error {
	if foo.Spec.DeploymentName == "" {
		foo.Spec.DeploymentName = foo.Name
	}
	return nil
}

// ValidateCreate refuses a Foo that names the Deployment of another Foo. Two Foos that are created
// at the same time may both pass. Then the Reconciler reports it in the status of the second one.
func (w *fooWebhook) ValidateCreate(
	ctx context.Context, foo *v1alpha1.Foo,
) (admission.Warnings, error) {
	var others v1alpha1.FooList
	err := w.foos.List(ctx, &others, client.InNamespace(foo.Namespace),
		client.MatchingFields{deploymentNameIndex: foo.Spec.DeploymentName})
	if err != nil {
		return nil, fmt.Errorf("listing the Foos of the namespace: %w", err)
	}
	for _, other := range others.Items {
		if other.Name != foo.Name && other.DeletionTimestamp == nil {
			return nil, apierrors.NewInvalid(meaning.FooKind.GroupKind(), foo.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "deploymentName"), foo.Spec.DeploymentName,
					fmt.Sprintf("is the Deployment of Foo %q", other.Name)),
			})
		}
	}
	return nil, nil
}

// ValidateUpdate does the same if the name of the Deployment changes. A Foo that passed before is
// not locked: you can scale, label and delete it.
func (w *fooWebhook) ValidateUpdate(
	ctx context.Context, old, foo *v1alpha1.Foo,
) (admission.Warnings, error) {
	if old.Spec.DeploymentName == foo.Spec.DeploymentName {
		return nil, nil
	}
	return w.ValidateCreate(ctx, foo)
}

// ValidateDelete is part of the interface. The webhook is not registered for deletions.
func (w *fooWebhook) ValidateDelete(context.Context, *v1alpha1.Foo) (admission.Warnings, error) {
	return nil, nil
}

// newWebhookServer returns a server with a new certificate, which caBundle verifies. That is enough
// for one process beside a local API server. In a cluster, the webhooks are behind a Service, and
// all replicas share a certificate in CertDir, for example one from cert-manager.
func newWebhookServer(port int) (server webhook.Server, caBundle []byte, err error) {
	caBundle, key, err := cert.GenerateSelfSignedCertKey(
		webhookHost, []net.IP{net.ParseIP(webhookHost)}, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(caBundle, key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return webhook.NewServer(webhook.Options{
		Host: webhookHost,
		Port: port,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) {
			config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return &certificate, nil
			}
		}},
	}), caBundle, nil
}

// addWebhooks adds to mgr the two webhooks, and the registration of them with the API server.
func addWebhooks(mgr ctrl.Manager, o *options, caBundle []byte) error {
	w := &fooWebhook{foos: mgr.GetCache()}
	err := ctrl.NewWebhookManagedBy(mgr, &v1alpha1.Foo{}).WithDefaulter(w).WithValidator(w).Complete()
	if err != nil {
		return err
	}
	// Not the Manager's client, which would watch what it has written.
	direct, err := client.New(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), FieldOwner: controllerName,
	})
	if err != nil {
		return err
	}
	return mgr.Add(&registration{
		Client: direct, started: mgr.GetWebhookServer().StartedChecker(),
		namespace: o.namespace, caBundle: caBundle,
		url: fmt.Sprintf("https://%s:%d", webhookHost, o.webhookPort),
	})
}

// registration registers the webhooks with the API server while the Manager runs.
type registration struct {
	client.Client
	started        func(*http.Request) error
	namespace, url string
	caBundle       []byte
}

// NeedLeaderElection tells the Manager that a standby serves the webhooks, too.
func (*registration) NeedLeaderElection() bool { return false }

// Start registers the webhooks as soon as they are served, and removes the registration when ctx is
// done. The Manager serves them until Start has returned.
func (r *registration) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true,
		func(context.Context) (bool, error) { return r.started(nil) == nil, nil })
	if err != nil {
		return nil // ctx is done before that
	}
	if err := r.register(ctx); err != nil {
		return fmt.Errorf("registering the webhooks: %w", err)
	}
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	name := metav1.ObjectMeta{Name: controllerName}
	return errors.Join(
		r.Delete(ctx, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: name}),
		r.Delete(ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: name}))
}

// register applies the two configurations.
func (r *registration) register(ctx context.Context) error {
	const policy = admissionv1.Ignore // the Reconciler copes with Foos that pass while this is down
	const equivalent, none = admissionv1.Equivalent, admissionv1.SideEffectClassNone
	name := "foo." + v1alpha1.GroupName
	rules := apply.RuleWithOperations().
		WithOperations(admissionv1.Create, admissionv1.Update).
		WithAPIGroups(v1alpha1.GroupName).
		WithAPIVersions(v1alpha1.GroupVersion.Version).
		WithResources("foos") // not foos/status, which the controller writes
	selector := metav1apply.LabelSelector()
	if r.namespace != "" { // the Cache has no other Foos
		selector.WithMatchLabels(map[string]string{corev1.LabelMetadataName: r.namespace})
	}
	at := func(path string) *apply.WebhookClientConfigApplyConfiguration {
		return apply.WebhookClientConfig().WithURL(r.url + path).WithCABundle(r.caBundle...)
	}
	mutating := apply.MutatingWebhookConfiguration(controllerName).WithWebhooks(
		apply.MutatingWebhook().WithName(name).WithClientConfig(at(mutatePath)).
			WithRules(rules).WithNamespaceSelector(selector).WithMatchPolicy(equivalent).
			WithFailurePolicy(policy).WithSideEffects(none).WithTimeoutSeconds(5).
			WithAdmissionReviewVersions("v1"))
	validating := apply.ValidatingWebhookConfiguration(controllerName).WithWebhooks(
		apply.ValidatingWebhook().WithName(name).WithClientConfig(at(validatePath)).
			WithRules(rules).WithNamespaceSelector(selector).WithMatchPolicy(equivalent).
			WithFailurePolicy(policy).WithSideEffects(none).WithTimeoutSeconds(5).
			WithAdmissionReviewVersions("v1"))
	return errors.Join(
		r.Apply(ctx, mutating, client.ForceOwnership), r.Apply(ctx, validating, client.ForceOwnership))
}
