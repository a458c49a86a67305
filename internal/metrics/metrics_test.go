package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"example.com/sample-controller/internal/freeport"
)

func TestSecureMetricsAreEncryptedAndGuarded(t *testing.T) {
	address := freeport.Address(t)
	err := Serve(t.Context(), Config{Address: address, Secure: true, Reviews: reviewers()})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized || response.ProtoMajor != 1 {
		t.Errorf("got %d over %s, want 401 over HTTP/1", response.StatusCode, response.Proto)
	}
}

func TestProfilesAreServedIfAskedForAndGuarded(t *testing.T) {
	for _, test := range []struct {
		name   string
		config Config
		token  string
		want   int
	}{
		{"not asked for", Config{}, "", http.StatusNotFound},
		{"on a loopback address", Config{Profiling: true}, "", http.StatusOK},
		{"secure, a stranger", Config{Profiling: true, Secure: true}, "stranger",
			http.StatusUnauthorized},
		// The reviewers allow the metrics, and nothing else.
		{"secure, somebody who may get the metrics", Config{Profiling: true, Secure: true},
			"prometheus", http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := test.config
			config.Address, config.Reviews = freeport.Address(t), reviewers()
			if err := Serve(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			url := "http://" + config.Address + "/debug/pprof/goroutine"
			if config.Secure {
				url = "https" + strings.TrimPrefix(url, "http")
			}
			request, err := http.NewRequest(http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+test.token)
			client := &http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			}}
			defer client.CloseIdleConnections()
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != test.want {
				t.Errorf("got %d, want %d", response.StatusCode, test.want)
			}
		})
	}
}

func TestRenewedCertificateIsServed(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadCertificate(dir); err == nil {
		t.Error("a directory without a certificate: got no error, want one")
	}
	writeCertificate(t, dir, "before")
	get, err := loadCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := nameOn(t, get); got != "before" {
		t.Errorf(`host of the certificate: got %q, want "before"`, got)
	}
	writeCertificate(t, dir, "after")
	if got := nameOn(t, get); got != "after" {
		t.Errorf(`host of the renewed certificate: got %q, want "after"`, got)
	}
}

func TestSelfSignedCertificateIsMadeOnce(t *testing.T) {
	get, err := loadCertificate("")
	if err != nil {
		t.Fatal(err)
	}
	first, err := get(nil)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := get(nil); second != first {
		t.Error("the second connection got another certificate, want the same one")
	}
}

func writeCertificate(t *testing.T, dir, host string) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// nameOn returns the host that the certificate is for.
func nameOn(t *testing.T, get getCertificate) string {
	t.Helper()
	pair, err := get(nil)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return certificate.DNSNames[0]
}
