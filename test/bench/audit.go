package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// userPrefix begins the names of the users whose requests are measured.
const userPrefix = "bench-"

// request is what the API server's audit log says about a request. Its times are the server's, in
// microseconds.
type request struct {
	Stage                    string
	Verb                     string
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time // when it was answered
	ImpersonatedUser         struct{ Username string }
	ObjectRef                struct{ Resource, Subresource, Name string }
	ResponseStatus           struct{ Code int }
}

// user returns who asked.
func (r request) user() string { return r.ImpersonatedUser.Username }

// what returns verb and resource, for example "patch foos/status". What has no resource asks which
// there are.
func (r request) what() string {
	if r.ObjectRef.Resource == "" {
		return r.Verb + " (discovery)"
	}
	what := r.Verb + " " + r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	return what
}

// isWatch reports whether r waits for news, and costs nothing while there are none.
func (r request) isWatch() bool { return r.Verb == "watch" }

// isWrite reports whether r is to change something.
func (r request) isWrite() bool { return !r.isWatch() && r.Verb != "get" && r.Verb != "list" }

// creates reports whether r created an object of that resource.
func (r request) creates(resource string) bool {
	return r.what() == "create "+resource && r.ResponseStatus.Code == 201
}

// auditLog follows an audit log.
type auditLog struct {
	file *os.File
	rest []byte // the beginning of a line whose end is not written yet
}

// openAuditLog returns what follows the end of that file.
func openAuditLog(path string) (*auditLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	_, err = file.Seek(0, io.SeekEnd)
	return &auditLog{file: file}, err
}

// read returns the requests of measured users that were answered since the last read.
func (l *auditLog) read() (found []request, err error) {
	text, err := io.ReadAll(l.file)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	text = append(l.rest, text...)
	end := bytes.LastIndexByte(text, '\n') + 1
	l.rest = bytes.Clone(text[end:])
	for line := range bytes.Lines(text[:end]) {
		if !bytes.Contains(line, []byte(`"`+userPrefix)) {
			continue
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w: %s", err, line)
		}
		// A watch is noted when it begins, and again when it ends, which may be much later.
		if (r.Stage == "ResponseComplete") != r.isWatch() {
			found = append(found, r)
		}
	}
	return found, nil
}
