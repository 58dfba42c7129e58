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
