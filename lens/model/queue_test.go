package model

import (
	"fmt"
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
	l.log(`"Starting the workers" count=2`, `"Queueing Foo" foo="default/a" because="Foo added"`)
	equal(t, "queued", l.key("a"), Key{Key: "default/a", State: "waiting", Because: "Foo added",
		Position: 1})
	l.log(`"Started syncing Foo" foo="default/a"`)
	equal(t, "started", l.key("a").State, "processing")
	equal(t, "its worker", get[Worker](l, "worker/1").Key, "default/a")
	l.log(`"Finished syncing Foo" foo="default/a" duration="1ms"`)
	equal(t, "finished", l.key("a"), Key{})
	equal(t, "its worker", get[Worker](l, "worker/1").Key, "")
	p := get[Process](l, "process")
	equal(t, "process", p, Process{HasLog: true, Workers: 2, Finished: 1, State: "running"})
	equal(t, "lessons", l.lessons(), []string{"noop"})
}

func TestAKeyThatWaitsIsMerged(t *testing.T) {
	l := newLens(t)
	l.log(`"Queueing Foo" foo="default/a" because="Foo added"`,
		`"Queueing Foo" foo="default/b" because="Foo added"`,
		`"Queueing Foo" foo="default/a" because="Foo updated"`)
	equal(t, "a", l.key("a"), Key{Key: "default/a", State: "waiting", Because: "Foo updated",
		Position: 1, Merged: 1})
	equal(t, "b", l.key("b").Position, 2)
	equal(t, "lessons", l.lessons(), []string{"duplicate"})
	l.log(`"Started syncing Foo" foo="default/a"`, `"Finished syncing Foo" foo="default/a"`)
	equal(t, "a after one sync", l.key("a"), Key{})
}

func TestAKeyThatIsAddedWhileItIsSyncedIsSyncedAgain(t *testing.T) {
	l := newLens(t)
	l.log(`"Started syncing Foo" foo="default/a"`,
		`"Queueing Foo" foo="default/a" because="Foo updated"`,
		`"Queueing Foo" foo="default/a" because="Deployment updated"`)
	equal(t, "dirty", l.key("a"), Key{Key: "default/a", State: "processing", Dirty: true,
		Because: "Deployment updated"})
	l.log(`"Finished syncing Foo" foo="default/a"`)
	equal(t, "it waits", l.key("a"), Key{Key: "default/a", State: "waiting",
		Because: "Deployment updated", Position: 1})
	equal(t, "lessons", l.lessons(), []string{"dirty", "duplicate", "noop"})
}

func TestAFailedKeyIsDelayed(t *testing.T) {
	failed := `"Syncing failed, will retry" logger="UnhandledError" err="oh" foo="default/a" retries=%d`
	started, finished := `"Started syncing Foo" foo="default/a"`, `"Finished syncing Foo" foo="default/a"`
	for name, lines := range map[string][]string{
		"failed, then finished": {started, failed, finished},
		"finished, then failed": {started, finished, failed},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			for retries, milliseconds := range []int{5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560,
				5120, 10240, 20480, 30000, 30000} {
				delay := time.Duration(milliseconds) * time.Millisecond
				var failedAt time.Duration
				for _, line := range lines {
					if line == failed {
						line = fmt.Sprintf(failed, retries)
						failedAt = l.at + time.Millisecond
					}
					l.log(line)
				}
				want := Key{Key: "default/a", State: "delayed", Failures: retries + 1,
					Until: failedAt + delay, Because: l.key("a").Because, Position: l.key("a").Position}
				equal(t, "failed", l.key("a"), want)
				l.wait(delay)
				equal(t, "after the delay", l.key("a").State, "waiting")
			}
			l.log(started, finished)
			equal(t, "after a success", l.key("a"), Key{})
			l.log(started)
			equal(t, "failures after a success", l.key("a").Failures, 0)
			equal(t, "last sync", l.spans("sync")[14].Failed, true)
			equal(t, "this sync", l.spans("sync")[15].Failed, false)
		})
	}
}

func TestAConflictCountsAsAFailure(t *testing.T) {
	l := newLens(t)
	for i, want := range []string{"5ms", "10ms", "20ms"} {
		l.log(`"Started syncing Foo" foo="default/a"`)
		at := l.at + time.Millisecond
		l.log(`"Retrying after a conflict" foo="default/a" err="conflict"`,
			`"Finished syncing Foo" foo="default/a"`)
		equal(t, "failures", l.key("a").Failures, i+1)
		equal(t, "delay", (l.key("a").Until - at).String(), want)
		l.wait(time.Second)
	}
}

func TestAKeyThatComesBackLater(t *testing.T) {
	l := newLens(t)
	l.log(`"Started syncing Foo" foo="default/a"`)
	at := l.at + time.Millisecond
	l.log(`"Queueing Foo again" foo="default/a" after="1s" because="the cache does not show it yet"`,
		`"Queueing Foo again" foo="default/a" after="15s" because="the name is taken"`,
		`"Finished syncing Foo" foo="default/a"`)
	equal(t, "the earlier time counts", l.key("a").Until, at+time.Second)
	equal(t, "lessons", l.lessons(), []string{"stale"}) // and no noop

	l.log(`"Queueing Foo" foo="default/a" because="Foo updated"`)
	equal(t, "a delayed key may wait", l.key("a").State, "waiting")
	l.log(`"Started syncing Foo" foo="default/a"`)
	l.wait(time.Second)
	equal(t, "the delay is over during the sync", l.key("a").Dirty, true)
	l.log(`"Finished syncing Foo" foo="default/a"`)
	equal(t, "so it waits again", l.key("a").State, "waiting")
	equal(t, "delays", len(l.spans("delay")), 1)
	equal(t, "its length", l.spans("delay")[0].End-l.spans("delay")[0].Begin, time.Second)
}

func TestAKeyThatATimerAdds(t *testing.T) {
	l := newLens(t)
	l.log(`"Started syncing Foo" foo="default/a"`, `"Finished syncing Foo" foo="default/a"`,
		`"Queueing Foo again" foo="default/a" because="no sync has seen the last write"`)
	equal(t, "state", l.key("a").State, "waiting")
	equal(t, "story", l.story()[1], "queue: no sync has seen the last write <- sync: sync by worker 1")
}

func TestASyncOfAKeyThatDoesNotWaitIsTakenAsItIs(t *testing.T) {
	l := newLens(t)
	l.log(`"Queueing Foo" foo="default/a" because="Foo added"`, // another worker has it already
		`"Started syncing Foo" foo="default/a"`, `"Finished syncing Foo" foo="default/a"`,
		`"Started syncing Foo" foo="default/a"`)
	equal(t, "second sync", l.key("a").State, "processing")
	l.log(`"Finished syncing Foo" foo="default/a"`, `"Finished syncing Foo" foo="default/a"`)
	equal(t, "finished", l.key("a"), Key{})
	equal(t, "syncs", get[Process](l, "process").Finished, 2)
}

func TestADelayThatIsShorterThanTheModelKnows(t *testing.T) {
	l := newLens(t)
	l.log(`"Queueing Foo again" foo="default/a" after="1s" because="later"`,
		`"Started syncing Foo" foo="default/a"`, `"Finished syncing Foo" foo="default/a"`)
	l.wait(2 * time.Second)
	equal(t, "the key does not wait for ever", l.key("a"), Key{})
}

func TestWorkersAreNumbered(t *testing.T) {
	l := newLens(t)
	l.log(`"Starting the workers" count=2`)
	busy := func(want ...string) {
		t.Helper()
		var got []string
		for i := range get[Process](l, "process").Workers {
			got = append(got, get[Worker](l, fmt.Sprintf("worker/%d", i+1)).Key)
		}
		equal(t, "workers", got, want)
	}
	busy("", "")
	l.log(`"Started syncing Foo" foo="default/a"`, `"Started syncing Foo" foo="default/b"`)
	busy("default/a", "default/b")
	l.log(`"Finished syncing Foo" foo="default/a"`, `"Started syncing Foo" foo="default/c"`)
	busy("default/c", "default/b")
	l.log(`"Started syncing Foo" foo="default/d"`) // the line with the count was lost
	busy("default/c", "default/b", "default/d")
}

func TestTheQueueGoesWithTheProcess(t *testing.T) {
	end := map[string]func(*lens){
		"stopped": func(l *lens) { l.log(`"Stopped the workers"`) },
		"killed": func(l *lens) {
			l.see(Seen{Program: &Program{Command: "go run .", Note: "signal: killed"}})
		},
		"restarted": func(l *lens) {
			l.see(Seen{Program: &Program{Command: "go run .", Running: true}})
		},
	}
	for name, end := range end {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			l.log(`"Starting the workers" count=1`,
				`"Queueing Foo again" foo="default/a" after="1s" because="later"`,
				`"Queueing Foo" foo="default/b" because="Foo added"`,
				`"Started syncing Foo" foo="default/c"`)
			end(l)
			l.wait(2 * time.Second)
			for id := range l.entities {
				switch l.entities[id].(type) {
				case Key, Worker:
					t.Errorf("%s is still there", id)
				}
			}
			equal(t, "depth", get[Totals](l, "totals").Waiting, 0)
			for _, s := range append(append(l.spans("queue"), l.spans("delay")...), l.spans("sync")...) {
				equal(t, s.What+" has ended", s.End != 0, true)
			}
		})
	}
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
	l.log(`"Queueing Foo" foo="default/a" because="Foo added"`)
	l.wait(time.Minute)
	equal(t, "no worker has begun", l.key("a").State, "waiting")
	l.log(`"Starting the workers" count=1`, `"Started syncing Foo" foo="default/b"`)
	l.wait(time.Minute)
	equal(t, "the worker is busy", l.key("a").State, "waiting")
	l.log(`"Finished syncing Foo" foo="default/b"`)
	l.wait(patience - time.Millisecond)
	equal(t, "the worker was free for a moment", l.key("a").State, "waiting")
	l.wait(time.Millisecond)
	equal(t, "the worker was free for long", l.key("a"), Key{})
	equal(t, "depth", get[Totals](l, "totals").Waiting, 0)
}
