package leader

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// withoutLostRaces returns ctx with a logger for client-go's leader election, which logs an error
// each time that another process has taken the Lease a moment before. That is normal.
func withoutLostRaces(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	to := logger.GetSink()
	if deep, ok := to.(interface{ WithCallDepth(int) klog.LogSink }); ok {
		to = deep.WithCallDepth(1) // the log shall name client-go's file, and not this one
	}
	return klog.NewContext(ctx, logger.WithSink(sink{to}))
}

// sink passes on all but lost races, of which it says so only at level 2.
type sink struct{ to klog.LogSink }

// Init is for a logger that is made of a sink.
func (s sink) Init(info klog.RuntimeInfo) { s.to.Init(info) }

// Enabled reports whether a message of that level is logged.
func (s sink) Enabled(level int) bool { return s.to.Enabled(level) }

// Info logs a message.
func (s sink) Info(level int, message string, values ...any) { s.to.Info(level, message, values...) }

// Error logs an error, unless it is a lost race.
func (s sink) Error(err error, message string, values ...any) {
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		s.to.Error(err, message, values...)
		return
	}
	const level = 2
	if s.to.Enabled(level) {
		s.to.Info(level, "Another process was faster", append(values, "err", err)...)
	}
}

// WithValues returns a sink that adds values to each message.
func (s sink) WithValues(values ...any) klog.LogSink { return sink{s.to.WithValues(values...)} }

// WithName returns a sink that adds name to each message.
func (s sink) WithName(name string) klog.LogSink { return sink{s.to.WithName(name)} }
