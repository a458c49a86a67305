package process

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// PID returns the process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// ReadMetrics returns the metrics that are served over HTTP at address: for each name, the sum over all
// labels.
func ReadMetrics(address string) (map[string]float64, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading metrics: %s", response.Status)
	}
	metrics := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
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
