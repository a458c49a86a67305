package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/util/cert"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
)

func TestSecureMetricsAreEncryptedAndGuarded(t *testing.T) {
	address := freeport.Address(t)
	must.Do(t, Serve(t.Context(), Config{Address: address, Secure: new(true), Reviews: reviewers()}))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	response := must.Get(client.Get("https://" + address + "/metrics"))(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized || response.ProtoMajor != 1 {
		t.Errorf("got %d over %s, want 401 over HTTP/1", response.StatusCode, response.Proto)
	}
}

func TestProfilesAreServedIfAskedForAndGuarded(t *testing.T) {
	open, secure := Config{Profiling: true, Secure: new(false)}, Config{Profiling: true, Secure: new(true)}
	for _, test := range []struct {
		name   string
		config Config
		token  string
		path   string
		want   int
	}{
		{"not asked for", Config{Secure: new(false)}, "", "/debug/pprof/goroutine", http.StatusNotFound},
		{"the list", open, "", "/debug/pprof/", http.StatusOK},
		{"goroutines", open, "", "/debug/pprof/goroutine", http.StatusOK},
		{"a CPU profile", open, "", "/debug/pprof/profile?seconds=1", http.StatusOK},
		{"a trace", open, "", "/debug/pprof/trace?seconds=0.1", http.StatusOK},
		{"symbols", open, "", "/debug/pprof/symbol", http.StatusOK},
		{"the command line", open, "", "/debug/pprof/cmdline", http.StatusNotFound},
		{"a stranger", secure, "stranger", "/debug/pprof/heap", http.StatusUnauthorized},
		{"a stranger who looks around", secure, "", "/debug/pprof", http.StatusUnauthorized},
		{"a stranger who guesses", secure, "", "/nothing", http.StatusUnauthorized},
		{"somebody who may get the metrics", secure, "prometheus", "/debug/pprof/heap",
			http.StatusForbidden},
		{"somebody who may get profiles", secure, "profiler", "/debug/pprof/heap", http.StatusOK},
		{"the same, and the metrics", secure, "profiler", "/metrics", http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := test.config
			config.Reviews = reviewers()
			request := httptest.NewRequest(http.MethodGet, test.path, nil)
			request.Header.Set("Authorization", "Bearer "+test.token)
			recorder := httptest.NewRecorder()
			newHandler(config).ServeHTTP(recorder, request)
			if recorder.Code != test.want {
				t.Errorf("got code %d, want %d", recorder.Code, test.want)
			}
		})
	}
}

func TestADecisionIsAboutOnePath(t *testing.T) {
	handler := newHandler(Config{Profiling: true, Secure: new(true), Reviews: reviewers()})
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/debug/pprof/": http.StatusForbidden} {
		for range 2 { // the second time, it is remembered
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.Header.Set("Authorization", "Bearer prometheus")
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code != want {
				t.Errorf("%s: got code %d, want %d", path, recorder.Code, want)
			}
		}
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if recorder.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got code %d, want 405", recorder.Code)
	}
}

// The API server decides about the path as it was sent. What is served must have that path.
func TestOddPathsGetNothing(t *testing.T) {
	handler := newHandler(Config{Profiling: true, Secure: new(true), Reviews: reviewers()})
	for _, path := range []string{
		"/metrics/../debug/pprof/heap", "/metrics/%2e%2e/debug/pprof/heap", "//debug/pprof/heap",
		"/metrics/../metrics", "/metrics/", "/./metrics", "/metrics%00", "/Metrics",
	} {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.Header.Set("Authorization", "Bearer prometheus") // who may get all but /debug/pprof
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code == http.StatusOK {
			t.Errorf("%s: got code 200 and %d bytes, want a refusal", path, recorder.Body.Len())
		}
	}
}

func TestRenewedCertificateIsServed(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadCertificate(dir); err == nil {
		t.Error("a directory without a certificate: got no error, want one")
	}
	writeCertificate(t, dir, "before")
	get := must.Get(loadCertificate(dir))(t)
	if got := nameOn(t, get); got != "before" {
		t.Errorf(`host of the certificate: got %q, want "before"`, got)
	}
	writeCertificate(t, dir, "after")
	if got := nameOn(t, get); got != "after" {
		t.Errorf(`host of the renewed certificate: got %q, want "after"`, got)
	}
}

func TestSelfSignedCertificateIsMadeOnce(t *testing.T) {
	get := must.Get(loadCertificate(""))(t)
	first := must.Get(get(nil))(t)
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
	must.Do(t, errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)))
}

func nameOn(t *testing.T, get getCertificate) string {
	t.Helper()
	pair := must.Get(get(nil))(t)
	certificate := must.Get(x509.ParseCertificate(pair.Certificate[0]))(t)
	return certificate.DNSNames[0]
}
