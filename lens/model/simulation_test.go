package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// simulation is a workqueue whose users log what they do. Each goroutine takes one step at a time:
// it writes a line, or it calls the queue.
type simulation struct {
	*lens
	random *rand.Rand
	// exact: nothing comes between a line and the call that it is about, and timers are never late.
	exact bool

	queue             []string
	dirty, processing map[string]bool
	delayed           map[string]time.Duration
	failures          map[string]int
	goroutines        []*goroutine
	syncs             int
}

// goroutine is what one goroutine has yet to do.
type goroutine struct {
	steps  []func()
	worker bool
}

func (s *simulation) add(key string) {
	if s.dirty[key] {
		return
	}
	s.dirty[key] = true
	if !s.processing[key] {
		s.queue = append(s.queue, key)
	}
}

func (s *simulation) addAfter(key string, delay time.Duration) {
	s.fire()
	if until, ok := s.delayed[key]; !ok || s.at+delay < until {
		s.delayed[key] = s.at + delay
	}
}

// fire adds the keys whose delay is over.
func (s *simulation) fire() {
	for _, key := range slices.Sorted(maps.Keys(s.delayed)) {
		if s.delayed[key] <= s.at {
			delete(s.delayed, key)
			s.add(key)
		}
	}
}

// logf writes a line, which is read some time later.
func (s *simulation) logf(format string, args ...any) {
	clock := start.Add(s.at).Format("15:04:05.000000")
	line := fmt.Sprintf("I0701 %s   1 a.go:1] %s", clock, fmt.Sprintf(format, args...))
	read := s.at
	if !s.exact {
		read += time.Duration(s.random.IntN(3)) * time.Millisecond
	}
	s.apply(Seen{At: start.Add(read), Log: line})
}

// get takes a key, and returns what its worker does then.
func (s *simulation) get() []func() {
	if len(s.queue) == 0 {
		return nil
	}
	key := s.queue[0]
	s.queue = s.queue[1:]
	s.processing[key] = true
	delete(s.dirty, key)
	s.syncs++
	again := time.Duration(1+s.random.IntN(20)) * time.Millisecond
	// These calls follow their lines at once: the time between is nothing beside a delay.
	sync := []func(){
		func() { // as in the root: the line of an error comes before that of the end
			s.logf(`"Syncing failed, will retry" err="oh" foo=%q retries=%d`, key, s.failures[key])
			s.addRateLimited(key)
		},
		func() {
			s.logf(`"Retrying after a conflict" foo=%q err="oh"`, key)
			s.addRateLimited(key)
		},
		func() {
			s.logf(`"Queueing Foo again" foo=%q after=%q because="the cache is behind"`, key, again)
			s.addAfter(key, again)
			s.failures[key] = 0
		},
		func() { s.failures[key] = 0 },
	}[min(3, s.random.IntN(6))]
	steps := []func(){func() { s.logf(`"Started syncing Foo" foo=%q`, key) }, sync}
	return append(steps, func() { s.logf(`"Finished syncing Foo" foo=%q duration="1ms"`, key) },
		func() {
			delete(s.processing, key)
			if s.dirty[key] {
				s.queue = append(s.queue, key)
			}
		})
}

func (s *simulation) addRateLimited(key string) {
	s.addAfter(key, min(minRetryDelay<<s.failures[key], maxRetryDelay))
	s.failures[key]++
}

// handle returns what a handler does about an event.
func (s *simulation) handle() []func() {
	key := fmt.Sprintf("default/%c", 'a'+rune(s.random.IntN(5)))
	return []func(){
		func() { s.logf(`"Queueing Foo" foo=%q because="Foo updated"`, key) },
		func() { s.add(key) },
	}
}

// step lets one goroutine do one thing. It reports false if there was nothing to do.
func (s *simulation) step(events bool) bool {
	s.at += time.Duration(s.random.IntN(500)) * time.Microsecond
	if s.exact || s.random.IntN(3) == 0 {
		s.fire()
	}
	g := s.goroutines[s.random.IntN(len(s.goroutines))]
	if len(g.steps) == 0 && g.worker {
		g.steps = s.get()
	} else if len(g.steps) == 0 && events && s.random.IntN(8) == 0 {
		g.steps = s.handle()
	}
	for len(g.steps) > 0 {
		g.steps[0]()
		g.steps = g.steps[1:]
		if !s.exact || s.settled(g) { // in the exact one, a line and its call are one step
			break
		}
	}
	return len(s.queue)+len(s.delayed)+s.busy() > 0
}

// busy counts the goroutines that are doing something.
func (s *simulation) busy() int {
	n := 0
	for _, g := range s.goroutines {
		if len(g.steps) > 0 {
			n++
		}
	}
	return n
}

// model returns the keys that the Model shows in that state.
func (s *simulation) model(state string) []string {
	var keys []string
	for _, e := range s.entities {
		if k, ok := e.(Key); ok && (k.State == state || state == "dirty" && k.Dirty) {
			keys = append(keys, k.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// compare compares what the Model shows with what is in the queue.
func (s *simulation) compare(t *testing.T) {
	t.Helper()
	sorted := func(keys []string) []string { slices.Sort(keys); return keys }
	dirty := slices.DeleteFunc(slices.Sorted(maps.Keys(s.dirty)),
		func(key string) bool { return !s.processing[key] })
	delayed := slices.DeleteFunc(slices.Sorted(maps.Keys(s.delayed)),
		func(key string) bool { return s.processing[key] || s.dirty[key] })
	for state, want := range map[string][]string{
		"waiting": sorted(slices.Clone(s.queue)), "dirty": dirty, "delayed": delayed,
		"processing": slices.Sorted(maps.Keys(s.processing)),
	} {
		if got := s.model(state); !slices.Equal(got, want) {
			t.Fatalf("%s at %v: got %v, want %v", state, s.at, got, want)
		}
	}
	for _, key := range delayed {
		if got := get[Key](s.lens, "key/"+key).Failures; got != s.failures[key] {
			t.Fatalf("failures of %s: got %d, want %d", key, got, s.failures[key])
		}
	}
}

func simulate(t *testing.T, seed uint64, exact bool) *simulation {
	s := &simulation{
		lens: newLens(t), random: rand.New(rand.NewPCG(seed, 0)), exact: exact,
		dirty: map[string]bool{}, processing: map[string]bool{},
		delayed: map[string]time.Duration{}, failures: map[string]int{},
	}
	for i := range 5 {
		s.goroutines = append(s.goroutines, &goroutine{worker: i < 3})
	}
	return s
}

// TestTheModelIsWhatTheQueueIs holds if nothing comes between a line and what it is about.
func TestTheModelIsWhatTheQueueIs(t *testing.T) {
	for seed := range uint64(10) {
		s := simulate(t, seed, true)
		for range 1500 {
			s.step(true)
			s.tick()
			s.compare(t)
		}
		if s.syncs < 50 {
			t.Errorf("seed %d: only %d syncs", seed, s.syncs)
		}
	}
}

// TestTheModelIsWhatTheQueueIsWhenItIsQuiet holds in whatever order the goroutines run. At any
// other time, the Model may miss that a key is in the queue again, but it shows none that is not.
func TestTheModelIsWhatTheQueueIsWhenItIsQuiet(t *testing.T) {
	for seed := range uint64(20) {
		s := simulate(t, seed, false)
		for range 10 {
			for range 200 {
				s.step(true)
				s.noneTooMany(t)
			}
			for s.step(false) {
			}
			s.tick()
			s.compare(t)
		}
	}
}

// settled reports whether the lines tell all that the goroutine has done: no call is missing after
// a line, and no line after a call.
func (s *simulation) settled(g *goroutine) bool {
	return len(g.steps) == 0 || g.worker && (len(g.steps) == 2 || len(g.steps) == 3)
}

// tick lets the Model and the timers see the time.
func (s *simulation) tick() {
	s.at += 3 * time.Millisecond // the last line may have been read so much later
	s.fire()
	s.apply(Seen{At: start.Add(s.at)})
}

// noneTooMany proves that the Model shows no key as waiting or dirty that the queue does not have.
// But it may be early with a key whose delay ends: the line comes before the call.
func (s *simulation) noneTooMany(t *testing.T) {
	t.Helper()
	for _, g := range s.goroutines {
		if !s.settled(g) {
			return
		}
	}
	for _, key := range append(s.model("waiting"), s.model("dirty")...) {
		if _, delayed := s.delayed[key]; !s.dirty[key] && !delayed {
			t.Fatalf("%s at %v: the Model shows that it waits, the queue does not have it", key, s.at)
		}
	}
}
