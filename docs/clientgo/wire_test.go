package clientgo_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	factories "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// wire is an API server as a client sees it over HTTP: it notes each request, and answers it with
// the next of its answers. When no answer is left, the body stays empty and open.
type wire struct {
	requests chan string
	answers  chan answer
}

// answer is the answer to one request. Its body consists of lines, and ends when lines is closed.
type answer struct {
	code  int
	lines chan string
}

func newWire(answers ...answer) *wire {
	w := &wire{requests: make(chan string, 100), answers: make(chan answer, len(answers))}
	for _, a := range answers {
		w.answers <- a
	}
	return w
}

// stream returns an answer that begins with lines and stays open, as the answer to a watch does.
func stream(lines ...string) answer {
	a := answer{code: http.StatusOK, lines: make(chan string, 100)}
	for _, line := range lines {
		a.lines <- line
	}
	return a
}

func reply(code int, body string) answer {
	a := stream(body)
	a.code = code
	close(a.lines)
	return a
}

// RoundTrip takes the place of the network for the clientset of a wire.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	query.Del("timeoutSeconds") // 300 to 600, at random
	query.Del("timeout")        // the same
	w.requests <- query.Encode()
	a := stream()
	if len(w.answers) > 0 {
		a = <-w.answers
	}
	body, out := io.Pipe()
	go func() {
		for {
			select {
			case line, ok := <-a.lines:
				if !ok {
					out.Close()
					return
				}
				fmt.Fprintln(out, line)
			case <-r.Context().Done():
				out.CloseWithError(r.Context().Err())
				return
			}
		}
	}()
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: a.code, Header: header, Body: body, Request: r}, nil
}

// newFactory returns a factory of informers that list and watch over w.
func newFactory(w *wire) factories.SharedInformerFactory {
	client := clientset.NewForConfigOrDie(&rest.Config{Host: "http://wire", Transport: w, QPS: -1})
	return factories.NewSharedInformerFactory(client, 0)
}

// foosOf returns the informer of Foos that factory makes.
func foosOf(factory factories.SharedInformerFactory) informers.TypedFooInformer {
	return factory.Samplecontroller().V1alpha1().Foos()
}

// start starts the informers of factory. The function that it returns stops them and waits for
// their end.
func start(factory factories.SharedInformerFactory) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	return func() {
		cancel()
		factory.Shutdown()
	}
}

// foo returns a Foo as it looks on the wire, with extra metadata.
func foo(name, resourceVersion string, extra ...string) string {
	metadata := append([]string{fmt.Sprintf(
		`"namespace": "default", "name": %q, "resourceVersion": %q`, name, resourceVersion)}, extra...)
	return `{"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": {` +
		strings.Join(metadata, ", ") + `}, "spec": {"deploymentName": "` + name + `"}}`
}

func event(eventType, object string) string {
	return fmt.Sprintf(`{"type": %q, "object": %s}`, eventType, object)
}

// bookmark returns a bookmark: a Foo of which only the resourceVersion counts.
func bookmark(resourceVersion string) string {
	return event("BOOKMARK", foo("", resourceVersion))
}

// endOfList returns the bookmark that ends a streamed list.
func endOfList(resourceVersion string) string {
	return event("BOOKMARK", foo("", resourceVersion,
		`"annotations": {"k8s.io/initial-events-end": "true"}`))
}

// expired is the answer of a server that has dropped the history since a resourceVersion.
const expired = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410, ` +
	`"reason": "Expired", "message": "too old resource version"}`

// notes returns a handler that writes each of its calls to lines.
func notes(lines chan<- string) informers.FooDetailedHandlerFuncs {
	return informers.FooDetailedHandlerFuncs{
		AddFunc: func(foo *v1alpha1.Foo, isInInitialList bool) {
			initial := ""
			if isInInitialList {
				initial = ", in the initial list"
			}
			lines <- fmt.Sprintf("add %s %s%s", foo.Name, foo.ResourceVersion, initial)
		},
		UpdateFunc: func(old, foo *v1alpha1.Foo) {
			another := ""
			if foo.UID != old.UID {
				another = ", another object"
			}
			lines <- fmt.Sprintf("update %s %s to %s%s",
				foo.Name, old.ResourceVersion, foo.ResourceVersion, another)
		},
		DeleteFunc: func(foo informers.DeletedFoo) {
			known := foo.OptionalObj.ResourceVersion
			if foo.FinalStateUnknown != nil {
				known += ", final state unknown"
			}
			lines <- fmt.Sprintf("delete %s %s", foo.GetObjectName(), known)
		},
	}
}
