package webhook

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const (
	caLife      = 365 * 24 * time.Hour
	servingLife = 30 * 24 * time.Hour
	// clockSkew is how far the clock of an API server may be behind.
	clockSkew = time.Hour
)

// authorities are the data of the Secret: an entry for each CA, with its certificate and its key in
// PEM. The names of the entries begin with the date, so they sort from old to new.
//
// The CA that is going to end gets a successor when half of its life is over. From then on, both
// are in the bundle. But the old one signs for another quarter of its life. So every API server has
// the successor in its caBundle long before it sees a certificate of it.
type authorities map[string][]byte

// certificates are what a Server serves with, and the CAs by which API servers verify it.
type certificates struct {
	serving tls.Certificate
	signer  tls.Certificate
	bundle  []byte
}

// renew reads the Secret, and makes or renews the CA and the serving certificate if necessary.
func (s *Server) renew(ctx context.Context) error {
	// Another replica may do the same at the same time: then read what it has written.
	again := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	}
	err := retry.OnError(retry.DefaultBackoff, again, func() error { return s.renewAuthorities(ctx) })
	if err != nil {
		return fmt.Errorf("keeping the CA in Secret %s/%s: %w", s.config.Namespace, s.config.Secret, err)
	}
	next, err := s.authorities.certificates(s.certificates.Load(), s.config.Hosts)
	if err != nil {
		return err
	}
	s.certificates.Store(next)
	return nil
}

// renewAuthorities reads the CAs from the Secret, and writes it if one is new or over. If somebody
// has deleted the Secret, the CAs that are in use come back.
func (s *Server) renewAuthorities(ctx context.Context) error {
	secrets := s.config.Kube.CoreV1().Secrets(s.config.Namespace)
	secret, err := secrets.Get(ctx, s.config.Secret, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	if missing {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: s.config.Secret, Namespace: s.config.Namespace},
			Data:       s.authorities,
		}
	}
	renewed, err := authorities(secret.Data).renew(time.Now())
	if err != nil {
		return err
	}
	if missing || !maps.EqualFunc(renewed, secret.Data, bytes.Equal) {
		secret.Data = renewed
		if missing {
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: s.config.Manager})
		} else {
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: s.config.Manager})
		}
		if err != nil {
			return err
		}
	}
	s.authorities = renewed
	return nil
}

// renew returns the authorities without those that are over and, if the newest one has lived half
// of its life, with a successor.
func (a authorities) renew(now time.Time) (authorities, error) {
	renewed := authorities{}
	successorNeeded := true
	for name, data := range a {
		authority, err := tls.X509KeyPair(data, data)
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w; delete the Secret to begin anew", name, err)
		}
		if now.After(authority.Leaf.NotAfter) {
			continue
		}
		renewed[name] = data
		if authority.Leaf.NotAfter.Sub(now) > caLife/2 {
			successorNeeded = false
		}
	}
	if !successorNeeded {
		return renewed, nil
	}
	name := now.UTC().Format("2006-01-02T15-04-05Z")
	authority, err := issue(&x509.Certificate{
		Subject:   pkix.Name{CommonName: "webhooks " + name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(authority.PrivateKey)
	if err != nil {
		return nil, err
	}
	renewed[name+".pem"] = append(certificatePEM(authority), pem.EncodeToMemory(&pem.Block{
		Type: "PRIVATE KEY", Bytes: key,
	})...)
	return renewed, nil
}

// certificates returns the bundle of the authorities, and the serving certificate: the one in old,
// unless old is nil, half of its life is over, or it is time for another signer.
func (a authorities) certificates(old *certificates, hosts []string) (*certificates, error) {
	now := time.Now()
	next := &certificates{}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		authority, err := tls.X509KeyPair(a[name], a[name])
		if err != nil {
			return nil, err
		}
		next.bundle = append(next.bundle, certificatePEM(authority)...)
		// The oldest one signs until a quarter of its life is left; the last one, if there is no other.
		if next.signer.Leaf == nil || next.signer.Leaf.NotAfter.Sub(now) < caLife/4 {
			next.signer = authority
		}
	}
	if old != nil && old.signer.Leaf.Equal(next.signer.Leaf) &&
		old.serving.Leaf.NotAfter.Sub(now) > servingLife/2 {
		next.serving = old.serving
		return next, nil
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: hosts[0]},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(servingLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	var err error
	next.serving, err = issue(template, &next.signer)
	return next, err
}

// issue makes a key and a certificate of template for it. If signer is nil, it signs itself.
func issue(template *x509.Certificate, signer *tls.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	parent, parentKey := template, crypto.PrivateKey(key)
	if signer != nil {
		parent, parentKey = signer.Leaf, signer.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

func certificatePEM(c tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw})
}
