package references

import (
	"container/heap"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// SpaceSaving is the algorithm of Metwally et al. (section 3.2): a full table's smallest entry is given to whoever arrives, with
// its count plus one. With admit it is RAP: only with probability 1/(count + 1). A reference: it knows no memory rules.
type SpaceSaving struct {
	size  int
	admit func(count float64) bool // nil: always
	at    map[heavy.Key]*entry
	least leastFirst
}

type entry struct {
	key   heavy.Key
	count float64
	place int
}

// NewSpaceSaving makes a table of so many entries.
func NewSpaceSaving(size int) *SpaceSaving {
	return &SpaceSaving{size: size, at: map[heavy.Key]*entry{}}
}

// NewRAP makes a table that admits by chance; random is uniform in [0, 1).
func NewRAP(size int, random func() float64) *SpaceSaving {
	s := NewSpaceSaving(size)
	s.admit = func(count float64) bool { return random()*(count+1) < 1 }
	return s
}

// Add counts a packet and returns the estimate of its flow, 0 when it has no entry.
func (s *SpaceSaving) Add(key heavy.Key) float64 {
	e := s.at[key]
	switch {
	case e != nil:
	case len(s.least) < s.size:
		e = &entry{key: key}
		s.at[key] = e
		heap.Push(&s.least, e)
	case s.admit != nil && !s.admit(s.least[0].count):
		return 0
	default:
		e = s.least[0]
		delete(s.at, e.key)
		e.key = key
		s.at[key] = e
	}
	e.count++
	heap.Fix(&s.least, e.place)
	return e.count
}

// Counts returns all estimates.
func (s *SpaceSaving) Counts() map[heavy.Key]float64 {
	counts := make(map[heavy.Key]float64, len(s.at))
	for key, e := range s.at {
		counts[key] = e.count
	}
	return counts
}

type leastFirst []*entry

func (l leastFirst) Len() int           { return len(l) }
func (l leastFirst) Less(i, j int) bool { return l[i].count < l[j].count }
func (l leastFirst) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

// Push implements heap.Interface.
func (l *leastFirst) Push(x any) {
	e := x.(*entry)
	e.place = len(*l)
	*l = append(*l, e)
}

// Pop implements heap.Interface.
func (l *leastFirst) Pop() any {
	old := *l
	e := old[len(old)-1]
	*l = old[:len(old)-1]
	return e
}
