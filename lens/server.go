package main

import (
	"crypto/subtle"
	"embed"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"example.com/sample-controller/lens/model"
)

const (
	// writeTimeout is how long a browser may take to read what there is.
	writeTimeout = time.Minute
	// slowness is for how long each thing is held if the user wants it slow.
	slowness = 300 * time.Millisecond
)

//go:embed web/*.html web/*.css web/*.js
var files embed.FS

// routes returns the handler of all that the page asks for.
func (s *session) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /web/", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, "web/index.html")
	})
	mux.HandleFunc("GET /steps", s.serveSteps)
	mux.HandleFunc("GET /actions", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, s.actions())
	})
	mux.HandleFunc("POST /actions/{id}", s.serveAction)
	mux.HandleFunc("GET /code", s.serveCode)
	mux.HandleFunc("POST /gate/{mode}", s.serveGate)
	mux.HandleFunc("POST /gate/step", func(http.ResponseWriter, *http.Request) { s.proxy.Step() })
	return withHeaders(mux)
}

// serve serves handler on a free port of this machine until end is called. All that it serves is
// below the address that it returns.
func (s *session) serve(handler http.Handler) (address string, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: protected(s.token, handler)}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return fmt.Sprintf("http://%s/%s", listener.Addr(), s.token), func() { server.Close() }, nil
}

// isLoopback reports whether host is this machine.
func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// protected lets handler answer only those who know the token: the path that they ask for begins
// with it. Every user of this machine can connect to its ports, and so can every web site in the
// user's browser. If a web site learns the token, it gets nothing all the same: what it asks for
// has its Origin, or a name that is not of this machine (see "DNS rebinding").
func protected(token string, handler http.Handler) http.Handler {
	handler = http.StripPrefix("/"+token, handler)
	handler = http.NewCrossOriginProtection().Handler(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		given, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		origin := r.Header.Get("Origin")       // a WebSocket begins with a GET, which has one, too
		site := r.Header.Get("Sec-Fetch-Site") // of each request of a browser, such as an image's
		switch {
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			http.Error(w, "use the address that the lens has printed", http.StatusForbidden)
		case !isLoopback(host), origin != "" && origin != "http://"+r.Host,
			site != "" && site != "same-origin" && site != "none":
			http.Error(w, "this is for 127.0.0.1 and localhost only", http.StatusForbidden)
		case r.URL.Path == "/"+token: // what the page asks for is below
			http.Redirect(w, r, r.URL.Path+"/", http.StatusFound)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

// withHeaders tells the browser to load nothing from elsewhere, and to let nobody else load this.
func withHeaders(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy",
			"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		handler.ServeHTTP(w, r)
	})
}

// serveSteps sends what happens, frame by frame.
func (s *session) serveSteps(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	page := s.lens.open()
	defer s.lens.close(page)
	control := http.NewResponseController(w)
	fmt.Fprint(w, "retry: 500\n\n") // milliseconds until the browser connects again
	for {
		select {
		case <-r.Context().Done():
			return
		case messages, ok := <-page:
			if !ok {
				return // the browser is too slow
			}
			_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder in tests has none
			if _, err := w.Write(messages); err != nil || control.Flush() != nil {
				return
			}
		}
	}
}

// serveAction does what a button is for.
func (s *session) serveAction(w http.ResponseWriter, r *http.Request) {
	a, ok := s.action(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer(w, s.do(r.Context(), a))
}

func (s *session) serveGate(w http.ResponseWriter, r *http.Request) {
	if err := s.setGate(r.PathValue("mode")); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// setGate sets how the proxy holds back what passes it.
func (s *session) setGate(mode string) error {
	gate := model.Gate{Mode: mode}
	switch mode {
	case "open":
		s.proxy.Open()
	case "paused":
		s.proxy.Pause()
	case "slow":
		s.proxy.Slow(slowness)
		gate.Delay = slowness.String()
	default:
		return fmt.Errorf("there is no mode %q: open, paused, slow", mode)
	}
	s.lens.see(model.Seen{Gate: &gate})
	return nil
}

func (s *session) serveCode(w http.ResponseWriter, r *http.Request) {
	found, err := findCode(s.files, s.source, r.FormValue("place"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	answer(w, found)
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(value)) // an error means that nobody waits for it any more
}
