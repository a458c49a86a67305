package explore

import (
	"strings"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// mark is a step of the users, or what has gone wrong on purpose.
type mark struct {
	at         time.Time
	what, text string // what is "step" or "fault"
}

func (w *World) mark(what, text string) {
	w.marking.Lock()
	defer w.marking.Unlock()
	w.marks = append(w.marks, mark{time.Now(), what, text})
}

const lastFew = 10 // lines of the log, and requests that a failure shows

// lastLines keeps the last lines that a process logs.
type lastLines struct{ world *World }

func (l lastLines) Write(text []byte) (int, error) {
	l.world.marking.Lock()
	defer l.world.marking.Unlock()
	for line := range strings.Lines(string(text)) {
		logs := l.world.logs
		l.world.logs = append(logs[max(0, len(logs)-lastFew+1):], strings.TrimSuffix(line, "\n"))
	}
	return len(text), nil
}

func (w *World) logger() klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(lastLines{w})))
}
