package conformance

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/freeport"
)

// token creates a ServiceAccount and returns a token for it. Without audiences, the token is for
// the API server.
func (n *namespace) token(serviceAccount string, audiences ...string) string {
	n.t.Helper()
	n.kubectl("create", "serviceaccount", serviceAccount)
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences},
	}
	issued, err := kubeClient.CoreV1().ServiceAccounts(n.name).CreateToken(
		n.t.Context(), serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return issued.Status.Token
}

// getMetrics requests the metrics over HTTPS, with that token, and returns the answer.
func getMetrics(t *testing.T, address, token string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestDeployedMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	n := newNamespace(t)
	deployment := deploy(t, deployDir, nil)
	reader := n.token("prometheus")
	t.Cleanup(func() { mustKubectl(t, "", "delete", "clusterrolebinding", n.name) })
	n.kubectl("create", "clusterrolebinding", n.name,
		"--clusterrole="+deployedName+"-metrics-reader", "--serviceaccount="+n.name+":prometheus")
	address := freeport.Address(t)
	startDeployed(t, deployment, address)
	n.catchUp()

	for name, test := range map[string]struct {
		token string
		want  int
	}{
		"no token":                       {"", http.StatusUnauthorized},
		"an invalid token":               {"nobody", http.StatusUnauthorized},
		"a token for another audience":   {n.token("a", "elsewhere"), http.StatusUnauthorized},
		"a token without the permission": {n.token("b"), http.StatusForbidden},
		"a token with the permission":    {reader, http.StatusOK},
	} {
		// The API server may need a moment to know a new token or binding.
		eventually(t, fmt.Sprintf("with %s, the answer is %d", name, test.want), func() (bool, string) {
			code, body := getMetrics(t, address, test.token)
			if shown := strings.Contains(body, "workqueue_depth"); shown != (code == http.StatusOK) {
				t.Fatalf("with %s: the answer is %d, and has metrics: %v", name, code, shown)
			}
			return code == test.want, fmt.Sprint(code)
		})
	}
}
