package references

import "github.com/xdpmon/xdpmon/userspace/heavy"

// SetRAP is the limited-associativity form of RAP (section 3.2): one row of ways entries by hash, the smallest of which may
// be taken over at once. A reference: a switch cannot write what it has already passed.
type SetRAP struct {
	rows   [][]entry
	hash   func(heavy.Key) uint64
	random func() float64
}

// NewSetRAP makes a table of size entries in rows of ways; random is uniform in [0, 1).
func NewSetRAP(size, ways int, hash func(heavy.Key) uint64, random func() float64) *SetRAP {
	s := &SetRAP{rows: make([][]entry, size/ways), hash: hash, random: random}
	for r := range s.rows {
		s.rows[r] = make([]entry, ways)
	}
	return s
}

// Add counts a packet and returns the estimate of its flow, 0 when it has no entry.
func (s *SetRAP) Add(key heavy.Key) float64 {
	row := s.rows[s.hash(key)%uint64(len(s.rows))]
	least := 0
	for i := range row {
		if row[i].key == key {
			row[i].count++
			return row[i].count
		}
		if row[i].count < row[least].count {
			least = i
		}
	}
	if s.random()*(row[least].count+1) >= 1 {
		return 0
	}
	row[least] = entry{key: key, count: row[least].count + 1}
	return row[least].count
}

// Counts returns all estimates.
func (s *SetRAP) Counts() map[heavy.Key]float64 {
	counts := map[heavy.Key]float64{}
	for _, row := range s.rows {
		for _, e := range row {
			if e.count > 0 {
				counts[e.key] = e.count
			}
		}
	}
	return counts
}
