package metrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/cert"
	k8smetrics "k8s.io/component-base/metrics"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
)

func TestSecureMetricsAreEncryptedAndGuarded(t *testing.T) {
	config := Config{Secure: new(true), Reviews: reviewers()}
	server := httptest.NewUnstartedServer(config.Handler())
	server.TLS = must.Get(config.TLSConfig())(t)
	if server.TLS == nil {
		t.Fatal("they are served over plain HTTP")
	}
	server.StartTLS()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	response := must.Get(client.Get(server.URL + "/metrics"))(t)
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized || response.ProtoMajor != 1 {
		t.Errorf("got %d over %s, want 401 over HTTP/1", response.StatusCode, response.Proto)
	}
}

func TestProfilesAreServedIfAskedForAndGuarded(t *testing.T) {
	open, secure := Config{Profiling: true, Secure: new(false)}, Config{Profiling: true, Secure: new(true)}
	for _, test := range []struct {
		name        string
		config      Config
		token, path string
		want        int
	}{
		{"not asked for", Config{Secure: new(false)}, "", "/debug/pprof/goroutine", http.StatusNotFound},
		{"goroutines", open, "", "/debug/pprof/goroutine", http.StatusOK},
		{"a CPU profile", open, "", "/debug/pprof/profile?seconds=1", http.StatusOK},
		{"a trace", open, "", "/debug/pprof/trace?seconds=0.1", http.StatusOK},
		{"symbols", open, "", "/debug/pprof/symbol", http.StatusOK},
		{"the command line", open, "", "/debug/pprof/cmdline", http.StatusNotFound},
		{"a stranger", secure, "stranger", "/debug/pprof/heap", http.StatusUnauthorized},
		{"a stranger who guesses", secure, "", "/nothing", http.StatusUnauthorized},
		{"somebody who may get the metrics", secure, "prometheus", "/debug/pprof/heap",
			http.StatusForbidden},
		{"somebody who may get profiles", secure, "profiler", "/debug/pprof/heap", http.StatusOK},
	} {
		test.config.Reviews = reviewers()
		answer := request(test.config.Handler(), http.MethodGet, test.path, "Bearer "+test.token)
		if answer.Code != test.want {
			t.Errorf("%s: got code %d, want %d", test.name, answer.Code, test.want)
		}
	}
}

func TestADecisionIsAboutOnePath(t *testing.T) {
	handler := Config{Profiling: true, Secure: new(true), Reviews: reviewers()}.Handler()
	for range 2 { // the second time, the decision is remembered
		for what, want := range map[string]int{
			"GET /metrics":      http.StatusOK,
			"GET /debug/pprof/": http.StatusForbidden,
			"POST /metrics":     http.StatusMethodNotAllowed,
		} {
			method, path, _ := strings.Cut(what, " ")
			if got := request(handler, method, path, "Bearer prometheus").Code; got != want {
				t.Errorf("%s: got code %d, want %d", what, got, want)
			}
		}
	}
}

// The API server decides about the path as it was sent. What is served must have that path.
func TestOddPathsGetNothing(t *testing.T) {
	handler := Config{Profiling: true, Secure: new(true), Reviews: reviewers()}.Handler()
	for _, path := range []string{
		"/metrics/../debug/pprof/heap", "/metrics/%2e%2e/debug/pprof/heap", "//debug/pprof/heap",
		"/metrics/../metrics", "/metrics/", "/./metrics", "/metrics%00", "/Metrics",
	} {
		answer := request(handler, http.MethodGet, path, "Bearer prometheus") // who may get other paths
		if answer.Code == http.StatusOK {
			t.Errorf("%s: got code 200 and %d bytes, want a refusal", path, answer.Body.Len())
		}
	}
}

func TestRenewedCertificateIsServed(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadCertificate(dir); err == nil {
		t.Error("a directory without a certificate: got no error, want one")
	}
	var get getCertificate
	for _, host := range []string{"before", "after"} {
		certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		must.Do(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
			os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)))
		if get == nil {
			get = must.Get(loadCertificate(dir))(t)
		}
		if err := must.Get(get(nil))(t).Leaf.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
}

func TestReasonsOfSyncErrors(t *testing.T) {
	deployments := appsv1.Resource("deployments")
	for _, test := range []struct {
		err  error
		want string
	}{
		{apierrors.NewForbidden(deployments, "a", errors.New("no")), "Forbidden"},
		{fmt.Errorf("creating Deployment: %w", apierrors.NewInternalError(errors.New("no"))),
			"InternalError"},
		{&url.Error{Op: "Get", URL: "https://127.0.0.1", Err: errors.New("refused")}, "NoAnswer"},
		{fmt.Errorf("updating status: %w", context.DeadlineExceeded), "NoAnswer"},
		{errors.New("a bug"), "Other"},
		// A webhook may answer with any reason.
		{&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusTeapot, Reason: "IAmATeapot"}}, "Other"},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonConflict,
			Message: "admission webhook x: no"}}, "Forbidden"},
	} {
		if got := syncErrorReason(test.err); got != test.want {
			t.Errorf("%v: got reason %q, want %q", test.err, got, test.want)
		}
	}
}

type foo struct {
	metav1.ObjectMeta
	conditions []metav1.Condition
}

func TestObjectsAreCountedByReadiness(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	var foos []*foo
	// add adds a foo of generation 2. Without a reason, it has no condition.
	add := func(status metav1.ConditionStatus, reason string, observed, since int64) {
		added := &foo{ObjectMeta: metav1.ObjectMeta{Generation: 2, CreationTimestamp: at(50)}}
		if reason != "" {
			added.conditions = []metav1.Condition{{Type: "Ready", Status: status,
				Reason: reason, ObservedGeneration: observed, LastTransitionTime: at(since)}}
		}
		foos = append(foos, added)
	}
	registry := k8smetrics.NewKubeRegistry()
	registry.CustomMustRegister(newCollector(Objects[*foo]{
		Subsystem: "foo_controller", Plural: "Foos",
		List:       func(labels.Selector) ([]*foo, error) { return foos, nil },
		Conditions: func(foo *foo) []metav1.Condition { return foo.conditions },
		Reasons:    []string{"Available", "DeploymentNameTaken"},
	}))
	check := func(want map[string]float64) {
		t.Helper()
		if got := fakes.Gather(t, registry); !maps.Equal(got, want) {
			t.Errorf("metrics: got\n%v, want\n%v", got, want)
		}
	}
	check(map[string]float64{`foo_controller_foos{ready="True",reason="Available"}`: 0})

	add(metav1.ConditionTrue, "Available", 2, 60)
	add(metav1.ConditionTrue, "Available", 1, 60)
	add("", "", 0, 0)
	add(metav1.ConditionFalse, "DeploymentNameTaken", 2, 80)
	add(metav1.ConditionFalse, "DeploymentNameTaken", 1, 70)
	add(metav1.ConditionFalse, "DeploymentNameTaken", 2, 90)
	add(metav1.ConditionFalse, "SomebodyElsesReason", 2, 75)
	check(map[string]float64{
		`foo_controller_foos{ready="True",reason="Available"}`:                           1,
		`foo_controller_foos{ready="Unknown",reason="NotObserved"}`:                      2,
		`foo_controller_foos{ready="False",reason="DeploymentNameTaken"}`:                3,
		`foo_controller_foos{ready="False",reason="Other"}`:                              1,
		`foo_controller_not_ready_since_timestamp_seconds{reason="NotObserved"}`:         50,
		`foo_controller_not_ready_since_timestamp_seconds{reason="DeploymentNameTaken"}`: 70,
		`foo_controller_not_ready_since_timestamp_seconds{reason="Other"}`:               75,
	})
}
