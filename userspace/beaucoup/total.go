package beaucoup

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// After its alert a collector collects on, until its window ends. counting is such a collector as it was last read.
type counting struct {
	query          *compile.Compiled
	effective      compile.Collector
	key            compile.Words
	slot           uint32
	end            uint32 // of its window, as the slot has it
	alerted, start int64  // ns, in the clock of the packets
	until          int64  // up to when its coupons were read
	coupons, tail  uint64
	marked         int // coupons and coupons of the tail at the end of the window before
	grown          int // ... since then
	state          phase
}

// phase of a collector that has alerted.
type phase int

const (
	running phase = iota // its window has not ended
	ended
	gone // its place was taken, or it was evicted, before it could be read at its end
)

var stateNames = [...]string{running: "running", ended: "ended", gone: "lost"}

// watch begins to follow the collector of an alert.
func (i *instance) watch(e *event, c *compile.Compiled) {
	i.counting = append(i.counting, &counting{query: c, effective: i.effective(c), key: e.Key, slot: e.Slot, end: e.End,
		alerted: int64(e.Time), start: int64(e.Time) - int64(e.Age), until: int64(e.Time), coupons: e.Coupons})
}

// settle reads the collectors whose windows have ended, before another key takes their places.
func (i *instance) settle(now int64) error {
	for _, f := range i.counting {
		if f.state == running && now >= f.over() {
			if err := i.look(f, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// over is the time when its window ends, ns.
func (f *counting) over() int64 { return f.start + int64(f.query.Window) }

// look reads a collector's coupons and its tail.
func (i *instance) look(f *counting, now int64) error {
	u, slot := i.unitOf(f.slot)
	if u == nil {
		f.state = gone
		return nil
	}
	end, err := u.ends.At(slot)
	if err != nil {
		return fmt.Errorf("read collector after its alert: %w", err)
	}
	if uint32(end) != f.end {
		f.state = gone
		return nil
	}
	coupons, err := u.vectors.At(slot)
	if err != nil {
		return fmt.Errorf("read collector after its alert: %w", err)
	}
	if i.dated() {
		coupons &= math.MaxUint32
	}
	f.coupons |= coupons
	if i.total {
		tail, err := u.tails.At(slot)
		if err != nil {
			return fmt.Errorf("read collector after its alert: %w", err)
		}
		if tail>>compile.TailCoupons == uint64(f.end>>1)&(1<<(64-compile.TailCoupons)-1) {
			f.tail |= tail & (1<<compile.TailCoupons - 1)
		}
	}
	if f.until = min(now, f.over()); f.until == f.over() {
		f.state = ended
	}
	return nil
}

// unitOf an event's slot.
func (i *instance) unitOf(slot uint32) (*unit, uint32) {
	for _, u := range i.units {
		if u.number == int(slot>>slotBits) && int(slot&(1<<slotBits-1)) < u.ends.Entries {
			return u, slot & (1<<slotBits - 1)
		}
	}
	return nil, 0
}

// counted moves the state of all collectors that have alerted to a snapshot, and forgets those that will not change any more.
func (i *instance) counted(s *snapshot.Snapshot, now int64, index func(*compile.Compiled, compile.Collector) uint64) error {
	words, left := snapshot.Words{}, i.counting[:0]
	for _, f := range i.counting {
		if f.state == running {
			if err := i.look(f, now); err != nil {
				return err
			}
		}
		f.grown, f.marked = f.marks()-f.marked, f.marks()
		words = append(append(words, index(f.query, f.effective), uint64(f.alerted), uint64(f.start), uint64(f.until), f.coupons, f.tail,
			uint64(f.grown), uint64(f.state)), f.key[:]...)
		if f.state == running {
			left = append(left, f)
		}
	}
	clear(i.counting[len(left):])
	i.counting = left
	s.Words[totalWords] = words
	return nil
}

// marks are its coupons and those of its tail.
func (f *counting) marks() int { return bits.OnesCount64(f.coupons) + bits.OnesCount64(f.tail) }

// total is the number of distinct attributes of a key whose alert was raised, since the begin of its query's window.
type total struct {
	counting
	text             string
	value, low, high float64 // NaN where unknown
}

// totals estimates how many attributes the collectors that have alerted have seen.
func (e *estimator) totals() {
	known, slopes := map[compile.Collector]*compile.Totals{}, map[*compile.Compiled]float64{}
	for n := range e.counted {
		t := &e.counted[n]
		t.text = t.query.Key.Name(t.key, e.names)
		t.value, t.low, t.high = math.NaN(), math.NaN(), math.NaN()
		if t.state == gone {
			continue
		}
		if known[t.effective] == nil {
			known[t.effective] = compile.NewTotals(t.effective)
		}
		slope, ok := slopes[t.query]
		if !ok {
			slope = t.effective.Fewer(e.have[t.query])
			slopes[t.query] = slope
		}
		t.value, t.low, t.high = known[t.effective].At(bits.OnesCount64(t.coupons), t.tail, e.total, slope)
	}
}

// assign divides the totals: those of alerts of this window, and of earlier ones. Of a key with several alerts in the window, the last one's.
func (e *estimator) assign() {
	raised, last := map[named]*Alert{}, map[named]*total{}
	for n := range e.last {
		a := &e.last[n]
		a.Total, a.TotalLow, a.TotalHigh, a.Until = math.NaN(), math.NaN(), math.NaN(), a.Time
		raised[named{a.Query.Text(), a.Key}] = a
	}
	for n := range e.counted {
		t := &e.counted[n]
		at := named{t.query.Text(), t.key}
		if a := raised[at]; a == nil || t.alerted < a.Time {
			e.earlier = append(e.earlier, t)
		} else if before := last[at]; before == nil || before.alerted <= t.alerted {
			last[at] = t
			a.Total, a.TotalLow, a.TotalHigh, a.Until, a.Since = t.value, max(t.low, a.Low), t.high, t.until, t.start
		}
	}
}

// tailShare is the part of the coupons that draw from the tail.
func (c *config) tailShare() float64 {
	if !c.total {
		return 0
	}
	return compile.TailShare
}

// unknown is the number of collectors that were lost before their end.
func (e *estimator) unknown() (n int) {
	for i := range e.counted {
		if e.counted[i].state == gone {
			n++
		}
	}
	return n
}

// named is a key of a query.
type named struct {
	query string
	key   compile.Words
}

// totalTable lists keys that alerted in earlier windows and whose query's window had not ended then.
func (e *estimator) totalTable() report.Table {
	t := report.Table{Name: "counting", Title: "Counted on", Whole: true, Limit: e.top, Help: "keys of earlier alerts whose windows of the query have not ended, or ended in this window",
		Columns: []report.Column{
			{Name: "query", Label: true, Help: "the query"},
			{Name: "key", Label: true, Help: "the key"},
			totalColumn(),
			{Name: "total_low", Unit: report.Count, Help: "lower end of its 95 % interval"},
			{Name: "total_high", Unit: report.Count, Help: "upper end of its 95 % interval"},
			{Name: "time", Unit: report.Nanosecond, JSON: true, Help: "when it alerted, in the clock of the packets"},
			{Name: "until", Unit: report.Nanosecond, JSON: true, Help: "up to when total counts, in the clock of the packets"},
			{Name: "new", Unit: report.Count, Help: "coupons collected since the window before; 0: nothing new was seen, or too little"},
			{Name: "state", Help: "running: the query's window goes on; ended; lost: another key took the collector's place before its end was read"},
		}}
	for _, f := range e.earlier[:min(len(e.earlier), e.top)] {
		t.Rows = append(t.Rows, []any{f.query.Name, f.text, f.value, f.low, f.high, f.alerted, f.until, int64(f.grown), stateNames[f.state]})
	}
	return t
}

func totalColumn() report.Column {
	return report.Column{Name: "total", Unit: report.Attributes, Low: "total_low", High: "total_high", First: true,
		Help: "distinct attributes in the query's window so far, estimated from all coupons; null with total_low: at least so many; in the truth, exactly"}
}
