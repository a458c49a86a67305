package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
)

const (
	host   = "webhook.default.svc"
	secret = "webhook-ca"
)

// newServer returns a replica that shares the Secret with all that have the same client.
func newServer(client kubernetes.Interface, objects ...string) *Server {
	kinds := map[schema.GroupVersionResource]string{}
	targets := []Target{
		CustomResourceDefinition("foos.example.com"),
		ValidatingWebhookConfiguration("foos"), MutatingWebhookConfiguration("foos"),
	}
	for _, target := range targets {
		kinds[target.Resource] = "List"
	}
	var existing []runtime.Object
	for _, object := range objects {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
			panic(err)
		}
		existing = append(existing, u)
	}
	return New(Config{
		Kube: client, Manager: "test", Namespace: "default", Secret: secret, Targets: targets,
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
			runtime.NewScheme(), kinds, existing...),
		Hosts: []string{host, "127.0.0.1"}, Handler: http.NotFoundHandler(),
	})
}

// verify fails unless a client with this bundle accepts the serving certificate of s now.
func verify(t *testing.T, s *Server, bundle []byte) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	certificate := must.Get(s.certificate(nil))(t)
	_, err := certificate.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: host, CurrentTime: time.Now(),
	})
	if err != nil {
		t.Errorf("at %s: %v", time.Now().Format(time.DateOnly), err)
	}
}

func (s *Server) clientConfig() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.certificates.Load().bundle)
	return &tls.Config{RootCAs: roots}
}

func TestReplicasThatStartTogetherAgreeOnOneCA(t *testing.T) {
	elsewhere := fakes.New().Kube
	faster := newServer(elsewhere)
	must.Do(t, faster.sync(t.Context()))
	itsSecret, err := elsewhere.CoreV1().Secrets("default").Get(
		t.Context(), secret, metav1.GetOptions{})
	must.Do(t, err)

	clients := fakes.New()
	first := newServer(clients.Kube)
	clients.Kube.PrependReactor("create", "secrets", func(clienttesting.Action) (
		bool, runtime.Object, error,
	) {
		// The other replica has created it after this one has looked.
		_ = clients.KubeTracker.Create(
			corev1.SchemeGroupVersion.WithResource("secrets"), itsSecret, "default")
		return false, nil, nil
	})
	must.Do(t, first.sync(t.Context()))
	verify(t, first, faster.certificates.Load().bundle)
	verify(t, faster, first.certificates.Load().bundle)
}

func TestReplicaFollowsTheSecret(t *testing.T) {
	client := fakes.New().Kube
	first, second := newServer(client), newServer(client)
	must.Do(t, first.sync(t.Context()))
	must.Do(t, client.CoreV1().Secrets("default").Delete(t.Context(), secret, metav1.DeleteOptions{}))
	must.Do(t, second.sync(t.Context()))
	must.Do(t, first.sync(t.Context()))
	verify(t, first, second.certificates.Load().bundle)
}

func TestCertificatesAreRenewedWithAnOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fakes.New().Kube
		always, seldom := newServer(client), newServer(client)
		var bundles [][]byte // one for each day
		servings, largest := map[string]bool{}, 0
		for day := range 3 * 365 {
			must.Do(t, always.sync(t.Context()))
			if day%7 == 0 {
				must.Do(t, seldom.sync(t.Context()))
			}
			bundle := always.certificates.Load().bundle
			bundles = append(bundles, bundle)
			largest = max(largest, bytes.Count(bundle, []byte("BEGIN")))
			servings[always.certificates.Load().serving.Leaf.SerialNumber.String()] = true
			for _, s := range []*Server{always, seldom} {
				verify(t, s, bundle)
				verify(t, s, bundles[max(0, day-60)]) // that of an API server that is late
			}
			time.Sleep(24 * time.Hour)
		}
		if largest != 2 {
			t.Errorf("a bundle had %d CAs, want at most the old and the new one", largest)
		}
		if len(servings) < 3*12 {
			t.Errorf("got %d serving certificates in three years, want one a month", len(servings))
		}
	})
}

func TestLongAbsenceEndsWithANewCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fakes.New().Kube
		must.Do(t, newServer(client).sync(t.Context()))
		time.Sleep(2 * caLife)
		s := newServer(client)
		must.Do(t, s.sync(t.Context()))
		verify(t, s, s.certificates.Load().bundle)
		if n := bytes.Count(s.certificates.Load().bundle, []byte("BEGIN")); n != 1 {
			t.Errorf("got %d CAs, want only the new one", n)
		}
	})
}

func TestDeletedSecretComesBack(t *testing.T) {
	client := fakes.New().Kube
	s := newServer(client)
	must.Do(t, s.sync(t.Context()))
	before := s.certificates.Load().bundle
	must.Do(t, client.CoreV1().Secrets("default").Delete(t.Context(), secret, metav1.DeleteOptions{}))
	must.Do(t, s.sync(t.Context()))
	other := newServer(client)
	must.Do(t, other.sync(t.Context()))
	verify(t, other, before)
}

func TestDamagedSecretIsAnError(t *testing.T) {
	client := fakes.New().Kube
	must.Do(t, newServer(client).sync(t.Context()))
	secrets := client.CoreV1().Secrets("default")
	damaged := must.Get(secrets.Get(t.Context(), secret, metav1.GetOptions{}))(t)
	damaged.Data["old.pem"] = []byte("no PEM")
	must.Get(secrets.Update(t.Context(), damaged, metav1.UpdateOptions{}))(t)
	err := newServer(client).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "entry old.pem") ||
		!strings.Contains(err.Error(), "delete the Secret") {
		t.Errorf("got error %v, want one that names the entry and says what to do", err)
	}
}

const (
	crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
		metadata: {name: foos.example.com},
		spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: b2xk}}}}}`
	validating = `{apiVersion: admissionregistration.k8s.io/v1, metadata: {name: foos},
		kind: ValidatingWebhookConfiguration, webhooks: [{name: a, clientConfig: {url: x}},
		{name: b, clientConfig: {caBundle: b2xk}}]}`
	withoutWebhook = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
		metadata: {name: foos.example.com}, spec: {conversion: {strategy: None}}}`
)

func bundles(t *testing.T, s *Server, target Target) (all []string) {
	t.Helper()
	object, err := s.config.Dynamic.Resource(target.Resource).Get(
		t.Context(), target.Name, metav1.GetOptions{})
	must.Do(t, err)
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	conversion, found, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook")
	if found {
		webhooks = append(webhooks, conversion)
	}
	for _, webhook := range webhooks {
		bundle, _, _ := unstructured.NestedString(webhook.(map[string]any), "clientConfig", "caBundle")
		all = append(all, bundle)
	}
	return all
}

func TestBundleComesBackWhenSomebodyOverwritesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newServer(fakes.New().Kube, crd, validating)
		if s.Check(nil) == nil {
			t.Error("the server is ready, but the targets have no caBundle yet")
		}
		must.Do(t, s.renew(ctx))
		go s.keep(ctx)
		synctest.Wait()
		if err := s.Check(nil); err != nil {
			t.Error(err)
		}
		want := base64.StdEncoding.EncodeToString(s.certificates.Load().bundle)
		for _, target := range s.config.Targets[:2] {
			objects := s.config.Dynamic.Resource(target.Resource)
			check := func(when string) {
				t.Helper()
				for _, got := range bundles(t, s, target) {
					if got != want {
						t.Errorf("%s of %s: got caBundle %q", when, target.Name, got)
					}
				}
			}
			check("start")
			object := must.Get(objects.Get(ctx, target.Name, metav1.GetOptions{}))(t)
			setBundle(object.Object, []byte("somebody else's"))
			must.Get(objects.Update(ctx, object, metav1.UpdateOptions{}))(t)
			synctest.Wait()
			check("overwriting")
		}
		cancel()
		synctest.Wait()
	})
}

func TestTargetWithoutWebhookIsLeftAlone(t *testing.T) {
	s := newServer(fakes.New().Kube, withoutWebhook)
	must.Do(t, s.sync(t.Context()))
	for _, action := range s.config.Dynamic.(*dynamicfake.FakeDynamicClient).Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("got a request %s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
	if err := s.Check(nil); err != nil {
		t.Error(err)
	}
}

func TestServerAnswersUntilTheLastRequestIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(fakes.New().Kube)
	s.config.Address = freeport.Address(t)
	answer := make(chan struct{})
	s.config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-answer
	})
	must.Do(t, s.Start(ctx))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: s.clientConfig()}}

	done := make(chan error, 1)
	go func() {
		response, err := client.Get("https://" + s.config.Address)
		if err == nil {
			err = response.Body.Close()
		}
		done <- err
	}()
	<-ctx.Done() // the request has begun
	select {
	case <-s.Done():
		t.Error("Done is closed before the request is answered")
	default:
	}
	for { // until it accepts no other request
		connection, err := net.Dial("tcp", s.config.Address)
		if err != nil {
			break
		}
		must.Do(t, connection.Close())
	}
	close(answer)
	if err := <-done; err != nil {
		t.Errorf("the request that had begun failed: %v", err)
	}
	<-s.Done()
}

func TestAddressZeroServesNothing(t *testing.T) {
	client := fakes.New().Kube
	s := newServer(client)
	s.config.Address = "0"
	must.Do(t, s.Start(t.Context()))
	<-s.Done()
	if err := s.Check(nil); err != nil {
		t.Error(err)
	}
	if n := len(client.Actions()); n > 0 {
		t.Errorf("got %d requests, want none", n)
	}
}
