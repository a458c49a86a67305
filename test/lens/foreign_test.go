package lens

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/must"
)

// tryAll makes requests in each way that a page has, to all of urls. It notes what got through in
// the variable got.
const tryAll = `(async (urls) => {
  const got = [];
  const tries = urls.flatMap((url) => [
    fetch(url).then(() => got.push("read " + url), () => {}),
    fetch(url, { method: "POST", body: "{}" }).then(() => got.push("wrote " + url), () => {}),
    fetch(url, { method: "POST", body: "{}", mode: "no-cors" }).catch(() => {}),
    new Promise((done) => {
      const source = new EventSource(url);
      source.onopen = () => done(got.push("followed " + url));
      source.onerror = () => done(source.close());
    }),
    new Promise((done) => {
      const socket = new WebSocket(url.replace("http", "ws"));
      socket.onopen = () => done(got.push("connected to " + url));
      socket.onerror = done;
    }),
  ]);
  await Promise.all(tries);
  window.got = got;
})(%s), undefined`

// A web site that somebody has open may try all ports. It is given the tokens, too, which it cannot
// know.
func TestForeignPageGetsNothing(t *testing.T) {
	p := begin(t)
	before := mustRead[int](t, p, `document.querySelectorAll("[role=log] [data-id]").length`)
	lensAt, proxyAt, server := addresses(t)
	var urls []string
	for _, address := range []string{lensAt.Host, proxyAt.Host} {
		for _, token := range []string{"", lensAt.Path, "/0"} {
			urls = append(urls, "http://"+address+strings.TrimSuffix(token, "/")+"/actions/create",
				"http://"+address+strings.TrimSuffix(token, "/")+"/api/v1/namespaces?watch=true")
		}
	}
	for port := server; port < server+3; port++ {
		for _, scheme := range []string{"http", "https"} {
			urls = append(urls, fmt.Sprintf("%s://127.0.0.1:%d/v3/kv/range", scheme, port))
		}
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	defer site.Close()
	elsewhere := func(address string) string { // Chromium finds this name at 127.0.0.1
		return strings.Replace(address, "127.0.0.1", "site.example", 1)
	}
	foreign := must.Get(openPage(elsewhere(site.URL)))(t)
	defer foreign.close()
	text := must.Get(json.Marshal(urls))(t)
	foreign.mustDo(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(tryAll, text)))
	foreign.mustWait(t, "window.got")
	if got := mustRead[[]string](t, foreign, "window.got"); len(got) > 0 {
		t.Errorf("the page of another site has %q", got)
	}

	// Under a name of its own that leads here, the site would have the same origin.
	foreign.mustDo(t, chromedp.Navigate(elsewhere(lensAt.String())))
	if got := mustRead[string](t, foreign, "document.body.innerText"); !strings.Contains(got, "127.0.0.1") {
		t.Errorf("under another name, the lens shows %q", got)
	}
	p.settle(t)
	after := mustRead[int](t, p, `document.querySelectorAll("[role=log] [data-id]").length`)
	if err := isEmpty(); err != nil || after != before {
		t.Errorf("something was done: %v; %d entries in the list, before there were %d", err, after, before)
	}
}

// addresses returns where the shared lens and its proxy are, and the port of the API server.
func addresses(t *testing.T) (lensAt, proxyAt *url.URL, server int) {
	t.Helper()
	lensAt = must.Get(url.Parse(sharedLens.url))(t)
	address := must.Get(url.Parse(must.Get(controlPlane.Config())(t).Host))(t)
	server = must.Get(strconv.Atoi(address.Port()))(t)
	files := must.Get(filepath.Glob(root + ".local/lens/*/program.yaml"))(t)
	for _, file := range files {
		kubeconfig, err := clientcmd.LoadFromFile(file)
		must.Do(t, err)
		for _, cluster := range kubeconfig.Clusters {
			if strings.Contains(cluster.Server, lensAt.Path[:10]) {
				proxyAt, err = url.Parse(cluster.Server)
			}
		}
		must.Do(t, err)
	}
	if proxyAt == nil {
		t.Fatalf("no file of %q leads to the proxy", files)
	}
	return lensAt, proxyAt, server
}
