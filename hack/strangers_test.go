package hack

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/must"
)

// Every user of a machine can connect to its ports, and every web site in a browser can send
// requests to them.
func TestStrangersGetNothingFromTheLocalControlPlane(t *testing.T) {
	onCluster(t)
	config := must.Get(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))(t)
	port := must.Get(strconv.Atoi(must.Get(url.Parse(config.Host))(t).Port()))(t)
	open := 0
	for i := port; i < port+3; i++ { // as hack/cluster chooses them
		address := fmt.Sprint("127.0.0.1:", i)
		connection, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		connection.Close()
		open++
		for _, scheme := range []string{"http://", "https://"} {
			for _, path := range []string{
				"/", "/version/", "/members", "/v3/kv/range", "/etcdserverpb.KV/Range", "/metrics",
				"/debug/pprof/", "/discovery/prometheus", "/pods", "/logs/", "/exec/a/b/c",
				"/api/v1/namespaces/default/secrets",
			} {
				refused(t, scheme+address+path)
			}
		}
	}
	if open < 3 {
		t.Errorf("only %d ports are open: which ones does hack/cluster choose?", open)
	}
}

// refused checks that a request without credentials gets an error, and that a browser would not let
// the page of anybody else read it.
func refused(t *testing.T, url string) {
	t.Helper()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer insecure.CloseIdleConnections()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		request := must.Get(http.NewRequestWithContext(
			t.Context(), method, url, strings.NewReader("{}")))(t)
		request.Header.Set("Origin", "https://example.com")
		request.Header.Set("Content-Type", "text/plain") // so a browser does not ask first
		response, err := insecure.RoundTrip(request)
		if err != nil {
			continue // it demands a certificate, or TLS
		}
		response.Body.Close()
		if response.StatusCode < 400 || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: %s, %q", method, url, response.Status, response.Header)
		}
	}
}

func TestOthersCannotReadTheFilesOfTheLocalControlPlane(t *testing.T) {
	onCluster(t)
	folder := filepath.Dir(os.Getenv("KUBECONFIG"))
	local := filepath.Dir(filepath.Dir(folder))
	files := 0
	check := func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the programs are at work
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Type() != fs.ModeSymlink && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		files++
		return nil
	}
	if err := filepath.WalkDir(folder, check); err != nil || files < 20 {
		t.Errorf("looked at %d files: %v", files, err)
	}
	if info, err := os.Stat(local); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", local, info, err)
	}
}
