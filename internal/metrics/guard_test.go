package metrics

import (
	"errors"
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

// reviewers returns a client of an API server that knows two users by their tokens, prometheus and
// visitor. It allows only prometheus to read metrics.
func reviewers() *kubefake.Clientset {
	kube := kubefake.NewClientset()
	kube.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (
		bool, runtime.Object, error,
	) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		token := review.Spec.Token
		review.Status.Authenticated = slices.Contains([]string{"prometheus", "profiler", "visitor"}, token)
		review.Status.User = authenticationv1.UserInfo{
			Username: token, UID: "1", Groups: []string{"people"},
			Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}},
		}
		return true, review, nil
	})
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (
		bool, runtime.Object, error,
	) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		user := "prometheus"
		if strings.HasPrefix(review.Spec.NonResourceAttributes.Path, "/debug/pprof/") {
			user = "profiler"
		}
		review.Status.Allowed = reflect.DeepEqual(review.Spec, authorizationv1.SubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{
				Path: review.Spec.NonResourceAttributes.Path, Verb: "get",
			},
			User: user, UID: "1", Groups: []string{"people"},
			Extra: map[string]authorizationv1.ExtraValue{"pod": {"p"}},
		})
		return true, review, nil
	})
	return kube
}

func request(handler http.Handler, path, authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Authorization", authorization)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func scrape(guard *guard, authorization string) *httptest.ResponseRecorder {
	return request(guard, "/metrics", authorization)
}

var secret = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "secret")
})

func TestMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	for authorization, want := range map[string]int{
		"":                  http.StatusUnauthorized,
		"Basic prometheus":  http.StatusUnauthorized,
		"Bearer":            http.StatusUnauthorized,
		"Bearer stranger":   http.StatusUnauthorized,
		"Bearer visitor":    http.StatusForbidden,
		"Bearer prometheus": http.StatusOK,
		"bearer prometheus": http.StatusOK,
	} {
		answer := scrape(newGuard(reviewers(), secret), authorization)
		if answer.Code != want {
			t.Errorf("Authorization %q: got code %d, want %d", authorization, answer.Code, want)
		}
		if (answer.Body.String() == "secret") != (want == http.StatusOK) {
			t.Errorf("Authorization %q: got body %q, want the metrics only with code 200",
				authorization, answer.Body)
		}
		if challenge := answer.Header().Get("WWW-Authenticate"); (challenge == "Bearer") !=
			(want == http.StatusUnauthorized) {
			t.Errorf(`Authorization %q: got WWW-Authenticate %q, want "Bearer" only with code 401`,
				authorization, challenge)
		}
	}
}

func TestNobodyReadsMetricsWhileTheAPIServerIsDown(t *testing.T) {
	for _, resource := range []string{"tokenreviews", "subjectaccessreviews"} {
		kube := reviewers()
		down := true
		kube.PrependReactor("create", resource, func(clienttesting.Action) (
			bool, runtime.Object, error,
		) {
			return down, nil, errors.New("injected")
		})
		guard := newGuard(kube, secret)
		if got := scrape(guard, "Bearer prometheus").Code; got != http.StatusServiceUnavailable {
			t.Errorf("without %s: got code %d, want 503", resource, got)
		}
		down = false
		if got := scrape(guard, "Bearer prometheus").Code; got != http.StatusOK {
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
		if got := scrape(guard, "Bearer prometheus").Code; got != http.StatusServiceUnavailable {
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
				if got := scrape(guard, "Bearer prometheus").Code; got != http.StatusOK {
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

func TestStrangersDoNotReachTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := reviewers()
		guard := newGuard(kube, secret)
		for range 1000 {
			scrape(guard, "")
		}
		if actions := kube.Actions(); len(actions) > 0 {
			t.Errorf("requests to the API server without a token: got %d, want 0", len(actions))
		}
		var last int
		for token := range 1000 {
			last = scrape(guard, "Bearer "+string(rune('a'+token))).Code
		}
		if got := len(kube.Actions()); got != 5 || last != http.StatusTooManyRequests {
			t.Errorf("1000 tokens: got %d requests to the API server and code %d, want 5 and 429",
				got, last)
		}
		time.Sleep(time.Second)
		if got := scrape(guard, "Bearer prometheus").Code; got != http.StatusOK {
			t.Errorf("a second later: got code %d, want 200", got)
		}
	})
}

func TestFloodOfTokensIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := reviewers()
		guard := newGuard(kube, secret)
		for token := range 10_000 { // in 100 seconds
			scrape(guard, "Bearer "+strconv.Itoa(token))
			time.Sleep(10 * time.Millisecond)
		}
		if got := len(kube.Actions()); got < 200 || got > 205 {
			t.Errorf("requests to the API server: got %d, want 2 per second, and 5 at once", got)
		}
		if got := guard.decisions.Len(); got > 25 {
			t.Errorf("decisions in memory: got %d, want at most those of 10s", got)
		}
	})
}

func TestConnectionOfAStrangerEndsWithTheAnswer(t *testing.T) {
	for token, want := range map[string]string{"stranger": "close", "prometheus": ""} {
		answer := scrape(newGuard(reviewers(), secret), "Bearer "+token)
		if got := answer.Header().Get("Connection"); got != want {
			t.Errorf("%s: got Connection %q, want %q", token, got, want)
		}
	}
}
