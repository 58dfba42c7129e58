package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
)

// Kinds of events.
const (
	Hello   = "hello"
	Window  = "window"
	Finding = "finding"
	Missed  = "missed"
	Quiet   = "" // no event: a comment that keeps the connection open
)

// Event is an event of the stream.
type Event struct {
	Kind   string
	Window api.Closed
	Missed uint64
}

const (
	// mostLine bounds a line of the stream: an event has a few hundred bytes.
	mostLine = 1 << 20
	// silence is the timeout of a stream: its server writes a comment every 15 s.
	silence = 45 * time.Second
)

// Follow calls on for each event until the stream or ctx ends, and returns the reason.
func (c *Client) Follow(ctx context.Context, on func(Event)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := c.request(ctx, "/stream", nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return plain(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // a failed read shortens the message
		return c.problemOf(response, body)
	}
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing has arrived for %v", silence)) })
	defer watch.Stop()
	err = read(response.Body, func(e Event) { watch.Reset(silence); on(e) })
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// read parses server-sent events.
func read(from io.Reader, on func(Event)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 4096), mostLine)
	var kind string
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		switch {
		case len(line) == 0:
			if data != nil || kind != "" {
				emit(kind, data, on)
			}
			kind, data = "", nil
		case line[0] == ':':
			on(Event{Kind: Quiet})
		case bytes.HasPrefix(line, []byte("event: ")):
			kind = string(line[len("event: "):])
		case bytes.HasPrefix(line, []byte("data: ")):
			data = bytes.Clone(line[len("data: "):])
		}
	}
	return lines.Err()
}

// emit passes on an event; unknown kinds of later versions are ignored.
func emit(kind string, data []byte, on func(Event)) {
	e := Event{Kind: kind}
	switch kind {
	case Window:
		if json.Unmarshal(data, &e.Window) != nil {
			return
		}
	case Missed:
		var m struct{ Events uint64 }
		if json.Unmarshal(data, &m) != nil {
			return
		}
		e.Missed = m.Events
	case Hello, Finding:
	default:
		return
	}
	on(e)
}
