package metrics

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

const (
	// decisionTTL is how long a decision holds: as long as in the components of Kubernetes.
	decisionTTL = 10 * time.Second
	// decisionTimeout is less than the 10s that Prometheus waits by default.
	decisionTimeout = 5 * time.Second
	// A decision takes two requests, and each scraper needs at most one decision per decisionTTL.
	decisionsPerSecond, decisionBurst = 2, 5
)

// guard passes a request to handler if the API server says that its sender may get that path. It
// asks the API server no more often than limit allows, however many strangers send requests.
type guard struct {
	handler   http.Handler
	reviews   kubernetes.Interface
	limit     flowcontrol.RateLimiter
	decisions *utilcache.Expiring // HTTP status codes, by question
}

// question is what a decision is about. A token is a secret, so only its hash is kept.
type question struct {
	token [sha256.Size]byte
	path  string
}

func newGuard(reviews kubernetes.Interface, handler http.Handler) *guard {
	return &guard{
		handler: handler, reviews: reviews, decisions: utilcache.NewExpiring(),
		limit: flowcontrol.NewTokenBucketRateLimiter(decisionsPerSecond, decisionBurst),
	}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, err := g.authorize(r)
	if err != nil {
		klog.FromContext(r.Context()).Error(err, "Cannot authorize a request", "path", r.URL.Path)
	}
	if code == http.StatusOK {
		g.handler.ServeHTTP(w, r)
		return
	}
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Connection", "close") // also without waiting for the body of the request
	http.Error(w, http.StatusText(code), code)
}

// bearerToken returns the token that a request carries, or "".
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// authorize returns the HTTP status code for a request: StatusOK if it may be answered.
func (g *guard) authorize(r *http.Request) (code int, err error) {
	if r.Method != http.MethodGet {
		return http.StatusMethodNotAllowed, nil
	}
	token := bearerToken(r)
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	key := question{token: sha256.Sum256([]byte(token)), path: r.URL.Path}
	if code, ok := g.decisions.Get(key); ok {
		return code.(int), nil
	}
	if !g.limit.TryAccept() {
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), decisionTimeout)
	defer cancel()
	code, err = g.review(ctx, token, r.URL.Path)
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	g.decisions.Set(key, code, decisionTTL)
	return code, nil
}

// review asks the API server whether a token may get path, and returns the HTTP status code.
func (g *guard) review(ctx context.Context, token, path string) (code int, err error) {
	who, err := g.reviews.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may, err := g.reviews.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing the access of %q: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
