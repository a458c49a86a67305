package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

func TestRequestsPass(t *testing.T) {
	for _, mediaType := range []string{jsonType, protobufType} {
		t.Run(mediaType, func(t *testing.T) {
			sent := encode(t, mediaType, deployment("b", ""))
			stored := encode(t, jsonType, deployment("b", "7"))
			l := startLine(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !bytes.Equal(body, sent) || r.URL.RawQuery != "dryRun=All" ||
					r.Header.Get("Accept") != jsonType+","+jsonType+","+jsonType+";q=0.9" {
					t.Errorf("got %s %s with %q, %v, %v", r.Method, r.URL, body, r.Header, err)
				}
				w.Header().Set("Content-Type", jsonType)
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write(stored)
			})

			response := must.Get(l.do(http.MethodPost, deploymentsPath+"?dryRun=All", mediaType, sent))(t)
			defer response.Body.Close()
			l.wantNext(response.Body, stored)
			if response.StatusCode != http.StatusCreated {
				t.Errorf("got %s, want 201", response.Status)
			}

			object := Object{Resource: "deployments.apps", Kind: "Deployment", Namespace: "a", Name: "b",
				Summary: "no status yet"}
			want := Event{Request: 1, Verb: "create", Version: "v1", Resource: "deployments.apps",
				Namespace: "a", Object: &object}
			for i, got := range l.await(3, func(Event) bool { return true }) {
				want.Kind = []Kind{RequestArrived, RequestPassed, Answered}[i]
				if want.Kind == Answered {
					object.ResourceVersion, want.Code = "7", 201
				}
				if got.At.Before(want.At) {
					t.Errorf("event %d is earlier than the one before", i)
				}
				if want.At = got.At; !reflect.DeepEqual(got, want) {
					t.Errorf("event %d: got %+v (%+v), want %+v (%+v)", i, got, got.Object, want, object)
				}
			}
		})
	}
}

func TestHeldRequestIsNotPassed(t *testing.T) {
	passed := make(chan string, 10)
	l := startLine(t, func(_ http.ResponseWriter, r *http.Request) { passed <- r.URL.Path })
	l.Pause()
	first := l.start(http.MethodPost, deploymentsPath)
	l.awaitKind(1, RequestArrived)
	second := l.start(http.MethodDelete, deploymentsPath+"/b")
	l.awaitKind(2, RequestArrived)

	// These are not held.
	for _, path := range []string{"/version", "/apis/apps/v1", leasesPath, leasesPath + "/b"} {
		l.get(path)
		if got := received(passed); got != path {
			t.Errorf("%q has passed, want %s", got, path)
		}
	}

	l.wantWaiting(2)
	l.Step()
	must.Do(t, <-first)
	l.wantWaiting(1)
	l.Open()
	must.Do(t, <-second)
	l.wantWaiting(0)
}

func TestClientThatGoesAwayWaitsNoMore(t *testing.T) {
	l := startLine(t, func(http.ResponseWriter, *http.Request) { t.Error("the request has passed") })
	l.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	body := strings.NewReader(`[{"op": "remove", "path": "/spec"}]`)
	r := must.Get(http.NewRequestWithContext(
		ctx, http.MethodPatch, l.address+deploymentsPath+"/b", body))(t)
	r.Header.Set("Content-Type", "application/json-patch+json")
	go func() {
		if response, err := l.client().Do(r); err == nil {
			response.Body.Close()
		}
	}()
	l.awaitKind(1, RequestArrived)
	cancel()

	answer := l.awaitKind(1, Answered)[0]
	if answer.Code != 0 || answer.Reason != "the program closed the connection" {
		t.Errorf("got %+v, want no answer", answer)
	}
	l.wantWaiting(0)
	if kinds := l.kinds(); slices.Contains(kinds, RequestPassed) {
		t.Errorf("got %v, want that nothing passed", kinds)
	}
}
