package outlet

import (
	"io"
	"log/slog"

	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
)

// NewLogger makes the log handler of a configuration. The journal adds its own timestamps.
func NewLogger(out io.Writer, l settings.Log, journal bool) slog.Handler {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // checked with the configuration
	o := &slog.HandlerOptions{Level: level}
	if journal {
		o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
	}
	var h slog.Handler = slog.NewTextHandler(out, o)
	if l.Format == "json" {
		h = slog.NewJSONHandler(out, o)
	}
	return h
}
