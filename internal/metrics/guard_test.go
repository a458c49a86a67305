package metrics

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// reviewers returns a client of an API server that knows three users by their tokens: prometheus may
// get all but profiles, profiler may get profiles, and visitor nothing.
func reviewers() *kubefake.Clientset {
	kube := kubefake.NewClientset()
	extra := map[string]authenticationv1.ExtraValue{"pod": {"p"}}
	kube.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := action.(clienttesting.CreateAction).GetObject()
		switch review := object.(type) {
		case *authenticationv1.TokenReview:
			token := review.Spec.Token
			review.Status.Authenticated = slices.Contains([]string{"prometheus", "profiler", "visitor"}, token)
			review.Status.User = authenticationv1.UserInfo{
				Username: token, UID: "1", Groups: []string{"people"}, Extra: extra}
		case *authorizationv1.SubjectAccessReview:
			path, user := review.Spec.NonResourceAttributes.Path, "prometheus"
			if strings.HasPrefix(path, "/debug/pprof/") {
				user = "profiler"
			}
			review.Status.Allowed = reflect.DeepEqual(review.Spec, authorizationv1.SubjectAccessReviewSpec{
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
				User:                  user, UID: "1", Groups: []string{"people"},
				Extra: map[string]authorizationv1.ExtraValue{"pod": {"p"}},
			})
		}
		return true, object, nil
	})
	return kube
}

func request(handler http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, nil)
	request.Header.Set("Authorization", authorization)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// scrape returns the code of the answer to a request for the metrics.
func scrape(guard *guard, token string) int {
	return request(guard, http.MethodGet, "/metrics", "Bearer "+token).Code
}

var secret = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "secret")
})

func TestMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	for authorization, want := range map[string]string{
		"":                  "401 Unauthorized",
		"Basic prometheus":  "401 Unauthorized",
		"Bearer stranger":   "401 Unauthorized",
		"Bearer visitor":    "403 Forbidden",
		"Bearer prometheus": "200 secret",
		"bearer prometheus": "200 secret",
	} {
		answer := request(newGuard(reviewers(), secret), http.MethodGet, "/metrics", authorization)
		if got := fmt.Sprint(answer.Code, " ", strings.TrimSpace(answer.Body.String())); got != want {
			t.Errorf("Authorization %q: got %s, want %s", authorization, got, want)
		}
		challenge := answer.Header().Get("WWW-Authenticate")
		if (challenge == "Bearer") != (answer.Code == http.StatusUnauthorized) {
			t.Errorf(`Authorization %q: got WWW-Authenticate %q, want "Bearer" only with code 401`,
				authorization, challenge)
		}
		closed := answer.Header().Get("Connection") == "close"
		if closed != (answer.Code != http.StatusOK) {
			t.Errorf("Authorization %q: closed connection: got %v, want it only with a refusal",
				authorization, closed)
		}
	}
}

func TestNobodyReadsMetricsWhileTheAPIServerIsDown(t *testing.T) {
	for _, resource := range []string{"tokenreviews", "subjectaccessreviews"} {
		kube := reviewers()
		down := true
		kube.PrependReactor("create", resource,
			func(clienttesting.Action) (bool, runtime.Object, error) {
				return down, nil, errors.New("injected")
			})
		guard := newGuard(kube, secret)
		if got := scrape(guard, "prometheus"); got != http.StatusServiceUnavailable {
			t.Errorf("without %s: got code %d, want 503", resource, got)
		}
		down = false
		if got := scrape(guard, "prometheus"); got != http.StatusOK {
			t.Errorf("with %s again: got code %d, want 200", resource, got)
		}
	}
}

// hangs is the network to an API server that does not answer.
type hangs struct{}

func (hangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAPIServerThatHangsDoesNotHoldAScrapeForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		guard := newGuard(kubernetes.NewForConfigOrDie(&rest.Config{Transport: hangs{}}), secret)
		if got := scrape(guard, "prometheus"); got != http.StatusServiceUnavailable {
			t.Errorf("got code %d, want 503", got)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("got an answer after %v, want it within 10s, when Prometheus gives up", took)
		}
	})
}

func TestDecisionsHoldForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := reviewers()
		guard := newGuard(kube, secret)
		for range 2 {
			for range 100 {
				if got := scrape(guard, "prometheus"); got != http.StatusOK {
					t.Fatalf("got code %d, want 200", got)
				}
			}
			time.Sleep(10 * time.Second)
		}
		if got := len(kube.Actions()); got != 4 {
			t.Errorf("requests to the API server in 20s: got %d, want 4", got)
		}
	})
}

func TestFloodOfTokensIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := reviewers()
		guard := newGuard(kube, secret)
		for range 1000 {
			scrape(guard, "")
		}
		if actions := kube.Actions(); len(actions) > 0 {
			t.Errorf("requests to the API server without a token: got %d, want 0", len(actions))
		}
		last := 0
		for token := range 10_000 { // in 100 seconds
			last = scrape(guard, strconv.Itoa(token))
			time.Sleep(10 * time.Millisecond)
		}
		if got := len(kube.Actions()); got < 200 || got > 205 || last != http.StatusTooManyRequests {
			t.Errorf("got %d requests to the API server and code %d, want 2 per second, and 5 at once; "+
				"and 429", got, last)
		}
		if got := guard.decisions.Len(); got > 25 {
			t.Errorf("decisions in memory: got %d, want at most those of 10s", got)
		}
		time.Sleep(time.Second)
		if got := scrape(guard, "prometheus"); got != http.StatusOK {
			t.Errorf("a second later: got code %d, want 200", got)
		}
	})
}
