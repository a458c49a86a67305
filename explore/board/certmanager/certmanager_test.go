// Package certmanager explores the controllers of Certificates of cert-manager.
package certmanager

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	api "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/board"
)

func TestCertificate(t *testing.T) {
	const issuer = `{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: self}, spec: {selfSigned: {}},
		status: {conditions: [{type: Ready, status: "True"}]}}`
	const certificate = `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}, spec: {
		secretName: a, dnsNames: [a.example.com], issuerRef: {name: self}, privateKey: {algorithm: ECDSA}}}`
	board.Explore(t, "github.com/cert-manager/cert-manager", explore.Controller{
		CRDs: []string{"deploy/crds/*.yaml"},
		// They make the *rest.Config themselves, and what that uses is http.DefaultTransport.
		Run: func(ctx context.Context, config *rest.Config) error {
			http.DefaultTransport = config.Transport
			factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{APIServerHost: config.Host,
				KubernetesAPIQPS: 1000, KubernetesAPIBurst: 1000})
			if err != nil {
				return err
			}
			group, ctx := errgroup.WithContext(ctx)
			for _, name := range []string{approver.ControllerName, selfsigned.CRControllerName,
				issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName,
				requestmanager.ControllerName, revisionmanager.ControllerName, trigger.ControllerName} {
				c, err := controller.Known()[name](factory)
				if err != nil {
					return err
				}
				group.Go(func() error { return c.Run(2, ctx) })
			}
			shared, err := factory.Build()
			if err != nil {
				return err
			}
			shared.SharedInformerFactory.Start(ctx.Done())
			shared.KubeSharedInformerFactory.Start(ctx.Done())
			return group.Wait()
		},
		Scenarios: []explore.Scenario{
			{Name: "issue", EndVaries: true, Steps: []explore.Step{explore.Create(issuer),
				explore.Patch("issuers.cert-manager.io/self/status", `status: {conditions: [{type: Ready, status: "True"}]}`),
				explore.Create(certificate)}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			if explore.Get[api.Issuer](now, "issuers.cert-manager.io", "self") == nil {
				return nil
			}
			for _, c := range explore.List[api.Certificate](now, "certificates.cert-manager.io") {
				secret := explore.Get[corev1.Secret](now, "secrets", c.Spec.SecretName)
				if secret == nil || len(secret.Data["tls.crt"]) == 0 {
					wrong = append(wrong, fmt.Sprintf("the Certificate %s has no Secret with a certificate", c.Name))
				}
				if !slices.ContainsFunc(c.Status.Conditions, func(c api.CertificateCondition) bool {
					return c.Type == api.CertificateConditionReady && c.Status == "True"
				}) {
					wrong = append(wrong, fmt.Sprintf("the Certificate %s is not ready", c.Name))
				}
			}
			return wrong
		},
	}, board.Known{
		Where: "/(watch-secrets-1|secrets-ADDED-a-1)/|/secrets-2-writes-behind$", What: "never comes to rest: .* of the Certificate a ", Verdict: "true",
		Why: "while its watch of Secrets shows nothing, it issues again and again: the trigger controller looks into its " +
			"cache (`secretLister`), which has no Secret, and nothing slows it down when issuing succeeds",
	})
}
