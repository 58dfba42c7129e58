package client

import (
	"reflect"
	"time"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// again is how often findings are told without a change: whoever misses a message has them with the next one, and a coordinator that starts soon knows all.
const again = 20 * time.Second

// found is what was told last; of send's goroutine alone.
type found struct {
	told bus.Findings
	at   time.Time
}

// tellFindings publishes what goes on, when it is other than what was told, or has to be told again. Nothing of it is kept: it is a state, not an event.
func (l *Link) tellFindings(anew bool) {
	if l.opts.Found == nil || !l.conn.IsConnected() {
		return
	}
	m := bus.Findings{Version: bus.Version, Life: l.life, Number: l.found.told.Number}
	m.Items, m.More, m.Subjects = l.opts.Found()
	if !anew && time.Since(l.found.at) < again && reflect.DeepEqual(m.Items, l.found.told.Items) && m.More == l.found.told.More {
		return
	}
	m.Number++
	data, err := bus.Encode(m)
	if err == nil {
		err = l.conn.Publish(bus.FindingsSubject(l.opts.Name), data)
	}
	if err != nil {
		l.opts.Log.Warn("findings are not sent to the coordinator; they are sent again", "error", err)
		return
	}
	l.found = found{m, time.Now()}
}
