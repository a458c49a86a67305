// Package audit reads the audit log of a local API server: which user requested what, with which
// outcome, and when by the API server's clock.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is what the log says about a request.
type Request struct {
	Stage            string
	Verb             string
	RequestURI       string
	UserAgent        string
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus   metav1.Status
	// When the request was received and when it was answered, to the microsecond.
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// User returns the user who made r. Each program under test impersonates its own user.
func (r Request) User() string { return r.ImpersonatedUser.Username }

// What returns verb and resource, for example "patch foos/status". A request without a resource is
// discovery.
func (r Request) What() string {
	if r.ObjectRef.Resource == "" {
		return r.Verb + " (discovery)"
	}
	what := r.Verb + " " + r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	return what
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s %s (%d)", r.Verb, r.RequestURI, r.ObjectRef.Name, r.ResponseStatus.Code)
}

// IsWatch reports whether r is a watch, which costs nothing while nothing changes.
func (r Request) IsWatch() bool { return r.Verb == "watch" }

// IsWrite reports whether r asks for a change.
func (r Request) IsWrite() bool { return !r.IsWatch() && r.Verb != "get" && r.Verb != "list" }

// Succeeded reports whether the API server did what r asks for.
func (r Request) Succeeded() bool { return r.ResponseStatus.Code < 300 }

// Creates reports whether r created an object of that resource.
func (r Request) Creates(resource string) bool {
	return r.What() == "create "+resource && r.Succeeded()
}

// Mark is a place in a log.
type Mark int64

// End returns the end of the log in that file, where the next request will be noted.
func End(path string) (Mark, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("no audit log: %w", err)
	}
	return Mark(info.Size()), nil
}

// Read returns the requests that were noted after a mark, of users whose names begin with user, and
// the mark behind them. The API server notes a request before its answer is complete, and a watch
// when it begins. Read skips lines that are not JSON: a killed API server leaves half a line.
func Read(path string, after Mark, user string) (requests []Request, end Mark, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, after, fmt.Errorf("no audit log: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, int64(after), 1<<40))
	if err != nil {
		return nil, after, fmt.Errorf("reading the audit log: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the end of a line may not be written yet
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(user)) {
			continue
		}
		var r Request
		err := json.Unmarshal(line, &r)
		if _, half := errors.AsType[*json.SyntaxError](err); half {
			continue
		}
		if err != nil {
			return nil, after, fmt.Errorf("reading the audit log: %w: %s", err, line)
		}
		// A watch is noted a second time when it ends, which may be much later.
		counts := (r.Stage == "ResponseComplete") != r.IsWatch()
		if counts && strings.HasPrefix(r.User(), user) {
			requests = append(requests, r)
		}
	}
	return requests, after + Mark(len(text)), nil
}
