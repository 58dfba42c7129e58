package client

import (
	"reflect"
	"time"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// repeat is how often findings are sent without a change: a lost message is replaced by the next one, and a coordinator that starts has all of them soon.
const repeat = 20 * time.Second

// found is what was sent last; only send's goroutine uses it.
type found struct {
	last bus.Findings
	at   time.Time
}

// publishFindings publishes open findings when they have changed, or are due for repetition. Nothing is queued: findings are a state, not events.
func (l *Link) publishFindings(again bool) {
	if l.opts.Found == nil || !l.conn.IsConnected() {
		return
	}
	m := bus.Findings{Version: bus.Version, Incarnation: l.incarnation, Number: l.found.last.Number}
	m.Items, m.More, m.Subjects = l.opts.Found()
	if !again && time.Since(l.found.at) < repeat && reflect.DeepEqual(m.Items, l.found.last.Items) && m.More == l.found.last.More {
		return
	}
	m.Number++
	data, err := bus.Encode(m)
	if err == nil {
		err = l.conn.Publish(bus.FindingsSubject(l.opts.Name), data)
	}
	if err != nil {
		l.opts.Log.Warn("cannot send findings to the coordinator, retrying", "error", err)
		return
	}
	l.found = found{m, time.Now()}
}
