package explore

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// patience is how long a case may take in real time. Most take some milliseconds.
const patience = 10 * time.Minute

// inBubble matches the first line of a goroutine that keeps time from passing.
var inBubble = regexp.MustCompile(`^goroutine \d+ \[([^]]*), synctest bubble \d+\]:`)

// guard ends the program with an explanation if a case takes too long.
func guard(name string, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-time.After(patience):
	}
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	fmt.Fprintf(os.Stderr, "%s hangs. In a bubble of testing/synctest, time passes only while all "+
		"goroutines wait for each other: for channels, timers and conditions that were made there. "+
		"The controller waits for something else, such as a port, a file or a mutex. Switch its "+
		"servers off, and make all requests with the rest.Config that it gets. It waits here:\n\n%s\n",
		name, blockers(string(stacks)))
	os.Exit(2)
}

// blockers returns those of the goroutines that keep time from passing.
func blockers(stacks string) string {
	var found []string
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		first := inBubble.FindStringSubmatch(stack)
		if first != nil && !strings.Contains(first[1], "durable") {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
