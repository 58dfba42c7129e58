package ahab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/ahab"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// contents of a snapshot.
type contents struct {
	counters         []uint64
	actions, bytes   []uint64
	offered, dropped []uint64
	refused          []uint64 // of dropped, by ceilings
	limit, capacity  []uint64
	overestimate     []float64
	share            uint64
	users            people
	seconds          float64
}

func (c *config) contentsOf(s *snapshot.Snapshot) (*contents, error) {
	r, n := s.Read(), int(c.entries())
	t := &contents{counters: r.Words("counters", int(bpf.AhabAhabCounterAHAB_COUNTS)), actions: r.Words("deeds", n*actions), bytes: r.Words("bytes", n*actions),
		offered: r.Words("offered", n), dropped: r.Words("dropped", n), refused: r.Words("refused", n), limit: r.Words("limit", n), capacity: r.Words("capacity", n),
		overestimate: r.Floats("overestimate", 2), share: r.Words("sampled", 1)[0], users: peopleOf(r.Rows("users", personWords)),
		seconds: time.Duration(s.Window.End - s.Window.Start).Seconds()}
	if t.share == 0 || t.share > allSamples {
		r.Refuse("a share of %d of 65536 is sampled", t.share)
	}
	for u, p := range t.users {
		if u.slice() == 0 || u.slice() >= len(c.slices) || p.n == 0 || p.dropped > p.n || !(p.rate >= 0) || !(p.squares >= 0) || !(p.limit >= 0) ||
			math.IsInf(p.rate+p.squares+p.limit, 0) {
			r.Refuse("a user is damaged")
		}
	}
	return t, r.Err()
}

// Report implements algo.Config. Its slices are the snapshot's.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	own := *c
	c = &own
	if err := c.named(s); err != nil {
		return algo.Result{}, err
	}
	t, err := c.contentsOf(s)
	if err != nil {
		return algo.Result{}, err
	}
	asked, written := t.count(bpf.AhabAhabCounterAHAB_EPOCHS), t.count(bpf.AhabAhabCounterAHAB_WRITTEN)
	return algo.Result{Body: c.body(t), Used: t.segments(), Segments: true, Lost: map[string]uint64{
		"epochs_refused": asked - min(asked, written),
		"samples":        t.count(bpf.AhabAhabCounterAHAB_LOST_SAMPLES),
	}}, nil
}

func (t *contents) count(c bpf.AhabAhabCounter) uint64 { return t.counters[c] }

// segments of all slices.
func (t *contents) segments() (n uint64) {
	for _, d := range t.actions {
		n += d
	}
	return n
}

// action of a slice: segments and bytes. Bytes that passed are all but the dropped ones.
func (t *contents) action(n int, d bpf.AhabAhabDeed) (segments, bytes uint64) {
	return t.actions[n*actions+int(d)], t.bytes[n*actions+int(d)]
}

func (t *contents) passedBytes(n int) uint64 {
	_, dropped := t.action(n, bpf.AhabAhabDeedAHAB_DROPPED)
	return t.offered[n] - min(t.offered[n], dropped)
}

// rate is bytes of the window in bits a second.
func (t *contents) rate(bytes uint64) float64 {
	if t.seconds <= 0 {
		return 0
	}
	return math.Round(8 * float64(bytes) / t.seconds)
}

// bitRate is a rate in units, in bits a second.
func (u Units) bitRate(units float64) float64 { return math.Round(8 * units * u.Rate(1)) }

// total is what was decided of all slices together.
type total struct {
	passed, dropped, marked                                  uint64 // segments
	offered, passedBytes, droppedBytes, markedBytes, refused uint64
}

func (c *config) total(t *contents) (sum total) {
	for n := range c.slices {
		p, _ := t.action(n, bpf.AhabAhabDeedAHAB_PASSED)
		d, db := t.action(n, bpf.AhabAhabDeedAHAB_DROPPED)
		m, mb := t.action(n, bpf.AhabAhabDeedAHAB_MARKED)
		sum.passed, sum.dropped, sum.marked, sum.droppedBytes, sum.markedBytes = sum.passed+p, sum.dropped+d, sum.marked+m, sum.droppedBytes+db, sum.markedBytes+mb
		sum.offered, sum.passedBytes, sum.refused = sum.offered+t.offered[n], sum.passedBytes+t.passedBytes(n), sum.refused+t.refused[n]
	}
	return sum
}

// done is what became of packets: in a dry run all of them passed.
func (c *config) done(s total) total {
	if c.dry {
		return total{passed: s.passed + s.dropped + s.marked, offered: s.offered, passedBytes: s.offered}
	}
	return s
}

func (c *config) body(t *contents) report.Body {
	decided := c.total(t)
	values := append(c.deedValues(t, c.done(decided)), c.ceilingValues(t, decided)...)
	if c.dry {
		values = append(values, wouldValues(decided)...)
	}
	return report.Body{
		Values: append(values, c.userValues(t)...),
		Tables: []report.Table{c.slicesTable(t), c.usersTable(t)},
		Notes:  c.notes(t, decided.droppedBytes+decided.markedBytes),
	}.Answering("demand", "used", "users_above")
}

func bytesOf(name string, n uint64, help string) report.Value {
	return report.Value{Name: name, Value: n, Unit: report.Bytes, Kind: report.Counter, Help: help}
}

func segmentsOf(name string, n uint64, help string) report.Value {
	return report.Value{Name: name, Value: n, Unit: report.Segments, Kind: report.Counter, Help: help}
}

// deedValues are what was done. They add up to what the interface counts, less what is in no slice.
func (c *config) deedValues(t *contents, s total) []report.Value {
	return []report.Value{
		{Name: "demand", Value: t.rate(s.offered), Unit: report.BitRate, Help: "what arrived, all slices together, in bits a second"},
		{Name: "used", Value: t.rate(s.passedBytes), Unit: report.BitRate, Help: "what passed, all slices together, in bits a second"},
		bytesOf("offered_bytes", s.offered, "bytes that arrived"),
		bytesOf("passed_bytes", s.passedBytes, "bytes that passed, marked ones too"),
		segmentsOf("segments_passed", s.passed, "segments that were neither dropped nor marked"),
		segmentsOf("segments_dropped", s.dropped, "segments that were dropped"),
		bytesOf("dropped_bytes", s.droppedBytes, "bytes that were dropped"),
		segmentsOf("segments_marked", s.marked, "segments that were marked (ECN)"),
		bytesOf("marked_bytes", s.markedBytes, "bytes that were marked"),
	}
}

// wouldValues are what would have been done, had it been no dry run.
func wouldValues(s total) []report.Value {
	return []report.Value{
		bytesOf("would_pass_bytes", s.passedBytes, "bytes that would have passed, marked ones too, had this been no dry run"),
		segmentsOf("would_pass", s.passed, "segments that would have been neither dropped nor marked"),
		segmentsOf("would_drop", s.dropped, "segments that would have been dropped"),
		bytesOf("would_drop_bytes", s.droppedBytes, "bytes that would have been dropped"),
		segmentsOf("would_mark", s.marked, "segments that would have been marked (ECN)"),
		bytesOf("would_mark_bytes", s.markedBytes, "bytes that would have been marked"),
	}
}

// ceilingValues are what ceilings did.
func (c *config) ceilingValues(t *contents, s total) []report.Value {
	return []report.Value{
		segmentsOf("ceiling_dropped", t.count(bpf.AhabAhabCounterAHAB_BOUND), c.would("segments that the ceiling of their slice refused, of those dropped")),
		segmentsOf("root_dropped", t.count(bpf.AhabAhabCounterAHAB_ROOT_BOUND), c.would("segments that the capacity of all slices together refused, of those dropped")),
		bytesOf("ceiling_dropped_bytes", s.refused, c.would("bytes that either of them refused, of those dropped")),
		segmentsOf("ceiling_marked", t.count(bpf.AhabAhabCounterAHAB_BOUND_MARKED), c.would("segments that either of them marked (ECN), of those marked")),
		segmentsOf("paced", t.count(bpf.AhabAhabCounterAHAB_PACED), c.would("act=pace: segments that had to wait for their time of departure")),
		{Name: "pace_delay", Value: t.delay(), Unit: report.Nanosecond, Help: c.would("act=pace: how long those packets waited, in the mean")},
		segmentsOf("pace_dropped", t.count(bpf.AhabAhabCounterAHAB_BEYOND), c.would("act=pace: segments that would have waited for their user's time longer than ahab.horizon, of those dropped")),
		segmentsOf("pace_marked", t.count(bpf.AhabAhabCounterAHAB_PACE_MARKED), c.would("act=pace: segments that wait for more than half of it, of those marked (ECN)")),
		{Name: "ceiling_uncharged", Value: t.count(bpf.AhabAhabCounterAHAB_BOUND_LOST), Unit: report.PacketUnit, Kind: report.Counter,
			Help: "packets that passed uncharged, since another core began the ceiling's next burst at the same time: one a core and silence at most"},
	}
}

// delay is how long packets waited that had to, in the mean, ns.
func (t *contents) delay() uint64 {
	return t.count(bpf.AhabAhabCounterAHAB_PACED_NS) / max(1, t.count(bpf.AhabAhabCounterAHAB_PACED_PACKETS))
}

// userValues are about limits, and who is above them.
func (c *config) userValues(t *contents) []report.Value {
	u := c.units(1)
	return []report.Value{
		segmentsOf("unlimited", t.count(bpf.AhabAhabCounterAHAB_OPEN), "segments above the limit, or beyond a ceiling, that passed because the control loop had not renewed the lease"),
		segmentsOf("stray", t.count(bpf.AhabAhabCounterAHAB_STRAY), "segments that belong to no slice: they pass and are charged to nobody"),
		{Name: "limits_written", Value: t.count(bpf.AhabAhabCounterAHAB_WRITTEN), Unit: report.Count, Kind: report.Counter, Help: "new limits, of all slices"},
		{Name: "users_above", Value: uint64(len(t.users)), Unit: report.Count, Help: "users that were seen above their slice's limit: that many at least"},
		{Name: "users_unseen", Value: t.unseen(), Unit: report.Count, Help: "users above the limit that no sample has met, estimated from those that one or two have (Chao 1984): that many at least"},
		{Name: "rate_error", Value: u.bitRate(t.overestimate[0]), Unit: report.BitRate, Help: "what a user's rate reads too high on average, by what others put into its cells, in bits a second"},
		{Name: "rate_error_p99", Value: u.bitRate(t.overestimate[1]), Unit: report.BitRate, Help: "... and what one user in a hundred has more of"},
	}
}

// unseen users, by how many of those that were seen have one sample and how many two.
func (t *contents) unseen() uint64 {
	var once, twice float64
	for _, s := range t.users {
		switch s.n {
		case 1:
			once++
		case 2:
			twice++
		}
	}
	if t.share == allSamples && t.count(bpf.AhabAhabCounterAHAB_LOST_SAMPLES) == 0 {
		return 0 // every packet above the limit is a sample
	}
	return uint64(once * (once - min(once, 1)) / (2 * (twice + 1)))
}

// would marks a count of a dry run as not done.
func (c *config) would(help string) string {
	if c.dry {
		return help + ", had this been no dry run"
	}
	return help
}

func (c *config) notes(t *contents, touched uint64) (notes []string) {
	if c.dry {
		notes = append(notes, "dry run: nothing was dropped or marked; would_drop and would_mark count what would have been, and tables show it. Senders that react to losses would send less.")
	}
	if n := t.count(bpf.AhabAhabCounterAHAB_OPEN); n > 0 {
		notes = append(notes, fmt.Sprintf("%d segments above the limit, or beyond a ceiling, passed because the control loop was late: limits hold for ahab.lease (%v) from one renewal on.", n, c.lease))
	}
	if mean := c.units(1).Rate(uint64(t.overestimate[0])); touched > 0 && mean > c.lowestLimit(t)/10 {
		notes = append(notes, "users' rates read too high by more than a tenth of a limit: a larger ahab.columns distinguishes users.")
	}
	if least := fullPacket / c.tau.Seconds(); touched > 0 && c.lowestLimit(t) < least {
		notes = append(notes, fmt.Sprintf("a limit is below %s, what one packet of %d bytes reads as: users who send little lose packets, too. A larger ahab.tau distinguishes them.", report.Human(8*least, report.BitRate), fullPacket))
	}
	return notes
}

// lowestLimit of the slices that lost something, in bytes a second.
func (c *config) lowestLimit(t *contents) float64 {
	least := math.Inf(1)
	for n := range c.slices {
		if _, bytes := t.action(n, bpf.AhabAhabDeedAHAB_DROPPED); bytes > 0 {
			least = min(least, c.units(n).Rate(t.limit[n]))
		}
	}
	return least
}

// slicesTable lists the slices with the largest demand.
func (c *config) slicesTable(t *contents) report.Table {
	table := report.Table{Name: "slices", Title: "slices", Limit: c.top, Settings: true, Help: "slices with the largest demand of the window",
		Columns: []report.Column{
			{Name: "slice", Label: true, Help: "its name"},
			{Name: "capacity", Unit: report.BitRate, Metric: true, Help: "bits a second that it may use; 0: any"},
			{Name: "demand", Unit: report.BitRate, Metric: true, History: true, Help: "bits a second that arrived"},
			{Name: "used", Unit: report.BitRate, Metric: true, History: true, Help: c.would("bits a second that passed")},
			{Name: "limit", Unit: report.BitRate, Metric: true, History: true, Help: "bits a second that a user of weight 1 may send, at the window's end; - when nobody is limited"},
			{Name: "users_above", Unit: report.Count, Metric: true, Help: "users seen above the limit: that many at least"},
			{Name: "fairness", Unit: report.Ratio, Metric: true, Err: "fairness_error",
				Help: "Jain's index of what passed of users above the limit, by weight: 1 when all have the same; - where fewer than two have 20 samples"},
			{Name: "segments_dropped", Unit: report.Segments, Help: c.would("segments that were dropped")},
			{Name: "dropped_bytes", Unit: report.Bytes, Metric: true, Help: c.would("bytes that were dropped")},
			{Name: "segments_marked", Unit: report.Segments, Help: c.would("segments that were marked")},
			{Name: "marked_bytes", Unit: report.Bytes, Metric: true, Help: c.would("bytes that were marked")},
			{Name: "segments_passed", Unit: report.Segments, Help: "segments that were neither dropped nor marked"},
			{Name: "ceiling_dropped_bytes", Unit: report.Bytes, Metric: true, Help: c.would("bytes that the slice's ceiling, or the capacity of all, refused, of those dropped")},
			{Name: "fairness_error", Unit: report.Ratio, Help: "standard error of fairness, from the samples"},
		}}
	for n := 1; n < len(c.slices); n++ {
		if c.slices[n].name == "" {
			continue
		}
		p, _ := t.action(n, bpf.AhabAhabDeedAHAB_PASSED)
		d, db := t.action(n, bpf.AhabAhabDeedAHAB_DROPPED)
		m, mb := t.action(n, bpf.AhabAhabDeedAHAB_MARKED)
		above, index, deviation := c.fairness(t, n)
		table.Rows = append(table.Rows, []any{c.slices[n].name, 8 * t.capacity[n], t.rate(t.offered[n]), t.rate(t.passedBytes(n)), c.limitOf(t, n),
			above, index, d, db, m, mb, p, t.refused[n], deviation})
	}
	slices.SortStableFunc(table.Rows, func(a, b []any) int { return cmp.Compare(b[2].(float64), a[2].(float64)) })
	table.Rows = table.Rows[:min(len(table.Rows), c.top)]
	return c.conditional(table)
}

// conditional are names of columns in a dry run, where what they count would have been.
var conditional = map[string]string{"used": "would_use", "segments_dropped": "would_drop", "dropped_bytes": "would_drop_bytes", "segments_marked": "would_mark",
	"marked_bytes": "would_mark_bytes", "segments_passed": "would_pass", "ceiling_dropped_bytes": "ceiling_would_drop_bytes", "dropped_share": "would_drop_share", "dropped_error": "would_drop_error"}

// conditional gives the columns of a dry run names of their own. For one version the old ones are there as well, for programs: nothing was dropped or marked.
func (c *config) conditional(t report.Table) report.Table {
	if !c.dry {
		return t
	}
	for n := range t.Columns {
		column := t.Columns[n]
		name, ok := conditional[column.Name]
		if !ok {
			continue
		}
		t.Columns[n].Name = name
		if would, ok := conditional[column.Err]; ok {
			t.Columns[n].Err = would
		}
		old := report.Column{Name: column.Name, Unit: column.Unit, JSON: true, Help: "in a dry run, for one version: 0, and used and segments_passed; " + name + " is what would have been"}
		t.Columns = append(t.Columns, old)
		for r, row := range t.Rows {
			t.Rows[r] = append(row, done(t.Columns, row, column))
		}
	}
	return t
}

// done is what a column has of a row where nothing was done.
func done(columns []report.Column, row []any, column report.Column) any {
	at := func(name string) any {
		return row[slices.IndexFunc(columns, func(c report.Column) bool { return c.Name == name || c.Name == conditional[name] })]
	}
	switch column.Name {
	case "used":
		return at("demand")
	case "segments_passed":
		return at("segments_passed").(uint64) + at("segments_dropped").(uint64) + at("segments_marked").(uint64)
	case "dropped_share", "dropped_error":
		return 0.
	}
	return uint64(0)
}

// limitOf a slice in bits a second; NaN where nobody is limited.
func (c *config) limitOf(t *contents, n int) float64 {
	limit := c.units(n).bitRate(float64(t.limit[n]))
	if t.capacity[n] == 0 || limit >= 8*float64(t.capacity[n]) {
		return math.NaN()
	}
	return limit
}

// passedRate is what passed of a user, in units: its rate times the share of its bytes that was let through, by samples.
func (s *seen) passedRate() float64 {
	return s.rate / float64(s.n) * (1 - float64(s.dropped)/float64(s.n))
}

// enough samples of a user to judge what passes.
const enough = 20

// fairness is Jain's index (sum x)^2 / (n sum x^2) of what passed of a slice's users above the limit, by weight. Samples scatter, which
// makes the index too low: their variance is taken out of the sum of squares.
func (c *config) fairness(t *contents, n int) (above uint64, index, deviation float64) {
	var users, sum, squares, noise float64
	for u, s := range t.users {
		if u.slice() != n {
			continue
		}
		above++
		if s.n < enough {
			continue
		}
		x := s.passedRate() / u.weight()
		share := 1 - float64(s.dropped)/float64(s.n)
		variance := x * x * (1 - share) / max(share, 1/float64(s.n)) / float64(s.n)
		users, sum, squares, noise = users+1, sum+x, squares+x*x, noise+variance
	}
	if users < 2 || sum == 0 {
		return above, math.NaN(), math.NaN()
	}
	square := sum * sum / users
	index = min(1, square/max(squares-noise*(1-1/users), square))
	return above, index, noise / squares
}

// usersTable lists users above the limit.
func (c *config) usersTable(t *contents) report.Table {
	table := report.Table{Name: "users", Title: "users above the limit", Limit: c.top, Whole: true, Help: "users above their slice's limit, those with most bytes there first",
		Columns: []report.Column{
			{Name: "slice", Label: true, Help: "its slice"},
			{Name: "user", Label: true, Help: "who it is"},
			{Name: "weight", Unit: report.None, Help: "its weight"},
			{Name: "rate", Unit: report.BitRate, Metric: true, Err: "rate_error", Help: "bits a second that it sent while above the limit"},
			{Name: "rate_error", Unit: report.BitRate, JSON: true, Help: "standard error of the rate, from the samples"},
			{Name: "limit", Unit: report.BitRate, Metric: true, Help: "bits a second that it might have sent"},
			{Name: "dropped_share", Unit: report.Ratio, Metric: true, Err: "dropped_error", Help: c.would("share of its packets above the limit that were dropped")},
			{Name: "dropped_error", Unit: report.Ratio, JSON: true, Help: "standard error of that share, from the samples"},
			{Name: "above_bytes", Unit: report.Bytes, Help: "bytes that it sent while above the limit, estimated"},
		}}
	for u, s := range t.users {
		units, n, w := c.units(u.slice()), float64(s.n), u.weight()
		mean, share := s.rate/n, float64(s.dropped)/n
		variance := max(0, s.squares/n-mean*mean)
		table.Rows = append(table.Rows, []any{c.slices[u.slice()].name, u.name(), uint64(w), units.bitRate(mean * w), units.bitRate(w * math.Sqrt(variance/n)),
			units.bitRate(s.limit / n * w), share, math.Sqrt(share * (1 - share) / n), uint64(float64(s.bytes) * allSamples / float64(t.share))})
	}
	slices.SortFunc(table.Rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(b[8].(uint64), a[8].(uint64)), cmp.Compare(a[1].(string), b[1].(string)), cmp.Compare(a[0].(string), b[0].(string)))
	})
	table.Rows = table.Rows[:min(len(table.Rows), c.top)]
	return c.conditional(table)
}

// Merge implements algo.Merger. It is refused: each host has limits of its own, which follow from what arrived there.
func (c *config) Merge(_, _ *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	return nil, fmt.Errorf("%w: a limit is one host's own, and so is who was above it", algo.ErrMerge)
}
