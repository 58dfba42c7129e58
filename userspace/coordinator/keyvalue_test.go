package coordinator

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/xdpmon/xdpmon/userspace/coordinator/config"
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

// memory is a key-value store that is there as long as the test.
type memory struct {
	jetstream.KeyValue
	values map[string][]byte
}

type value struct {
	jetstream.KeyValueEntry
	data []byte
}

func (v value) Value() []byte { return v.data }

func (m *memory) Create(_ context.Context, key string, data []byte, _ ...jetstream.KVCreateOpt) (uint64, error) {
	if m.values[key] != nil {
		return 0, jetstream.ErrKeyExists
	}
	m.values[key] = data
	return 1, nil
}

func (m *memory) Get(_ context.Context, key string) (jetstream.KeyValueEntry, error) {
	if m.values[key] == nil {
		return nil, jetstream.ErrKeyNotFound
	}
	return value{data: m.values[key]}, nil
}

// Measurements without a seed get one that all coordinators share; those that have one keep it, and what is stored is not trusted blindly.
func TestSeeds(t *testing.T) {
	kv := &memory{values: map[string][]byte{}}
	c := &Coordinator{state: &keyValue{kv: kv, log: slog.New(slog.DiscardHandler)}}
	cfg := &config.Config{Measurements: []config.Measurement{{Name: "drawn"}, {Name: "own", Seed: 5}, {Name: "one", Seed: 1}, {Name: "other"}}}
	first, err := c.seeds(t.Context(), cfg)
	if err != nil || len(first) != 2 || first["drawn"] == 0 || first["other"] == 0 || first["drawn"] == first["other"] {
		t.Fatalf("%v, %v", first, err)
	}
	again, err := (&Coordinator{state: &keyValue{kv: kv, log: slog.New(slog.DiscardHandler)}}).seeds(t.Context(), cfg)
	if err != nil || !maps.Equal(first, again) {
		t.Errorf("%v, later %v, %v", first, again, err)
	}
	kv.values[seedKey+"other"] = []byte("short")
	if got, err := c.seeds(t.Context(), cfg); err == nil {
		t.Errorf("%v of a damaged store", got)
	}
}
