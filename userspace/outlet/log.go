package outlet

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

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
		h = slog.NewJSONHandler(escapes{out}, o)
	}
	return h
}

// escapes writes what is not printable as JSON's escapes. encoding/json leaves marks that turn the direction of text, and control characters above 127, as
// they are; a terminal that shows the log would follow them. The text form quotes both.
type escapes struct{ io.Writer }

func (e escapes) Write(line []byte) (int, error) {
	if bytes.ContainsFunc(line, hidden) {
		var b []byte
		for _, r := range string(line) {
			switch {
			case !hidden(r):
				b = utf8.AppendRune(b, r)
			case r > 0xFFFF:
				high, low := utf16.EncodeRune(r)
				b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
			default:
				b = fmt.Appendf(b, `\u%04x`, r)
			}
		}
		if _, err := e.Writer.Write(b); err != nil {
			return 0, err
		}
		return len(line), nil
	}
	return e.Writer.Write(line)
}

// hidden are characters that are not printable, the end of a line apart.
func hidden(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
