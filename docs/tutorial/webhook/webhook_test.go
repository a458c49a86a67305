package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
)

// certificate returns a new certificate and its key, and a client that accepts no other one.
func certificate(t *testing.T) (certificate, key []byte, client *http.Client) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	must.Do(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return certificate, key, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
	}}
}

func write(t *testing.T, dir string, certificate, key []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
}

func get(client *http.Client, address string) error {
	response, err := client.Get("https://" + address)
	if err == nil {
		err = response.Body.Close()
	}
	return err
}

func TestRenewedCertificateIsServedWithoutARestart(t *testing.T) {
	dir, address := t.TempDir(), must.Get(process.FreeAddress())(t)
	first, firstKey, firstClient := certificate(t)
	second, secondKey, secondClient := certificate(t)
	write(t, dir, first, firstKey)
	must.Get(Serve(t.Context(), address, dir, http.NotFoundHandler()))(t)

	must.Do(t, get(firstClient, address))
	write(t, dir, second, firstKey) // somebody has written only one of the two files
	if err := get(firstClient, address); err != nil {
		t.Errorf("while the files do not fit: %v", err)
	}
	write(t, dir, second, secondKey)
	if err := get(secondClient, address); err != nil {
		t.Errorf("a client that knows the new certificate: %v", err)
	}
	if err := get(firstClient, address); err == nil {
		t.Error("a client that knows the old certificate: got no error")
	}
}

func TestMissingCertificateSaysWhatToDo(t *testing.T) {
	_, err := Serve(t.Context(), must.Get(process.FreeAddress())(t), t.TempDir(), http.NotFoundHandler())
	if err == nil || !strings.Contains(err.Error(), "name it with --webhook-cert-dir") {
		t.Errorf("got error %v, want one that names the flag", err)
	}
}

func TestServerAnswersUntilTheLastRequestIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir, address := t.TempDir(), must.Get(process.FreeAddress())(t)
	certificate, key, client := certificate(t)
	write(t, dir, certificate, key)
	answer := make(chan struct{})
	answered := must.Get(Serve(ctx, address, dir, http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) {
			cancel()
			<-answer
		})))(t)

	done := make(chan error, 1)
	go func() { done <- get(client, address) }()
	<-ctx.Done() // the request has begun
	for {        // until it accepts no other request
		connection, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		must.Do(t, connection.Close())
	}
	select {
	case <-answered:
		t.Error("the channel is closed before the request is answered")
	default:
	}
	close(answer)
	if err := <-done; err != nil {
		t.Errorf("the request that had begun failed: %v", err)
	}
	<-answered
}

func TestAddressZeroServesNothing(t *testing.T) {
	<-must.Get(Serve(t.Context(), "0", "no folder", nil))(t)
}
