package conformance

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// anyCertificate makes a client accept the controller's certificate, which is self-signed.
var anyCertificate = &tls.Config{InsecureSkipVerify: true}

// hold sends text, and then nothing, until the server closes the connection.
func hold(connection net.Conn, err error, text string) {
	if err != nil {
		return
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(connection, text); err == nil {
		_, _ = io.Copy(io.Discard, connection)
	}
}

func guess(client *http.Client, address string, token int) (int, error) {
	request, err := http.NewRequest(http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+strconv.Itoa(token))
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Strangers hold many connections, send endless headers, and guess tokens. Meanwhile, the
// controller syncs Foos, and answers probes. Afterwards, its memory is small, and the metrics are
// served.
func TestDeployedMetricsWithstandAFlood(t *testing.T) {
	n := newNamespace(t)
	deployment := suite.Deploy(t, deployDir, nil)
	reader := n.MetricsReader()
	address, probes := freeport.Address(t), freeport.Address(t)
	program := suite.StartDeployed(t, deployment, address, "--health-probe-bind-address="+probes)
	n.CatchUp()
	start, begin := time.Now(), suite.Now(t)

	var wg sync.WaitGroup
	const endless = 1<<20 - 1000 // less than what net/http refuses by default
	for range 200 {
		wg.Go(func() {
			connection, err := tls.Dial("tcp", address, anyCertificate)
			hold(connection, err, "GET /metrics HTTP/1.1\r\nX: "+strings.Repeat("a", endless))
		})
	}
	for range 4000 { // twice as many as there may be
		wg.Go(func() {
			connection, err := net.Dial("tcp", probes)
			hold(connection, err, "GET /healthz HTTP/1.1\r\nX: "+strings.Repeat("a", 15<<10))
		})
	}
	for worker := range 10 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: anyCertificate}}
			for i := range 100 {
				code, err := guess(client, address, 100*worker+i)
				if err == nil && code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
					t.Errorf("a guessed token: got code %d, want 401 or 429", code)
				}
			}
		})
	}
	n.CatchUp()
	suite.Eventually(t, "a probe is answered in the flood", func() (bool, string) {
		response, err := http.Get("http://" + probes + "/healthz")
		if err != nil {
			return false, err.Error()
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK, response.Status
	})
	wg.Wait()

	reviews := len(program.Requests(t, begin, func(r audit.Request) bool {
		return r.ObjectRef.Resource == "tokenreviews"
	}))
	// At once, 5, and then 2 in each second.
	if most := 5 + 2*int(time.Since(start).Seconds()+1); reviews == 0 || reviews > most {
		t.Errorf("the API server was asked about tokens %d times, want 1 to %d", reviews, most)
	}
	var body string
	suite.Eventually(t, "somebody with the permission gets the metrics", func() (bool, string) {
		var code int
		code, body = suite.GetMetrics(t, address, reader)
		return code == http.StatusOK, fmt.Sprint(code)
	})
	mapped := regexp.MustCompile(`(?m)^go_memory_classes_total_bytes (\S+)$`).FindStringSubmatch(body)
	if mapped == nil {
		t.Fatal("the metrics do not say how much memory the controller has taken")
	}
	bytes, err := strconv.ParseFloat(mapped[1], 64)
	t.Logf("%d reviews in %.0fs; the controller has taken %.0f MiB", reviews,
		time.Since(start).Seconds(), bytes/(1<<20))
	if err != nil || bytes > 150<<20 {
		t.Errorf("the controller has taken %v bytes (%v), want at most 150 MiB", bytes, err)
	}
}
