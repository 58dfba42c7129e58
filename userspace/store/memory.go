package store

import (
	"sync"
	"time"
)

// Past answers queries on stored windows: a Store has them on disk, a Memory until the process ends.
type Past interface {
	Each(Query, func(Record) error) error
	Sample(Query, time.Duration, func(Record) error) error
}

// Memory keeps the latest records of a process that has no store, packed as a store packs them. It is safe for concurrent use.
type Memory struct {
	most int // bytes

	mu    sync.Mutex
	list  []remembered // by the time of their end, as they arrived
	bytes int
}

type remembered struct {
	key, packed []byte
}

// recordOverhead is the memory of a record in addition to its packed bytes: two slice headers and the key.
const recordOverhead = 64

// NewMemory returns a Memory of at most most bytes.
func NewMemory(most int) *Memory { return &Memory{most: most} }

// Append stores a record, and removes the oldest ones beyond the limit.
func (m *Memory) Append(r Record) error {
	packed, err := pack(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, remembered{key(r.End, uint64(len(m.list))), packed})
	for m.bytes += len(packed) + recordOverhead; m.bytes > m.most && len(m.list) > 0; m.list = m.list[1:] {
		m.bytes -= len(m.list[0].packed) + recordOverhead // a cursor may still read it; the next growth of the list releases it
	}
	return nil
}

// Each is a Store's.
func (m *Memory) Each(q Query, fn func(Record) error) error { return q.walk(m.cursor(), 0, fn, nil) }

// Sample is a Store's.
func (m *Memory) Sample(q Query, step time.Duration, fn func(Record) error) error {
	q.Newest = false
	return q.walk(m.cursor(), step, fn, nil)
}

func (m *Memory) cursor() *memoryCursor {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memoryCursor{list: m.list}
}

// memoryCursor iterates over the records at the time of its creation. Records arrive in the order of their end except for some milliseconds, so that the list is
// searched as if it were sorted.
type memoryCursor struct {
	list []remembered
	at   int
}

func (c *memoryCursor) entry() (k, v []byte) {
	if c.at < 0 || c.at >= len(c.list) {
		return nil, nil
	}
	return c.list[c.at].key, c.list[c.at].packed
}

// First is the oldest record.
func (c *memoryCursor) First() (k, v []byte) { c.at = 0; return c.entry() }

// Last is the newest record.
func (c *memoryCursor) Last() (k, v []byte) { c.at = len(c.list) - 1; return c.entry() }

// Next is the record after this one.
func (c *memoryCursor) Next() (k, v []byte) { c.at++; return c.entry() }

// Prev is the record before this one.
func (c *memoryCursor) Prev() (k, v []byte) { c.at--; return c.entry() }

// Seek is the first record at or after a key.
func (c *memoryCursor) Seek(seek []byte) (k, v []byte) {
	low, high := 0, len(c.list)
	for low < high {
		if mid := (low + high) / 2; string(c.list[mid].key) < string(seek) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	c.at = low
	return c.entry()
}
