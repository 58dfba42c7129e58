package algo

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// cache holds the configurations of snapshots, whose parameters are text: a coordinator parses each distinct set once, not with
// every window of every host.
type cache struct {
	mu   sync.Mutex
	held map[cacheKey]Selected
}

type cacheKey struct {
	params string // with the algorithm's name
	setup  Setup
}

// Bounds of the cache, since agents choose the parameters in their snapshots: a full cache is emptied, and longer parameters are not cached.
const (
	mostCached    = 256
	longestCached = 16 << 10 // bytes
)

var cached = cache{held: map[cacheKey]Selected{}}

func (c *cache) selected(d *Descriptor, s *snapshot.Snapshot) (Selected, error) {
	key := cacheKey{paramText(s), SetupOf(s)}
	c.mu.Lock()
	is, ok := c.held[key]
	c.mu.Unlock()
	if ok && is.Descriptor == d { // tests register another algorithm with the same name
		return is, nil
	}
	is, err := d.Select(s.Params, key.setup)
	if err != nil || len(key.params) > longestCached {
		return is, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) >= mostCached {
		clear(c.held)
	}
	c.held[key] = is
	return is, nil
}

// paramText is an algorithm's name with its parameters, quoted so that different parameters never have the same text.
func paramText(s *snapshot.Snapshot) string {
	text := []byte(s.Algorithm)
	for _, key := range slices.Sorted(maps.Keys(s.Params)) {
		text = strconv.AppendQuote(text, key)
		text = strconv.AppendQuote(text, s.Params[key])
	}
	return string(text)
}
