package explore

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Finding is what is wrong in a case.
type Finding struct {
	Case    string // the name of its test: "TestExplore/Crash/scale/update-deployments-x-1/before"
	OnFault bool   // something went wrong on purpose before
	Problem string
}

// isDisturbed reports whether a fault came about.
func (r *result) isDisturbed() bool {
	return slices.ContainsFunc(r.marks, func(m mark) bool { return m.what == "fault" })
}

// fail fails the test if something is wrong. It says what and where, and how to run the case alone.
func (x *explorer) fail(t *testing.T, calm, r *result) {
	t.Helper()
	wrong := r.wrong()
	if calm != nil { // what is wrong without a fault, too, would hide the others
		known := calm.wrong()
		wrong = slices.DeleteFunc(wrong, func(what string) bool { return slices.Contains(known, what) })
		if !slices.ContainsFunc(wrong, func(what string) bool { return what != r.remark }) {
			return
		}
	}
	if x.found != nil {
		for _, problem := range wrong {
			x.found(Finding{t.Name(), r.isDisturbed(), problem})
		}
		return
	}
	if len(wrong) == 0 {
		return
	}
	story := r.story()
	what, length := wrong[0], strings.Count(story, "\n")
	g := x.failures[what]
	if g.cases++; g.cases == 1 || length < g.length {
		g.length, g.shortest = length, t.Name()
		t.Error(story + "\nBut then, this was wrong:\n     " + strings.Join(wrong, "\n     ") +
			r.did() + "\nTo run this case alone:\n     " + alone(t.Name()))
	}
	x.failures[what] = g
	t.Fail()
}

// failures are cases in which the same is wrong. Only one that is shorter than all before is told.
type failures struct {
	cases, length int
	shortest      string
}

// summarize says how many cases have failed, unless it was only one.
func (x *explorer) summarize() {
	x.t.Helper()
	n, text := 0, ""
	for _, what := range slices.Sorted(maps.Keys(x.failures)) {
		g := x.failures[what]
		n += g.cases
		text += fmt.Sprintf("\n%6d  %s\n        the shortest: %s", g.cases, what, g.shortest)
	}
	for _, scenario := range slices.Sorted(maps.Keys(x.calm)) {
		text += x.calm[scenario].disturbed.agreement(scenario)
	}
	if n > 1 {
		x.t.Errorf("\nIn all, %d cases failed. What was wrong, in how many, and the shortest of them:%s",
			n, text)
	}
}

// checkIsAlive fails the test if the controller has done nothing in any of the scenarios: then no
// case says anything.
func (x *explorer) checkIsAlive() {
	x.t.Helper()
	if why := x.idleness(); why != "" && x.found != nil {
		x.found(Finding{Case: x.t.Name(), Problem: why})
	} else if why != "" {
		x.t.Error(why)
	}
}

// idleness says why nothing was explored, or "": the controller has written something in one of the
// undisturbed runs or, if it has something outside, has at least read something.
func (x *explorer) idleness() string {
	requests, errs := 0, map[string]int{}
	for _, s := range x.controller.Scenarios {
		calm := x.calm[s.Name]
		if calm == nil {
			return "" // not all were run
		}
		for _, r := range calm.requests {
			works := r.answered && r.err == nil
			if works && (r.write || x.controller.Outside != nil && r.verb != "" && !isSideshow(r.resource)) {
				return ""
			}
			if requests++; r.err != nil {
				errs[fmt.Sprintf("%s: %v", r.about(), r.err)]++
			}
		}
	}
	const nothing = "the controller wrote nothing in any scenario, so no case says anything: "
	switch {
	case requests == 0:
		return nothing + "it made no request. Does it use the rest.Config that Run gets?"
	case len(errs) == 0:
		return nothing + fmt.Sprintf("none of its %d requests was a write. Do the scenarios create what it "+
			"looks for, in a namespace that it watches?", requests)
	}
	often := slices.MaxFunc(slices.Sorted(maps.Keys(errs)), func(a, b string) int {
		return errs[a] - errs[b]
	})
	return nothing + fmt.Sprintf("%d of its %d requests failed like this: %s", errs[often], requests, often)
}

// story says which steps there were, and what went wrong on purpose.
func (r *result) story() string {
	var faults string
	var steps []string
	for _, m := range r.marks {
		switch last := len(steps) - 1; m.what {
		case "step":
			steps = append(steps, fmt.Sprintf("\n     %d. %s", last+2, m.text))
		case "fault":
			faults += fmt.Sprintf("\nOn purpose, %s.", m.text)
			if last >= 0 {
				steps[last] = strings.Replace(steps[last], "\n     ", "\n  -> ", 1)
			}
		}
	}
	if faults == "" {
		return "\nThese steps show it, without any other fault:" + strings.Join(steps, "")
	}
	return faults + "\nIt happened at the step with the arrow:" + strings.Join(steps, "")
}

// did says what the controller did last: its requests, but not those of its informers that have
// succeeded, nor those for Events and Leases; and what it logged.
func (r *result) did() (text string) {
	requests := slices.DeleteFunc(r.last, func(r Request) bool {
		return isSideshow(r.resource) || !r.write && r.verb != "get" && r.err == nil
	})
	for i, request := range requests[max(0, len(requests)-lastFew):] {
		if i == 0 {
			text = "\nThe last requests of the controller:"
		}
		answer := "done"
		switch {
		case !request.answered:
			answer = "no answer"
		case request.err != nil:
			answer = request.err.Error()
		}
		text += fmt.Sprintf("\n     %s %s: %s", request.At.Format("15:04:05.000"), request, answer)
	}
	if len(r.logs) > 0 {
		text += "\nThe last lines of its log:\n     " + strings.Join(r.logs, "\n     ")
	}
	return text
}

// alone returns the command that runs a case alone.
func alone(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	folder, _ := os.Getwd() // go test runs the tests of a package in its folder
	command := fmt.Sprintf("go -C %s test -run '%s'", folder,
		strings.ReplaceAll(strings.Join(parts, "/"), "'", "."))
	flag.Visit(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "explore.") {
			command += fmt.Sprintf(" -%s=%s", f.Name, f.Value)
		}
	})
	return command
}
