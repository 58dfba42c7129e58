package hostclock

import (
	"testing"
	"time"
)

// A window's time and the clock make the time of day.
func TestRead(t *testing.T) {
	earliest := time.Now().UnixNano() - int64(time.Second) // the clock may be set right meanwhile
	c := Read()
	if now := Now() + c.UnixOffsetNS; now < earliest || now > time.Now().UnixNano()+int64(time.Second) || c.Name != "monotonic" {
		t.Errorf("%+v: it is %d", c, now)
	}
}
