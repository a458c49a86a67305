package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"syscall/js"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/lens/kubectl"
)

const (
	// actInterval is how often the other controllers of the cluster look for work, or less often if
	// they have much of it: nothing else happens meanwhile.
	actInterval = 200 * time.Millisecond
	// burst is how many Foos the button for many creates.
	burst = 1000
)

// These come from a file that docs/play makes.
var (
	setCluster func(*rest.Config)                     // which the programs use
	programs   map[string]func(context.Context) error // by the folder of their source
	archive    []byte                                 // a zip with the sources and manifests
)

// main is that of a Worker in a page: API server, program and lens, without a network.
func main() {
	klog.SetLogger(klog.Logger{}) // what the lens's own clients log
	routes, err := play(context.Background(), js.Global().Get("program").String())
	if err != nil {
		panic(err)
	}
	js.Global().Set("ask", js.FuncOf(func(_ js.Value, args []js.Value) any {
		go ask(routes, args[0].Int(), args[1].String(), args[2].String(), args[3].String())
		return nil
	}))
	js.Global().Call("ready")
	select {}
}

// play starts the world of one page.
func play(ctx context.Context, source string) (http.Handler, error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	server, err := newServer(files)
	if err != nil {
		return nil, err
	}
	o := &options{program: source, burst: burst}
	c := &cluster{config: server.Config(quotas{server})}
	p := &program{title: cmp.Or(strings.TrimPrefix(path.Base(source), "."), "controller"),
		run: programs[source]}
	s, err := newSession(o, c, "", p)
	if err != nil {
		return nil, err
	}
	s.files = files
	c.shell = &kubectl.Shell{Client: s.client, Files: files, LookupKind: server.LookupKind}
	if _, err := s.start(ctx); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.routes())
	mux.HandleFunc("POST /apply", s.serveApply)
	return mux, s.setGate("slow")
}

// newServer returns an API server that knows Foos, and starts what works there besides the program.
func newServer(files fs.FS) (*apiserver.Server, error) {
	text, err := fs.ReadFile(files, "artifacts/examples/crd.yaml")
	if err != nil {
		return nil, err
	}
	crds, err := apiserver.ParseCRDs(text)
	if err != nil {
		return nil, err
	}
	server := apiserver.New(crds...)
	act := explore.Others(server)
	go func() {
		for seen := int64(-1); ; {
			begin := time.Now()
			if now := server.Revision(); now != seen {
				act()
				seen = now
			}
			time.Sleep(max(actInterval, 3*time.Since(begin)))
		}
	}()
	return server, nil
}

// serveApply applies what a user has typed.
func (s *session) serveApply(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.cluster.typed = string(text)
	answer(w, s.do(r.Context(), action{Commands: []string{"kubectl apply --server-side -f -"}}))
}

// quotas refuses Deployments where a ResourceQuota allows none.
type quotas struct{ server *apiserver.Server }

// Serve implements apiserver.Interceptor.
func (q quotas) Serve(
	_ context.Context, r *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	if r.Verb == "create" && r.Resource.Resource == "deployments" {
		for _, quota := range q.server.List(schema.GroupVersionResource{Version: "v1",
			Resource: "resourcequotas"}) {
			limit, _, _ := unstructured.NestedString(quota.Object, "spec", "hard", "count/deployments.apps")
			if quota.GetNamespace() == r.Namespace && limit == "0" {
				return nil, apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, fmt.Errorf(
					"exceeded quota: %s, requested: count/deployments.apps=1, limited: "+
						"count/deployments.apps=0", quota.GetName()))
			}
		}
	}
	return do()
}

// Event implements apiserver.Interceptor.
func (q quotas) Event(w *apiserver.Watch, e watch.Event) { w.Send(e) }

// ask answers a request of the page, piece by piece.
func ask(routes http.Handler, number int, method, url, body string) {
	r, err := http.NewRequest(method, "http://page/"+url, bytes.NewBufferString(body))
	if err != nil {
		panic(err) // the page asks for nothing that is not a URL
	}
	w := &reply{number: number, header: http.Header{}}
	routes.ServeHTTP(w, r)
	js.Global().Call("answer", number, w.status, js.Null())
}

// reply is what a request of the page gets.
type reply struct {
	number, status int
	header         http.Header
}

func (w *reply) Header() http.Header    { return w.header }
func (w *reply) WriteHeader(status int) { w.status = status }
func (w *reply) Flush()                 {}

func (w *reply) Write(text []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	js.Global().Call("answer", w.number, w.status, string(text))
	return len(text), nil
}

// cluster is the API server in the page.
type cluster struct {
	config *rest.Config
	shell  *kubectl.Shell
	typed  string // by the user: the input of kubectl, unless a command pipes another one into it
}

// shell runs a command as the user does.
func (s *session) shell(ctx context.Context, line string) (output string, err error) {
	return s.cluster.shell.Run(ctx, line, s.cluster.typed)
}

// noteNamespace does nothing: nothing is left when the page is gone.
func (s *session) noteNamespace(string) error { return nil }
