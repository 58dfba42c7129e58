package beaucoup

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// pollEvery is how often a live run drains the ring and checks the file of queries.
const pollEvery = 100_000_000 // ns

type event = bpf.BeaucoupBeaucoupEvent

// tagged is an event with its query at the time when it was read from the ring, since identifiers of queries are reused.
type tagged struct {
	event
	query     *compile.Compiled
	effective compile.Collector
}

// Alert reports that a key passed a query's threshold.
type Alert struct {
	Query *compile.Compiled
	Key   compile.Words
	Time  int64 // ns, in the clock of the packets
	Age   int64 // ns since the collector's first coupon
	Text  string
	Times int // alerts of this key in the window
	Draws float64
	// Low and High enclose the count in 95 % of all alerts, and Confidence is the probability that it is more than half of the
	// threshold, given how many keys of the query were near it.
	Low, High, Confidence float64
	// Total is the number of distinct attributes from Since, the collector's first coupon, to Until, ns; NaN where it is unknown.
	Total, TotalLow, TotalHigh float64
	Since, Until               int64
	// Least is the number of attributes that 9,999 of 10,000 alerts need at least, if no coupon was lost to ties: with fewer, the
	// alert is false.
	Least float64
}

// instance is one configured monitor.
type instance struct {
	*config
	head     snapshot.Head
	seed     uint64
	names    map[uint64]string // by their hash
	set      *maps.Set
	counts   *maps.Array
	units    []*unit
	program  *compile.Program
	previous *compile.Program // names the events of removed queries
	needs    maps.Need        // fields of the queries at the start: the parser reads no others
	tables   *compile.Tables
	ring     *maps.Ring
	events   []tagged
	counting []*counting // collectors that have alerted, until their windows end
	epoch    uint64
	shared   func() uint64                    // returns the epoch that hosts share; nil: every host counts its own
	modified time.Time                        // of the file of queries
	trouble  []string                         // errors for the next report
	notify   func(format string, args ...any) // sends a notice to the operator at once
	changes  uint64
	evicted  uint64  // collectors, since the last window
	looked   int64   // ns, when hopeless collectors were last searched
	most     float64 // collectors that were alive then; below 0 before the first search
	since    uint64  // number of collectors started until then

	judged  bool    // an oracle compares last with the truth
	last    []Alert // alerts of the last window, for the oracle
	judging *estimator
	leasts  map[compile.Collector]float64
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) { return c.instance(env) }

func (c *config) instance(env algo.Env) (*instance, error) {
	if c.rotate && c.export && env.Epoch == nil {
		return nil, c.values.Error("rotate", "exported coupons of different windows cannot be merged, unless a coordinator sets the number of the window: choose rotate or export")
	}
	names, err := readNames(c.values, env.Seed)
	if err != nil {
		return nil, err
	}
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	i := &instance{config: c, head: env.Head, seed: env.Seed, names: names, program: p, needs: p.Needs(), notify: env.Notify, shared: env.Epoch}
	if c.file != "" {
		if stat, err := os.Stat(c.file); err == nil {
			i.modified = stat.ModTime()
		}
	}
	return i, nil
}

// program compiles the queries.
func (c *config) program() (*compile.Program, error) {
	queries, err := readQueries(c.values)
	if err != nil {
		return nil, err
	}
	return compile.Compile(queries, c.options)
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	var multipliers compile.Words
	for n := range multipliers {
		multipliers[n] = compile.Salt(i.seed, uint64(n), "multiplier") | 1
	}
	key := [2]uint64{compile.Salt(i.seed, 0, "key"), compile.Salt(i.seed, 1, "key")}
	constants := map[constant.Name]any{constant.BeaucoupMultipliers: multipliers, constant.BeaucoupExport: i.export, constant.BeaucoupDated: i.dated(), constant.BeaucoupKeyed: i.keyed,
		constant.BeaucoupKey: key, constant.BeaucoupTotal: i.total, constant.BeaucoupTables: uint32(i.options.Tables), constant.BeaucoupSecond: i.second}
	if err := maps.SetConstants(spec, constants); err != nil {
		return err
	}
	for number := range mostTables + 1 {
		entries, tails := uint32(1), uint32(1)
		if slices.Contains(i.unitNumbers(), number) {
			entries = i.unitEntries()
		}
		if i.total {
			tails = entries
		}
		e, k, v, t := unitNames(number)
		for name, n := range map[string]uint32{e: entries, k: entries, v: entries, t: tails} {
			if err := maps.SetEntries(spec, name, n); err != nil {
				return err
			}
		}
	}
	return maps.SetEntries(spec, "beaucoup_events", uint32(i.config.ring))
}

// Needs implements algo.Instance. The fields of later queries must be among those of the start.
func (i *instance) Needs() maps.Need { return i.needs }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	i.set, i.most = set, -1
	if i.counts, err = set.Array("beaucoup_counts"); err != nil {
		return err
	}
	if i.units, err = i.newUnits(set); err != nil {
		return err
	}
	events, err := set.Array("beaucoup_events")
	if err != nil {
		return err
	}
	if i.ring, err = events.Ring(); err != nil {
		return err
	}
	if i.tables, err = compile.NewTables(set); err != nil {
		return err
	}
	if i.rotate && i.shared != nil {
		i.epoch = i.shared()
	}
	return i.tables.Install(i.program, i.seed, i.epoch)
}

// Update exchanges the queries while packets arrive: queries in both sets keep their collectors.
func (i *instance) Update(queries []compile.Query) error {
	o := i.options
	o.Keep = i.program
	next, err := compile.Compile(queries, o)
	if err != nil {
		return err
	}
	if missing := next.Needs() &^ i.needs; missing != 0 {
		return fmt.Errorf("change queries: %w %s: it was not among the fields at the start, so the parser does not read it; restart with these queries",
			compile.ErrField, strings.Join(compile.FieldsOf(missing), ", "))
	}
	if err := i.poll(); err != nil { // events of the old queries
		return err
	}
	if err := i.tables.Install(next, i.seed, i.epoch); err != nil {
		return err
	}
	i.previous, i.program = i.program, next
	i.changes++
	return nil
}

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 { return pollEvery }

// Rests implements algo.Rester. A file of queries is checked also while no packets arrive.
func (i *instance) Rests() bool { return i.file == "" }

// Tick implements algo.Controller: it drains the ring and follows the file of queries. An invalid file changes nothing; the
// operator is notified at once, and the next report has a note.
func (i *instance) Tick(now int64) error {
	if err := i.follow(); err != nil {
		i.notify("beaucoup: keeping the previous queries: %s: %v", i.file, err)
	}
	if err := i.settle(now); err != nil {
		return err
	}
	if now-i.looked >= evictEvery {
		i.looked = now
		full, err := i.full()
		if err == nil && full {
			err = i.evict(now)
		}
		if err != nil {
			return err
		}
	}
	return i.poll()
}

// follow returns the error in a changed file. A file that is not regular is read once, at the start.
func (i *instance) follow() error {
	if i.file == "" {
		return nil
	}
	stat, err := os.Stat(i.file)
	if err != nil || !stat.Mode().IsRegular() || stat.ModTime().Equal(i.modified) {
		return nil
	}
	i.modified = stat.ModTime()
	queries, err := compile.ReadFile(i.file)
	if err == nil {
		err = i.Update(queries)
	}
	if err != nil {
		i.trouble = append(i.trouble, "keeping the previous queries: "+err.Error())
	}
	return err
}

// poll drains the ring.
func (i *instance) poll() error {
	return i.ring.Drain(func(b []byte) {
		var e event
		if len(b) >= int(unsafe.Sizeof(e)) {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b)
			if c := i.query(int(e.Query)); c != nil {
				i.events = append(i.events, tagged{e, c, i.effective(c)})
				if e.Alert != 0 {
					i.watch(&e, c)
				}
			}
		}
	})
}

// Read implements algo.Instance. It also evicts hopeless collectors and, with beaucoup.rotate, changes the hashes.
func (i *instance) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s, err := i.take(w, bank)
	if err != nil {
		return nil, errorf("read window", err)
	}
	if i.judged {
		e, err := i.open(s)
		if err != nil {
			return nil, err
		}
		i.last, i.judging = e.last, e
		for n := range i.last {
			i.last[n].Least = i.least(i.last[n].Query.Collector)
		}
	}
	if !i.rotate {
		return s, nil
	}
	i.nextEpoch()
	if err := i.forget(); err != nil {
		return nil, err
	}
	return s, i.tables.Install(i.program, i.seed, i.epoch)
}

// nextEpoch advances the epoch: to the one that hosts share, if they do.
func (i *instance) nextEpoch() {
	if i.shared != nil {
		i.epoch = i.shared()
		return
	}
	i.epoch++
}

func (i *instance) take(w report.Window, bank int) (*snapshot.Snapshot, error) {
	n, err := i.counts.ReadReset(bank, nil)
	if err != nil {
		return nil, err
	}
	if err := i.poll(); err != nil {
		return nil, err
	}
	if i.since, err = i.started(); err != nil {
		return nil, err
	}
	alive, err := i.alive(w.End)
	if err != nil {
		return nil, err
	}
	i.most = float64(alive)
	s := snapshot.New(i.head, w)
	s.Epoch = i.epoch
	s.Words[counterWords] = n
	if err := i.collected(s, w.End); err != nil {
		return nil, err
	}
	if full, err := i.full(); err != nil {
		return nil, err
	} else if full {
		if err := i.evict(w.End); err != nil {
			return nil, err
		}
	}
	s.Words[stateWords] = snapshot.Words{uint64(alive), i.evicted, i.changes}
	if len(i.trouble) > 0 {
		s.Texts[troubleTexts] = i.trouble
	}
	i.evicted, i.changes, i.trouble = 0, 0, nil
	return s, nil
}

// alive counts the collectors whose window has not ended.
func (i *instance) alive(now int64) (count int, err error) {
	for _, u := range i.units {
		n, err := u.alive(ticks32(now), i.program.Horizon())
		if err != nil {
			return 0, err
		}
		count += n
	}
	return count, nil
}

// query finds the query of an event.
func (i *instance) query(id int) *compile.Compiled {
	if c := i.program.ByID(id); c != nil || i.previous == nil {
		return c
	}
	return i.previous.ByID(id)
}

// least is the number of draws that nearly all collectors need at least, cached.
func (i *instance) least(drawn compile.Collector) float64 {
	n, known := i.leasts[drawn]
	if !known {
		n = drawn.Quantiles(1e-4)[0]
		if i.leasts == nil {
			i.leasts = map[compile.Collector]float64{}
		}
		i.leasts[drawn] = n
	}
	return n
}

// effective is a query's collector with the probability after ties, in the program that it belongs to.
func (i *instance) effective(c *compile.Compiled) compile.Collector {
	for _, p := range []*compile.Program{i.program, i.previous} {
		if p != nil && p.ByID(c.ID) == c {
			return p.Effective(c)
		}
	}
	return c.Collector
}
