package explore

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPictures shows what makes no difference between two ends: the order of what has a merge key,
// and a generated name. But the name of a Pod of a StatefulSet says which it is.
func TestPictures(t *testing.T) {
	picture := func(name string, finalizers []any, conditions ...string) picture {
		var list []any
		for _, c := range conditions {
			list = append(list, map[string]any{"type": c, "status": "True"})
		}
		return pictureOf([]*object{{Object: map[string]any{"kind": "Pod",
			"metadata": map[string]any{"name": name, "generateName": "a-", "finalizers": finalizers},
			"status":   map[string]any{"conditions": list}}}})
	}
	x, y := "example.com/x", "example.com/y"
	one := picture("a-bcdfg", []any{x, y}, "Ready", "Sound")
	if d := picture("a-hjklm", []any{y, x}, "Sound", "Ready").differences(one); len(d) > 0 {
		t.Error("another order, another suffix:", d)
	}
	if d := fmt.Sprint(picture("a-bcdfg", []any{x}, "Ready").differences(one)); !strings.Contains(d,
		"metadata.finalizers[example.com/y]") || !strings.Contains(d, "status.conditions[Sound].status") {
		t.Error("without one finalizer and one condition:", d)
	}
	if d := picture("a-1", nil).differences(picture("a-0", nil)); len(d) != 2 {
		t.Error("a-1 in place of a-0:", d)
	}
	// What a run has stored of two Pods with generated names, and of their owner.
	run := func(first, second string, generation int64) map[string]map[string]string {
		pod := func(prefix, name, image string) *object {
			return &object{Object: map[string]any{"kind": "Pod", "image": image,
				"metadata": map[string]any{"name": name, "generateName": prefix}}}
		}
		return pictureOf([]*object{pod("a-", first, "x"), pod("a-", second, "y"),
			pod(first+"-", first+"-"+second[2:], "z"), {Object: map[string]any{"kind": "Foo",
				"metadata": map[string]any{"name": "a", "generation": generation},
				"status": map[string]any{"pods": map[string]any{first: "of " + first}, "conditions": []any{
					map[string]any{"type": "Ready", "observedGeneration": generation}}}}}})
	}
	if one, other := run("a-zzzzz", "a-bbbbb", 3), run("a-bcdfg", "a-hjklm", 2); !reflect.DeepEqual(one, other) {
		t.Errorf("with other suffixes, and another generation: got %v, want %v", one, other)
	}
}

// TestEndsThatAgree shows what is said when the undisturbed run seems to be the wrong one.
func TestEndsThatAgree(t *testing.T) {
	e := ends{"there is no x": 3, "": 1, "another": 1}
	if got := e.agreement("scale"); !strings.Contains(got, "Of the 5 disturbed runs of the scenario "+
		"scale, 3 end alike") || !strings.HasSuffix(got, ": there is no x") {
		t.Error("3 of 5:", got)
	}
	if e[""]++; e.agreement("scale") != "" {
		t.Error("3 of 6:", e.agreement("scale"))
	}
}

// shelf is held while time passes.
type shelf struct{ sync.Mutex }

func (s *shelf) fill() {
	s.Lock()
	defer s.Unlock()
	time.Sleep(time.Minute)
}

func (s *shelf) take() {
	s.Lock()
	defer s.Unlock()
}

// TestStandstill shows how a case ends that waits for a mutex which is held during a sleep.
func TestStandstill(t *testing.T) {
	if os.Getenv("STAND_STILL") != "" {
		patience = 1
		bubble(t, func(*testing.T) {
			s := &shelf{}
			go s.fill()
			time.Sleep(time.Second)
			s.take()
		})
		return
	}
	alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStandstill$")
	alone.Env = append(os.Environ(), "STAND_STILL=yes")
	output, err := alone.CombinedOutput()
	said, holder, found := strings.Cut(string(output), "The mutex seems to be held here")
	if err == nil || !found || !strings.Contains(said, "TestStandstill has stood still for 1 s") ||
		!strings.Contains(said, "(*shelf).take") || !strings.Contains(holder, "(*shelf).fill") {
		t.Errorf("%v, and it said:\n%s", err, output)
	}
}

// TestWhatTheControllerDidLast shows the end of a failure: the last ten requests and lines of the log.
func TestWhatTheControllerDidLast(t *testing.T) {
	r := &result{last: []Request{
		{Kind: "list-pods", Nth: 1, verb: "list", answered: true, err: errDead},
		{Kind: "watch-pods", Nth: 1, verb: "watch", answered: true},
		{Kind: "create-events", Nth: 1, verb: "create", resource: "events", answered: true},
		{Kind: "update-pods", Name: "a", Nth: 1, verb: "update", write: true},
	}}
	w := &World{}
	for i := range 12 {
		fmt.Fprintf(lastLines{w}, "line %d\n", i+1)
		r.last = append(r.last, Request{Kind: "get-pods", Nth: i + 1, verb: "get", answered: true})
	}
	first := *r
	first.last = r.last[:4]
	if got := first.did(); got != "\nThe last requests of the controller:"+
		"\n     00:00:00.000 list-pods-1: this process has died"+
		"\n     00:00:00.000 update-pods-a-1: no answer" {
		t.Error("of the first four:", got)
	}
	r.logs = w.logs
	if got := r.did(); strings.Contains(got, " get-pods-2: ") || !strings.Contains(got, " get-pods-3: done\n") ||
		strings.Contains(got, "line 2\n") ||
		!strings.Contains(got, "The last lines of its log:\n     line 3\n") || !strings.HasSuffix(got, "line 12") {
		t.Error("the last ten:", got)
	}
}

// TestMostTellingFirst shows the order of cases: the first of each kind comes before others.
func TestMostTellingFirst(t *testing.T) {
	plans := []plan{
		{name: "crash 1", kind: "crash"}, {name: "crash 2", kind: "crash"}, {name: "crash 3", kind: "crash"},
		{name: "conflict", kind: "conflict"}, {name: "event", kind: "event", rank: 1},
		{name: "history", kind: "history", rank: 3},
	}
	sortByRank(plans)
	var got []string
	for _, p := range plans {
		got = append(got, p.name)
	}
	want := "crash 1, conflict, crash 2, event, crash 3, history"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestLimits shows what the flags for a part of the cases allow.
func TestLimits(t *testing.T) {
	defer func(b string, e bool) { *budget, *every = b, e }(*budget, *every)
	for _, test := range []struct {
		budget string
		every  bool
		want   limit
		fails  bool
	}{
		{"500", false, limit{cases: 500}, false}, {"2s", false, limit{time: 2 * time.Second}, false},
		{"0", false, limit{}, false}, {"2s", true, limit{}, false}, {"soon", false, limit{}, true},
	} {
		*budget, *every = test.budget, test.every
		if got, err := newLimit(); got != test.want || (err != nil) != test.fails {
			t.Errorf("budget %s, every %t: got %v, %v, want %v", *budget, *every, got, err, test.want)
		}
	}
	cases, seconds := limit{cases: 500}, limit{time: 2 * time.Second}
	if !cases.isUsed(500, 0) || cases.isUsed(499, time.Hour) || (limit{}).isUsed(500, time.Hour) ||
		!seconds.isUsed(0, 2*time.Second) || seconds.isUsed(500, time.Second) {
		t.Error("a limit is reached too early or too late")
	}
}
