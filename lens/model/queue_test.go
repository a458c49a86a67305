package model

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// key returns the key without the times.
func (l *lens) key(name string) Key {
	k := get[Key](l, "key/default/"+name)
	k.Since = 0
	return k
}

func TestAKeyWaitsIsSyncedAndGoes(t *testing.T) {
	l := newLens(t)
	l.log(`"Starting the workers" count=2`, `"Queueing Foo" foo="default/b" because="Foo added"`,
		`"Queueing Foo" foo="default/a" because="Foo added"`,
		`"Queueing Foo" foo="default/a" because="Foo updated"`)
	want := Key{Key: "default/a", State: "waiting", Because: "Foo updated", Position: 2, Merged: 1}
	equal(t, "merged", l.key("a"), want)
	l.log(started, `"Queueing Foo" foo="default/a" because="again"`)
	want.State, want.Dirty, want.Because = "processing", true, "again"
	equal(t, "dirty", l.key("a"), want)
	l.log(`"Queueing Foo" foo="default/a" because="again"`)
	equal(t, "dirty once", l.key("a"), want)
	equal(t, "its worker", get[Worker](l, "worker/1").Key, "default/a")
	l.log(finished)
	equal(t, "it waits again", l.key("a"),
		Key{Key: "default/a", State: "waiting", Because: "again", Position: 3})
	l.log(started, finished, finished)
	equal(t, "finished", l.key("a"), Key{})
	equal(t, "its worker", get[Worker](l, "worker/1").Key, "")
	equal(t, "process", get[Process](l, "process"),
		Process{HasLog: true, Finished: 2, State: "running"})
	equal(t, "lessons", l.lessons(), []string{"duplicate", "dirty", "dirty", "noop", "noop"})
}

func TestAFailedKeyIsDelayed(t *testing.T) {
	failed := `"Syncing failed, will retry" logger="UnhandledError" err="oh" foo="default/a" retries=`
	for name, lines := range map[string][]string{
		"failed, then finished": {started, failed, finished},
		"finished, then failed": {started, finished, failed},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			for retries, milliseconds := range []int{5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560,
				5120, 10240, 20480, 30000, 30000} {
				delay := time.Duration(milliseconds) * time.Millisecond
				until := delay
				for _, line := range lines {
					if line == failed {
						line += fmt.Sprint(retries)
						until += l.at + time.Millisecond
					}
					l.log(line)
				}
				k := l.key("a")
				equal(t, "failed", [3]any{k.State, k.Failures, k.Until},
					[3]any{"delayed", retries + 1, until})
				l.wait(delay)
				equal(t, "after the delay", l.key("a").State, "waiting")
			}
			l.log(started, finished, started)
			equal(t, "failures after a success", l.key("a").Failures, 0)
			equal(t, "the last failed sync", l.spans("sync")[14].Failed, true)
			equal(t, "this sync", l.spans("sync")[15].Failed, false)
		})
	}
}

func TestAKeyThatComesBackLater(t *testing.T) {
	l := newLens(t)
	l.see(Seen{Gate: &Gate{Mode: "paused"}})
	l.log(started, `"Queueing Foo again" foo="default/a" after="1s" because="the cache is behind"`)
	contains(t, "notes", l.texts(),
		"default/a comes back in 1s: the cache is behind, because you hold it back.")

	l = newLens(t)
	l.log(started, `"Queueing Foo again" foo="default/a" after="1s" because="the cache is behind"`,
		`"Queueing Foo again" foo="default/a" after="15s" because="the name is taken"`, finished)
	equal(t, "lessons", l.lessons(), []string{"stale"}) // and no noop
	l.wait(2 * time.Second)
	equal(t, "the earlier time counts", l.spans("delay")[0].End-l.spans("delay")[0].Begin, time.Second)
	equal(t, "delays", len(l.spans("delay")), 1)

	l = newLens(t)
	l.log(`"Queueing Foo again" foo="default/a" after="1s" because="later"`, started, finished)
	l.wait(2 * time.Second)
	equal(t, "after a delay that was shorter than the Model knows", l.key("a"), Key{})
	l.log(`"Queueing Foo again" foo="default/a" because="no sync has seen the last write"`)
	equal(t, "added by a timer", l.key("a").State, "waiting")
	equal(t, "story", l.story()[2],
		"queue: no sync has seen the last write <- sync: sync by worker 1")
}

func TestWorkersAreNumbered(t *testing.T) {
	l := newLens(t)
	sync := func(key string) string { return `"Started syncing Foo" foo="default/` + key + `"` }
	l.log(`"Starting the workers" count=2`, sync("a"), sync("b"), finished, sync("c"),
		sync("d")) // the line with the count was lost
	var got []string
	for i := range l.m.workers {
		got = append(got, get[Worker](l, fmt.Sprintf("worker/%d", i+1)).Key)
	}
	equal(t, "workers", strings.Join(got, " "), "default/c default/b default/d")
}

func TestQueueAndCacheGoWithTheProcess(t *testing.T) {
	for name, end := range map[string]Seen{
		"killed":    {Program: &Program{Command: "go run .", Note: "signal: killed"}},
		"restarted": {Program: &Program{Command: "go run .", Running: true}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSync(t)
			l.event("ADDED", foo("a", "2"))
			l.arrive("MODIFIED", foo("a", "3"))
			l.request("get", foos, "a", nil)
			l.log(`"Queueing Foo again" foo="default/b" after="1s" because="later"`,
				`"Queueing Foo" foo="default/c" because="Foo added"`)
			l.see(end)
			l.wait(2 * time.Second)
			for id, entity := range l.entities {
				switch e := entity.(type) {
				case Key, Worker, Flight, Request:
					t.Errorf("%s is still there", id)
				case Span:
					equal(t, e.What+" has ended", e.End != 0, true)
				}
			}
			equal(t, "note", get[Process](l, "process").Note, end.Program.Note)
			equal(t, "object", l.cached(fooID), [2]string{"2", ""})
			equal(t, "watch", get[Watch](l, "watch/"+foos), Watch{Resource: foos, State: "closed"})
		})
	}
	l := newLens(t)
	l.log(started, `"Stopped the workers"`)
	equal(t, "stopped", [2]any{l.key("a"), get[Worker](l, "worker/1")}, [2]any{Key{}, Worker{}})
}

func TestOnlyOneQueueIsShown(t *testing.T) {
	l := newLens(t)
	l.log(`"Started syncing the cache" count=1`, `"Queueing Foo" foo="default/a" because="x"`,
		`"Queueing Bar" bar="default/b" because="x"`, `"Started syncing foo" foo="default/a"`)
	equal(t, "foo", l.key("a").State, "processing")
	equal(t, "bar", l.key("b"), Key{})
}

func TestAKeyThatCannotBeInTheQueueIsDropped(t *testing.T) {
	l := newLens(t)
	l.log(`"Starting the workers" count=1`, `"Queueing Foo" foo="default/b" because="Foo added"`,
		started)
	l.wait(time.Minute)
	equal(t, "the worker is busy", l.key("b").State, "waiting")
	l.log(finished)
	l.wait(patience - time.Millisecond)
	equal(t, "the worker was free for a moment", l.key("b").State, "waiting")
	l.wait(time.Millisecond)
	equal(t, "the worker was free for long", l.key("b"), Key{})
}
