package coordinator

import (
	"testing"
	"time"
)

// A waiting coordinator takes over if there is no leader or the leader has been silent for long, and not before.
func TestWhoMayLead(t *testing.T) {
	seen := time.Now()
	another := entry{leader{"another", 7}, 3}
	for _, c := range []struct {
		name   string
		entry  entry
		silent time.Duration
		want   bool
	}{
		{"there is no entry", entry{}, 0, true},
		{"the last one has ended", entry{leader{}, 3}, 0, true},
		{"it was this one before it was started again", entry{leader{"self", 7}, 3}, 0, true},
		{"another one leads", another, 0, false},
		{"another one leads and is late", another, takeover, false},
		{"another one has been silent", another, takeover + 1, true},
	} {
		if got := (sighting{c.entry, seen}).free("self", seen.Add(c.silent)); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
