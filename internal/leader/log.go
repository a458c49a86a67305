package leader

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// withoutNormalErrors returns ctx with a logger for client-go's leader election. The election logs
// two errors that are normal: another process has taken the Lease a moment before, or the election
// was stopped during a request.
func withoutNormalErrors(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	to := logger.GetSink()
	if deep, ok := to.(interface{ WithCallDepth(int) klog.LogSink }); ok {
		to = deep.WithCallDepth(1) // the log shall name client-go's file, and not this one
	}
	return klog.NewContext(ctx, logger.WithSink(sink{to}))
}

// detail is the level at which a sink says that something normal has happened.
const detail = 2

// sink passes on all but lost races and stopped requests.
type sink struct{ to klog.LogSink }

// Init is for a logger that is made of a sink.
func (s sink) Init(info klog.RuntimeInfo) { s.to.Init(info) }

// Enabled reports whether a message of that level is logged.
func (s sink) Enabled(level int) bool { return s.to.Enabled(level) }

// Info logs a message. If one of the values says that the election was stopped, it is a detail.
func (s sink) Info(level int, message string, values ...any) {
	for _, value := range values {
		if err, isError := value.(error); isError && errors.Is(err, context.Canceled) {
			level = max(level, detail)
		}
	}
	if s.to.Enabled(level) {
		s.to.Info(level, message, values...)
	}
}

// Error logs an error, unless it is normal.
func (s sink) Error(err error, message string, values ...any) {
	lost := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
	switch {
	case !lost && !errors.Is(err, context.Canceled):
		s.to.Error(err, message, values...)
	case !s.to.Enabled(detail):
	case lost:
		s.to.Info(detail, "Another process was faster", append(values, "err", err)...)
	default:
		s.to.Info(detail, "The election was stopped during a request", append(values, "err", err)...)
	}
}

// WithValues returns a sink that adds values to each message.
func (s sink) WithValues(values ...any) klog.LogSink { return sink{s.to.WithValues(values...)} }

// WithName returns a sink that adds name to each message.
func (s sink) WithName(name string) klog.LogSink { return sink{s.to.WithName(name)} }
