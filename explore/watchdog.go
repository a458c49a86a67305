package explore

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// patience is how many seconds of real time a case may stand still: no request is made, and not even
// a minute passes. Most cases take some milliseconds.
var patience = 30

// moves counts what shows that a case does not stand still.
var moves atomic.Int64

// bubble runs test in a bubble, and ends the program with an explanation if it hangs there: no time
// passes in a bubble while a goroutine waits for what is outside, or for a mutex.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	ended := make(chan struct{})
	defer close(ended)
	go guard(t.Name(), ended)
	defer func() {
		// A process that ends by itself may leave goroutines behind, because then main returns.
		if r := recover(); r != nil && !strings.Contains(fmt.Sprint(r), "blocked goroutines remain") {
			panic(r)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		var minute func()
		minute = func() {
			moves.Add(1)
			time.AfterFunc(time.Minute, minute)
		}
		minute()
		test(t)
	})
}

// guard ends the program when a case has stood still for too long. It counts seconds in which it
// could run itself: on a machine that was asleep, none have passed.
func guard(name string, ended <-chan struct{}) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for still, last := 0, moves.Load(); still < patience; still++ {
		select {
		case <-ended:
			return
		case <-second.C:
		}
		if now := moves.Load(); now != last {
			still, last = 0, now
		}
	}
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	fmt.Fprintf(os.Stderr, "%s has stood still for %d s. In a bubble of testing/synctest, time passes "+
		"only while all goroutines wait for each other: for channels, timers and conditions that were "+
		"made there. The controller waits for something else, such as a port, a file or a mutex that "+
		"is held while time passes. Switch its servers off, make all requests with the rest.Config that "+
		"it gets, and hold no mutex during a request or a sleep.\n\n%s", name, patience, explain(string(stacks)))
	os.Exit(2)
}

// inBubble matches the first line of a goroutine in a bubble. It says for what the goroutine waits.
var inBubble = regexp.MustCompile(`^goroutine \d+ \[([^]]*), synctest bubble \d+\]:`)

// explain names those of the goroutines that keep time from passing, and who may hold the mutexes that
// they wait for: who is asleep or waits in a method of the same type, or in the same function.
func explain(stacks string) string {
	var waiting, others, wanted []string
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		first := inBubble.FindStringSubmatch(stack)
		switch {
		case first == nil:
		case strings.Contains(first[1], "durable"):
			others = append(others, stack)
		default:
			waiting = append(waiting, stack)
			if calls := callers(stack); strings.Contains(stack, "Mutex)") {
				wanted = append(wanted, calls[:min(2, len(calls))]...) // who locks, and its caller
			}
		}
	}
	text := "It waits here:\n\n" + strings.Join(waiting, "\n\n") + "\n"
	holding := slices.DeleteFunc(others, func(stack string) bool {
		return !slices.ContainsFunc(callers(stack), func(call string) bool { return slices.Contains(wanted, call) })
	})
	if len(holding) > 0 {
		text += "\nThe mutex seems to be held here, while time would have to pass:\n\n" +
			strings.Join(holding, "\n\n") + "\n"
	}
	return text
}

var (
	// called matches a function of a stack, such as example.com/x.fill. Of a method, it matches only the
	// type, example.com/x.(*T), because any of its methods may hold the mutex.
	called   = regexp.MustCompile(`(?m)^[^\s(]+(\(\*[^)]+\))?`)
	internal = regexp.MustCompile(`^(goroutine$|created$|internal/|runtime\.|sync\.|time\.|testing)`)
)

// callers returns the functions of a stack, but not those of locks and sleeps.
func callers(stack string) []string {
	return slices.DeleteFunc(called.FindAllString(stack, -1), internal.MatchString)
}
