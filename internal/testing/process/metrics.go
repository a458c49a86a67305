package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Get returns what a process serves at url. It leaves no connection open, which would count as one of
// the process.
func Get(url string) ([]byte, error) {
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute,
	}
	response, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// ReadMetrics returns the metrics that are served over HTTP at address: for each name, the sum over all
// labels.
func ReadMetrics(address string) (map[string]float64, error) {
	body, err := Get("http://" + address + "/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	metrics := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(body))
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
