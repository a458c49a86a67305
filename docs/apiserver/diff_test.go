package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/internal/testing/setting"
)

var namespaceNumber atomic.Int64

func TestServersAnswerAlike(t *testing.T) {
	t.Logf("-seed %d -sequences %d", *seed, *sequences)
	var all [][]step
	r := rand.New(rand.NewPCG(*seed, 0))
	for range *sequences {
		all = append(all, generate(r))
	}
	var failed atomic.Int64
	workqueue.ParallelizeUntil(t.Context(), 4, len(all), func(i int) {
		if failed.Load() >= 20 {
			return
		}
		if first := difference(t, all[i]); first != "" {
			failed.Add(1)
			steps := shrink(t, all[i])
			t.Errorf("%s%s\nbefore requests were dropped: %s", list(steps), difference(t, steps), first)
		}
	})
}

func list(steps []step) string {
	text := "\n"
	for i, st := range steps {
		text += fmt.Sprintf("%d. %v\n", i+1, st)
	}
	return text
}

// shrink drops requests as long as there is a difference.
func shrink(t *testing.T, steps []step) []step {
	for i := range slices.Backward(steps) {
		if fewer := slices.Delete(slices.Clone(steps), i, i+1); difference(t, fewer) != "" {
			steps = fewer
		}
	}
	return steps
}

// difference runs a sequence on both servers, and returns the first difference.
func difference(t *testing.T, steps []step) string {
	both := sides(t, fmt.Sprintf("s%d-%d", os.Getpid(), namespaceNumber.Add(1)))
	defer func() {
		for _, s := range both {
			for _, w := range s.watches {
				w.cancel()
			}
		}
	}()
	for i, st := range steps {
		var codes [2]int
		var answers [2]object
		for j, s := range both {
			codes[j], answers[j] = s.run(t, st)
		}
		if isUnvalidated(st, answers) {
			return ""
		}
		if codes[0] != codes[1] || !reflect.DeepEqual(answers[0], answers[1]) {
			return fmt.Sprintf("request %d: real %d, memory %d\n%s", i+1, codes[0], codes[1],
				diff.Diff(answers[0], answers[1]))
		}
	}
	return eventsDiffer(t, both, steps)
}

// eventsDiffer ends the watches with an object that all of them show, and compares the events.
func eventsDiffer(t *testing.T, both [2]*side, steps []step) string {
	watched := map[string]bool{}
	var watches []step
	for _, st := range steps {
		if st.Method == "WATCH" {
			watched[st.Resource] = true
			watches = append(watches, st)
		}
	}
	for name := range watched {
		last := step{Method: "POST", Resource: name, Name: "last", Media: "application/json"}
		last.Body = merge(resources[name].valid,
			`{"metadata": {"name": "`+last.objectName()+`", "labels": {"app": "a"}}}`)
		for _, s := range both {
			if code, answer := s.do(t.Context(), "POST", last.path(), last.Media, last.Body); code != 201 {
				t.Fatal(answer)
			}
		}
	}
	for i, st := range watches {
		real, memory := both[0].watches[i], both[1].watches[i]
		if real.code != memory.code || !reflect.DeepEqual(real.answer, memory.answer) {
			return fmt.Sprintf("%v: real %d, memory %d\n%s", st, real.code, memory.code,
				diff.Diff(real.answer, memory.answer))
		}
		if a, b := both[0].events(real), both[1].events(memory); !reflect.DeepEqual(a, b) {
			return fmt.Sprintf("%v: events:\n%s", st, diff.Diff(a, b))
		}
	}
	return ""
}

// stream is a watch, and the events that it has shown.
type stream struct {
	lines  chan object
	cancel context.CancelFunc
	code   int
	answer object
}

func (s *side) watch(t *testing.T, st step, path string) *stream {
	ctx, cancel := context.WithCancel(t.Context())
	w := &stream{lines: make(chan object, 1000), cancel: cancel}
	response, err := s.send(ctx, "GET", path, "", "") //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		t.Fatal(err)
	}
	if w.code = response.StatusCode; w.code != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		_ = json.Unmarshal(text, &w.answer)
		w.answer = s.normal(w.answer)
		close(w.lines)
		return w
	}
	listed := make(chan struct{}) // the client has seen what there was
	isStream := strings.Contains(st.Query, "allowWatchBookmarks")
	// The real server has no cache of Events: it lists them when the watch has begun already.
	fromList := st.Resource == "events" && !isStream &&
		(strings.Contains(path, "resourceVersion=0") || !strings.Contains(path, "resourceVersion="))
	go func() {
		waits := isStream || fromList
		if !waits {
			close(listed)
		}
		defer close(w.lines)
		defer response.Body.Close()
		scanner := bufio.NewScanner(response.Body)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			event := object{}
			// Namespaces are those of all sequences: more than the channel could have.
			foreign := st.Resource == "namespaces" && !strings.Contains(scanner.Text(), s.namespace) &&
				!strings.Contains(scanner.Text(), "BOOKMARK")
			if !foreign && json.Unmarshal(scanner.Bytes(), &event) == nil {
				w.lines <- event
			}
			last := isStream && event["type"] != "ADDED" ||
				fromList && strings.Contains(scanner.Text(), `"name":"first"`)
			if waits && last {
				waits = false
				close(listed)
			}
		}
		if waits {
			close(listed)
		}
	}()
	<-listed
	return w
}

// events returns the events of a watch up to the last object, in normal form.
func (s *side) events(w *stream) []object {
	var events []object
	for {
		select {
		case event, ok := <-w.lines:
			if !ok {
				return events
			}
			seen, _ := event["object"].(object)
			metadata, _ := seen["metadata"].(object)
			name, _ := metadata["name"].(string)
			foreign := seen["kind"] == "Namespace" && !strings.HasPrefix(name, s.namespace)
			if event["type"] == "BOOKMARK" {
				seen = object{"metadata": object{"annotations": metadata["annotations"]}}
				foreign = metadata["annotations"] == nil
			}
			if foreign {
				continue
			}
			last := name == "last" || name == s.namespace+"-last"
			event["object"] = s.normal(seen)
			if events = append(events, event); last {
				return events
			}
		case <-time.After(setting.Patience()):
			return append(events, object{"type": "nothing for a long time"})
		}
	}
}

// isUnvalidated reports whether the real server found something wrong in the spec of a built-in
// kind. The servers have different objects after that, so that the sequence ends.
func isUnvalidated(st step, answers [2]object) bool {
	details, _ := answers[0]["details"].(object)
	causes, _ := details["causes"].([]any)
	return st.Resource != "foos" && answers[0]["code"] == float64(422) &&
		slices.ContainsFunc(causes, func(cause any) bool {
			field, _ := cause.(object)["field"].(string)
			root, _, _ := strings.Cut(field, ".")
			return root == "spec" || root == "involvedObject" || root == "status"
		})
}
