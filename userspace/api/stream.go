package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const (
	// streamDepth is the length of a client's queue: two rounds of windows of a host with many instances. Windows are shared, so that a client
	// that does not read costs pointers only.
	streamDepth = 512
	// streamWrite is the timeout of a write to a client, after which the connection is closed.
	streamWrite = 10 * time.Second
	// streamQuiet is the interval of comments without events: proxies and pages detect a dead connection by them.
	streamQuiet = 15 * time.Second
)

// Closed is a finished window as an event of the stream.
type Closed struct {
	Key       string `json:"key"`
	Algorithm string `json:"algorithm"`
	Window    Window `json:"window"`
	Seen      uint64 `json:"seen"`
	Bytes     uint64 `json:"bytes"`
}

// stream sends windows and findings when they are finished. A client that does not read loses the oldest, is sent their number, and blocks nothing: its
// queue is the feed's.
func (a *API) stream(w http.ResponseWriter, r *http.Request, q query) {
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		write(w, problem(http.StatusServiceUnavailable, "%d streams are open, the maximum", mostStreams))
		return
	}
	sub := a.opts.Hub.Subscribe(feed.Options{Depth: streamDepth})
	defer sub.Leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out := sse{to: w, control: http.NewResponseController(w)}
	if out.send("hello", map[string]int64{"now_ms": a.opts.Now().UnixMilli()}) != nil {
		return
	}
	for {
		if a.pump(r.Context(), sub, q, &out) != nil {
			return
		}
	}
}

// pump waits for an event and writes it.
func (a *API) pump(ctx context.Context, sub *feed.Subscription, q query, out *sse) error {
	wait, cancel := context.WithTimeout(ctx, streamQuiet)
	e, missed, err := sub.Next(wait)
	cancel()
	if missed > 0 && out.send("missed", map[string]uint64{"events": missed}) != nil {
		return errGone
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return out.write([]byte(":\n\n"))
	case err != nil:
		return err
	case e.Finding != nil:
		return out.send("finding", e.Finding.Object)
	case e.Line != nil && (q.text("key") == "" || q.text("key") == e.Line.Key()) && (q.text("algorithm") == "" || q.text("algorithm") == e.Line.Algorithm):
		return out.send("window", a.closed(e.Line, q.truth("whole")))
	}
	return nil
}

var errGone = errors.New("the reader has disconnected")

// closed is a window as an event, or as a JSON line: the latest window is encoded once for all clients.
func (a *API) closed(l *report.Line, whole bool) any {
	if whole {
		if w := a.live.window(place{l.Key(), l.Algorithm}); w != nil && w.line.Window == l.Window {
			if text, err := w.record(a.opts.Clock()); err == nil {
				return json.RawMessage(text)
			}
		}
		if text, err := l.Record(a.opts.Clock()); err == nil {
			return json.RawMessage(text)
		}
	}
	return Closed{Key: l.Key(), Algorithm: l.Algorithm, Window: a.window(l.Window), Seen: l.Packets.Seen, Bytes: l.Packets.Bytes}
}

// sse writes server-sent events.
type sse struct {
	to      http.ResponseWriter
	control *http.ResponseController
}

func (s *sse) send(event string, v any) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: ", event)
	e := json.NewEncoder(&b) // one line: JSON escapes line ends
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

func (s *sse) write(text []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite)) // not every writer supports it, such as those of tests
	if _, err := s.to.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}
