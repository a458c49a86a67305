package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/lens/model"

	"example.com/sample-controller/internal/testing/must"
)

// newTestSession returns a session of no program, on an API server that apiServer plays.
func newTestSession(t *testing.T, apiServer http.HandlerFunc) *session {
	t.Helper()
	server := httptest.NewServer(apiServer)
	t.Cleanup(server.Close)
	c := &cluster{config: &rest.Config{Host: server.URL}, kubeconfig: clientcmdapi.NewConfig()}
	o := &options{root: "..", program: ".", burst: 3}
	s := must.Get(newSession(o, c, t.TempDir(), &program{title: "controller -v=5"}))(t)
	return s
}

// emptyServer is an API server that has nothing.
func emptyServer(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	w := get(newTestSession(t, emptyServer).routes(), "/")
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "'self'") {
		t.Errorf("Content-Security-Policy is %q", policy)
	}
}

// get returns the answer to a request of the page.
func get(handler http.Handler, path string) *httptest.ResponseRecorder {
	return ask(handler, http.MethodGet, path)
}

func post(handler http.Handler, path string) *httptest.ResponseRecorder {
	return ask(handler, http.MethodPost, path)
}

func ask(handler http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, nil))
	return w
}

func TestOnlyThePageMayAsk(t *testing.T) {
	const token, page = "/secret", "http://127.0.0.1:1234"
	for name, test := range map[string]struct {
		method, path, host, origin string
		allowed                    bool
	}{
		"the page":                      {"POST", token, "127.0.0.1:1234", page, true},
		"the page under another name":   {"POST", token, "localhost:1234", "http://localhost:1234", true},
		"the page with IPv6":            {"GET", token, "[::1]:1234", "", true},
		"the page without a port":       {"GET", token, "[::1]", "", true},
		"curl":                          {"POST", token, "127.0.0.1:1234", "", true},
		"another user of the machine":   {"GET", "", "127.0.0.1:1234", "", false},
		"a user who guesses":            {"POST", "/secrets", "127.0.0.1:1234", "", false},
		"a user with an odd path":       {"GET", "/x/.." + token, "127.0.0.1:1234", "", false},
		"a page of the web":             {"POST", token, "127.0.0.1:1234", "https://example.com", false},
		"a WebSocket of such a page":    {"GET", token, "127.0.0.1:1234", "https://example.com", false},
		"a page of another port":        {"GET", token, "127.0.0.1:1234", "http://127.0.0.1:1235", false},
		"a name that leads here":        {"POST", token, "example.com:1234", "http://example.com:1234", false},
		"a read under such a name":      {"GET", token, "example.com:1234", "", false},
		"a name that begins like here":  {"GET", token, "localhost.example.com", "", false},
		"an address in the network":     {"GET", token, "192.168.1.2:1234", "", false},
		"a page of a file":              {"GET", token, "127.0.0.1:1234", "null", false},
		"an image of a page of the web": {"GET", token, "127.0.0.1:1234", "cross-site", false},
		"an image of another port":      {"GET", token, "127.0.0.1:1234", "same-site", false},
		"an image of the page":          {"GET", token, "127.0.0.1:1234", "same-origin", true},
		"a user who types the address":  {"GET", token, "127.0.0.1:1234", "none", true},
		"nothing that is a name at all": {"GET", token, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var reached string
			handler := protected("secret", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				reached = r.URL.Path
			}))
			r := httptest.NewRequest(test.method, test.path+"/actions/create", nil)
			r.Host = test.host
			switch {
			case strings.Contains(test.origin, "-") || test.origin == "none": // without an Origin
				r.Header.Set("Sec-Fetch-Site", test.origin)
			case test.origin != "":
				r.Header.Set("Origin", test.origin)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if test.allowed && reached != "/actions/create" ||
				!test.allowed && (reached != "" || w.Code != http.StatusForbidden) {
				t.Errorf("reached %q (%d), allowed: %v", reached, w.Code, test.allowed)
			}
		})
	}
}

func TestPageAndProxyAreServedToThoseWhoKnowTheToken(t *testing.T) {
	s := newTestSession(t, func(http.ResponseWriter, *http.Request) {})
	for path, handler := range map[string]http.Handler{
		"/web/lens.js": s.routes(), "/api/v1/secrets": s.proxy,
	} {
		address, end, err := s.serve(handler)
		must.Do(t, err)
		defer end()
		response := must.Get(http.Get(address))(t)
		response.Body.Close()
		if got, want := response.Request.URL.String(), address+"/"; got != want {
			t.Errorf("%s led to %s, want %s", address, got, want)
		}
		for address, want := range map[string]int{
			address: http.StatusOK, strings.TrimSuffix(address, "/"+s.token): http.StatusForbidden,
		} {
			response := must.Get(http.Get(address + path))(t)
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s%s: %s, want %d", address, path, response.Status, want)
			}
		}
	}
}

// The program may have to wait for see, and not for what is made of that.
func TestSeeDoesNotWaitForTheModel(t *testing.T) {
	l := newLens()
	page := l.open()
	receive(t, page)
	seen := make(chan bool)
	l.mu.Lock() // as a model that takes its time
	go func() {
		l.see(model.Seen{Server: &model.Server{State: "up"}})
		l.see(model.Seen{Server: &model.Server{State: "down"}})
		close(seen)
	}()
	receive(t, seen)
	l.mu.Unlock()
	frame := string(receive(t, page))
	if _, then, ok := strings.Cut(frame, `"up"`); !ok || !strings.Contains(then, `"down"`) {
		t.Errorf("a frame has not both steps in their order: %s", frame)
	}
}

func TestSlowPageHasToBeginAgain(t *testing.T) {
	s := newTestSession(t, emptyServer)
	slow, quick := s.lens.open(), s.lens.open()
	defer s.lens.close(quick)
	receive(t, quick)
	for i := range maxBehind + 1 {
		s.lens.see(model.Seen{Server: &model.Server{State: "up", Host: fmt.Sprint(i)}})
		s.lens.show()
		receive(t, quick)
	}
	received := 0
	for receive(t, slow) != nil { // until it is closed
		received++
	}
	if received != maxBehind {
		t.Errorf("the page got %d frames before it was dropped, want %d", received, maxBehind)
	}
	s.lens.close(slow) // the handler does that, too
	again := s.lens.open()
	defer s.lens.close(again)
	if all := receive(t, again); !strings.Contains(string(all), fmt.Sprintf(`"host":"%d"`, maxBehind)) {
		t.Errorf("then it got %s", all)
	}
}

func TestGate(t *testing.T) {
	s := newTestSession(t, emptyServer)
	routes := s.routes()
	for _, want := range []model.Gate{{Mode: "paused"}, {Mode: "slow", Delay: "300ms"}, {Mode: "open"}} {
		code := post(routes, "/gate/"+want.Mode).Code
		if code != http.StatusOK || s.lens.all()["gate"] != want {
			t.Errorf("%s: %d, %+v", want.Mode, code, s.lens.all()["gate"])
		}
	}
	if code := post(routes, "/gate/fast").Code; code != http.StatusBadRequest {
		t.Errorf("an unknown mode: %d, want 400", code)
	}
}

func TestCodeIsFound(t *testing.T) {
	routes := newTestSession(t, emptyServer).routes()
	for place, names := range functions {
		w := get(routes, "/code?place="+place)
		var found model.Code
		if err := json.Unmarshal(w.Body.Bytes(), &found); err != nil || found.Name != names[0] {
			t.Errorf("%s: %d %s", place, w.Code, w.Body)
		}
		source := must.Get(os.ReadFile("../" + found.File))(t)
		from := strings.Join(strings.SplitAfter(string(source), "\n")[found.Line-1:], "")
		if !strings.HasPrefix(found.Text, "// "+found.Name) || !strings.HasPrefix(from, found.Text+"\n") ||
			!strings.HasSuffix(found.Text, "\n}") {
			t.Errorf("%s: got %+v", place, found)
		}
	}
	if code := post(routes, "/actions/fly").Code; code != http.StatusNotFound {
		t.Errorf("an unknown action: %d, want 404", code)
	}
}
