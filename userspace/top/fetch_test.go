package top

import (
	"context"
	"testing"
	"time"
)

// Events that arrive while a request is due or on its way cause one more request at most, and do not put off the one that is due.
func TestSoon(t *testing.T) {
	f := newFetcher(context.Background(), nil)
	f.busy = true
	f.soon()
	f.soon()
	if !f.again || f.waiting {
		t.Errorf("on its way: again %v, waiting %v", f.again, f.waiting)
	}
	f.done()
	if f.again || !f.waiting || f.busy {
		t.Errorf("answered: again %v, waiting %v, busy %v", f.again, f.waiting, f.busy)
	}
	f.timer.Reset(time.Millisecond)
	f.soon() // does not set the timer anew
	select {
	case <-f.timer.C:
	case <-time.After(gather / 2):
		t.Error("an event put off the request that was due")
	}
	if f.again {
		t.Error("an event beside a request that is due asks for one more")
	}
}
