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
	// decisionTimeout is less than the 10s that Prometheus waits.
	decisionTimeout = 5 * time.Second
	// A decision is two requests, and each scraper needs one per decisionTTL at most.
	decisionsPerSecond, decisionBurst = 2, 5
)

// guard lets those through to a handler who may get its path, as the API server says. However
// many strangers come, the API server is not asked more often than limit allows.
type guard struct {
	path      string
	handler   http.Handler
	reviews   kubernetes.Interface
	limit     flowcontrol.RateLimiter
	decisions *utilcache.Expiring // HTTP status codes, by hash of the token
}

func newGuard(reviews kubernetes.Interface, path string, handler http.Handler) *guard {
	return &guard{
		path: path, handler: handler, reviews: reviews, decisions: utilcache.NewExpiring(),
		limit: flowcontrol.NewTokenBucketRateLimiter(decisionsPerSecond, decisionBurst),
	}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, err := g.authorize(r.Context(), bearerToken(r))
	if err != nil {
		klog.FromContext(r.Context()).Error(err, "Cannot tell who may read this", "path", g.path)
	}
	if code == http.StatusOK {
		g.handler.ServeHTTP(w, r)
		return
	}
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
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

// authorize returns the HTTP status code for who has that token: StatusOK if they may read.
func (g *guard) authorize(ctx context.Context, token string) (code int, err error) {
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	key := sha256.Sum256([]byte(token)) // a token is a secret, so it is not kept
	if code, ok := g.decisions.Get(key); ok {
		return code.(int), nil
	}
	if !g.limit.TryAccept() {
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	code, err = g.review(ctx, token)
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	g.decisions.Set(key, code, decisionTTL)
	return code, nil
}

// review is authorize for a token that the API server has to be asked about.
func (g *guard) review(ctx context.Context, token string) (code int, err error) {
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
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{
				Path: g.path, Verb: "get",
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing the access of %q: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
