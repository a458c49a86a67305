package process

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEachProbeFollowsItsCheck(t *testing.T) {
	healthy := func(*http.Request) error { return nil }
	broken := func(*http.Request) error { return errors.New("not yet") }
	for _, test := range []struct {
		healthy, ready          Check
		wantHealthz, wantReadyz int
	}{
		{healthy, broken, http.StatusOK, http.StatusServiceUnavailable},
		{broken, healthy, http.StatusServiceUnavailable, http.StatusOK},
	} {
		handler := probeHandler(test.healthy, test.ready)
		for path, want := range map[string]int{
			"/healthz": test.wantHealthz, "/readyz": test.wantReadyz,
		} {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
			if recorder.Code != want {
				t.Errorf("%s: got code %d, want %d", path, recorder.Code, want)
			}
			if got := recorder.Body.String(); want != http.StatusOK && got != "not yet\n" {
				t.Errorf(`%s: got body %q, want the error "not yet"`, path, got)
			}
		}
	}
}
