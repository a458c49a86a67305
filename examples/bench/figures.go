package main

import (
	"math"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/internal/testing/suite/audit"
)

// recordRates records how many Deployments there were in a second of the burst, and how many Foos
// with all that is written for them. The time begins with the first Foo.
func (r *run) recordRates(requests []audit.Request) {
	var begun, deployed, written []time.Time
	for _, request := range requests {
		if request.User() == loadUser && request.Creates("foos") {
			begun = append(begun, request.RequestReceivedTimestamp)
		}
		if request.User() == r.user && request.IsWrite() {
			written = append(written, request.StageTimestamp)
		}
		if request.User() == r.user && request.Creates("deployments") {
			deployed = append(deployed, request.StageTimestamp)
		}
	}
	begin, n := slices.MinFunc(begun, time.Time.Compare), float64(len(deployed))
	lastDeployment := slices.MaxFunc(deployed, time.Time.Compare)
	lastWrite := slices.MaxFunc(written, time.Time.Compare)
	r.figures["burst/Deployments per second"] = n / lastDeployment.Sub(begin).Seconds()
	if r.mode == modePaused { // at work, the last write waits for the other controllers
		r.figures["burst/Foos per second"] = n / lastWrite.Sub(begin).Seconds()
	}
}

// recordLatencies records, in milliseconds, how long it took from a Foo to its Deployment and to
// the last status, which says Ready. The times are those of the API server's answers.
func (r *run) recordLatencies(requests []audit.Request) {
	made := map[string]time.Time{}
	deployed := map[string]time.Time{}
	status := map[string]time.Time{}
	for _, request := range requests {
		object := request.ObjectRef.Name
		switch {
		case request.User() != r.user:
			if request.Creates("foos") {
				made[object] = request.StageTimestamp
			}
		case request.Creates("deployments"):
			deployed[object] = request.StageTimestamp
		case request.ObjectRef.Subresource == "status" && request.ResponseStatus.Code < 300:
			status[object] = request.StageTimestamp // the last one counts
		}
	}
	r.recordQuantiles("duel/to Deployment ms", made, deployed)
	if r.mode == modeWorking {
		r.recordQuantiles("duel/to Ready ms", made, status)
	}
}

// recordQuantiles records the median and the 99th percentile of the times between begin and end.
func (r *run) recordQuantiles(name string, begin, end map[string]time.Time) {
	var times []float64
	for object, ended := range end {
		if _, ok := begin[object]; !ok {
			continue // of an earlier phase
		}
		times = append(times, float64(ended.Sub(begin[object]).Microseconds())/1000)
	}
	slices.Sort(times)
	r.figures[name+" p50"] = quantile(times, 0.5)
	r.figures[name+" p99"] = quantile(times, 0.99)
}

// quantile returns the value below which that part of sorted lies, 0 to 1. If that is between two
// values, it interpolates.
func quantile(sorted []float64, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	position := part * float64(len(sorted)-1)
	low, high := sorted[int(position)], sorted[int(math.Ceil(position))]
	return low + (high-low)*(position-math.Floor(position))
}

// rounded returns the figures with three decimals, without the CPU times of 0 of paused components.
func rounded(figures map[string]float64) map[string]float64 {
	kept := map[string]float64{}
	for name, value := range figures {
		if value != 0 || !strings.Contains(name, "/cpu ms") {
			kept[name] = math.Round(1000*value) / 1000
		}
	}
	return kept
}

// Results are all measurements, as they are written to a file.
type Results struct {
	Date       string
	CPU        string
	CPUs       int
	Go         string
	Kubernetes string
	Runs       []Result
}

// Result is one measurement of one contender.
type Result struct {
	Contender  string
	Mode       string
	Foos       int
	Repetition int
	Figures    map[string]float64
}

// repetitions returns the runs of a contender in a mode.
func (r *Results) repetitions(contender, mode string) (found []Result) {
	for _, run := range r.Runs {
		if run.Contender == contender && run.Mode == mode {
			found = append(found, run)
		}
	}
	return found
}

// median returns the median of a figure over the repetitions, and whether it was measured. A
// repetition without the figure counts as 0: a request that was not made.
func (r *Results) median(contender, mode, figure string) (float64, bool) {
	var values []float64
	measured := false
	for _, run := range r.repetitions(contender, mode) {
		value, ok := run.Figures[figure]
		values, measured = append(values, value), measured || ok
	}
	slices.Sort(values)
	return quantile(values, 0.5), measured
}
