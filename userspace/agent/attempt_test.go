package agent

import (
	"errors"
	"testing"
	"time"
)

// What fails is tried again after a second, then after twice as long, and at least once a minute.
func TestAttempts(t *testing.T) {
	now := time.Unix(1000, 0)
	var a attempt
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		cause := errors.New("again")
		a = a.again(cause, now)
		if !a.next.Equal(now.Add(want*time.Second)) || !errors.Is(a.err, cause) {
			t.Errorf("next attempt after %s, want %d s", a.next.Sub(now), want)
		}
	}
}

// An instance whose interfaces do not exist is configured and measures nothing.
func TestNothingIsAttached(t *testing.T) {
	h := Health{Status: good, Instances: []InstanceHealth{{Name: "uplink"}}}
	if h.attached(); h.Status != failing || len(h.Reasons) != 1 {
		t.Errorf("%s: %v", h.Status, h.Reasons)
	}
	if h.attached(); len(h.Reasons) != 1 {
		t.Errorf("the reason is given twice: %v", h.Reasons)
	}
	h = Health{Status: good, Instances: []InstanceHealth{{Name: "uplink"}}, interfaces: 1}
	if h.attached(); h.Status != good {
		t.Errorf("%s: %v", h.Status, h.Reasons)
	}
}
