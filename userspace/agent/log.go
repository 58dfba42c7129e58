package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// switched is a handler that a changed configuration can replace while it is in use.
type switched struct{ now atomic.Pointer[slog.Handler] }

func (s *switched) set(h slog.Handler) { s.now.Store(&h) }

func (s *switched) Enabled(ctx context.Context, l slog.Level) bool {
	return (*s.now.Load()).Enabled(ctx, l)
}

func (s *switched) Handle(ctx context.Context, r slog.Record) error {
	return (*s.now.Load()).Handle(ctx, r)
}

// WithAttrs and WithGroup are those of the current handler: no caller stores the result.
func (s *switched) WithAttrs(a []slog.Attr) slog.Handler { return (*s.now.Load()).WithAttrs(a) }

func (s *switched) WithGroup(name string) slog.Handler { return (*s.now.Load()).WithGroup(name) }
