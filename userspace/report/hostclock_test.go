package report

import (
	"testing"
	"time"
)

// A window's time and the clock make the time of day.
func TestHostClock(t *testing.T) {
	earliest := time.Now().UnixNano() - int64(time.Second) // the clock may be set right meanwhile
	c := HostClock()
	if now := Monotonic() + c.UnixOffsetNS; now < earliest || now > time.Now().UnixNano()+int64(time.Second) || c.Name != "monotonic" {
		t.Errorf("%+v: it is %d", c, now)
	}
}
