// Package metrics reads what a controller serves on /metrics.
package metrics

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// Read returns the metrics that are served over HTTP at address, "host:port" or "unix:path": for
// each name, the sum over all labels.
func Read(address string) (map[string]float64, error) {
	network, at := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, at = "unix", path
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	}}
	response, err := client.Get("http://localhost/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading metrics: %s", response.Status)
	}
	return Parse(response.Body)
}

// Parse returns the metrics of a text, as Read does.
func Parse(text io.Reader) (map[string]float64, error) {
	metrics := map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		name := line[:strings.IndexAny(line, "{ ")]
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("reading metrics: %w: %s", err, line)
		}
		metrics[name] += value
	}
	return metrics, lines.Err()
}
