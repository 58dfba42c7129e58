package beaucoup

import (
	"fmt"
	"os"
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

// pollEvery is how often a live run empties the ring and looks at the file of queries.
const pollEvery = 100_000_000 // ns

type event = bpf.BeaucoupBeaucoupEvent

// heard is an event with what its query was when it was taken out of the ring: identifiers are used again.
type heard struct {
	event
	query     *compile.Compiled
	effective compile.Collector
}

// Alert says that a key passed a query's threshold.
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
	// Least is what 9,999 of 10,000 take at least, if no coupon was lost to ties: with fewer, the alert is false.
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
	held     *held
	program  *compile.Program
	previous *compile.Program // events of queries that are gone are still named
	needs    maps.Need        // of the queries at the start: the parser reads no more
	tables   *compile.Tables
	ring     *maps.Ring
	events   []heard
	epoch    uint64
	shared   func() uint64                    // the epoch that hosts share; nil: every host counts its own
	modified time.Time                        // of the file of queries
	trouble  []string                         // for the next report
	tell     func(format string, args ...any) // for the operator, at once
	changes  uint64
	evicted  uint64  // collectors, since the last window
	looked   int64   // ns, when hopeless collectors were looked for
	most     float64 // collectors that were alive then; below 0 before the first look
	since    uint64  // started, then

	judged bool    // there is an oracle
	last   []Alert // of the last window: the oracle judges them
	leasts map[compile.Collector]float64
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) { return c.instance(env) }

func (c *config) instance(env algo.Env) (*instance, error) {
	if c.rotate && c.export && env.Epoch == nil {
		return nil, c.values.Error("rotate", "exported coupons of different windows cannot be merged, unless a coordinator sets which window it is: choose rotate or export")
	}
	names, err := readNames(c.values, env.Seed)
	if err != nil {
		return nil, err
	}
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	i := &instance{config: c, head: env.Head, seed: env.Seed, names: names, program: p, needs: p.Needs(), tell: env.Notify, shared: env.Epoch}
	if c.file != "" {
		if stat, err := os.Stat(c.file); err == nil {
			i.modified = stat.ModTime()
		}
	}
	return i, nil
}

// program is that of the queries.
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
		constant.BeaucoupKey: key}
	if err := maps.SetConstants(spec, constants); err != nil {
		return err
	}
	for _, name := range []string{"beaucoup_ends", "beaucoup_keys", "beaucoup_vectors"} {
		if err := maps.SetEntries(spec, name, i.entries); err != nil {
			return err
		}
	}
	return maps.SetEntries(spec, "beaucoup_events", uint32(i.config.ring))
}

// Needs implements algo.Instance. All that a query may ask for later is there from the start.
func (i *instance) Needs() maps.Need { return i.needs }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	i.set, i.most = set, -1
	if i.counts, err = set.Array("beaucoup_counts"); err != nil {
		return err
	}
	if i.held, err = newHeld(set); err != nil {
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

// Update exchanges the queries while packets come: those that stay go on with what they have collected.
func (i *instance) Update(queries []compile.Query) error {
	o := i.options
	o.Keep = i.program
	next, err := compile.Compile(queries, o)
	if err != nil {
		return err
	}
	if missing := next.Needs() &^ i.needs; missing != 0 {
		return fmt.Errorf("change queries: %w %s: it was not among the fields at the start, and the parser does not read it; start again",
			compile.ErrField, strings.Join(compile.FieldsOf(missing), ", "))
	}
	if err := i.poll(); err != nil { // what the old queries said
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

// Rests implements algo.Rester. The file of queries is looked at whether packets arrive or not.
func (i *instance) Rests() bool { return i.file == "" }

// Tick implements algo.Controller: it empties the ring and follows the file of queries. A file that cannot be used
// changes nothing; the operator is told at once, and the next report says so.
func (i *instance) Tick(now int64) error {
	if err := i.follow(); err != nil {
		i.tell("beaucoup: the queries stay as they were: %s: %v", i.file, err)
	}
	if now-i.looked >= evictEvery {
		i.looked = now
		crowded, err := i.crowded()
		if err == nil && crowded {
			err = i.evict(now)
		}
		if err != nil {
			return err
		}
	}
	return i.poll()
}

// follow returns what keeps a changed file from being used. What is no regular file is read once, at the start.
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
		i.trouble = append(i.trouble, "the queries stay as they were: "+err.Error())
	}
	return err
}

// poll takes the events out of the ring.
func (i *instance) poll() error {
	return i.ring.Drain(func(b []byte) {
		var e event
		if len(b) >= int(unsafe.Sizeof(e)) {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b)
			if c := i.query(int(e.Query)); c != nil {
				i.events = append(i.events, heard{e, c, i.effective(c)})
			}
		}
	})
}

// Read implements algo.Instance. Hopeless collectors are evicted here, and hashes change where they do.
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
		i.last = e.last
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

// nextEpoch is the one that hosts share, where they do.
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
	if err := i.collected(s); err != nil {
		return nil, err
	}
	if crowded, err := i.crowded(); err != nil {
		return nil, err
	} else if crowded {
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

// alive counts the collectors whose window is not over.
func (i *instance) alive(now int64) (count int, err error) {
	if i.held.end, err = i.held.ends.Read(0, i.held.end); err != nil {
		return 0, err
	}
	if i.held.ends.AtRest(0) {
		i.held.end, i.held.key, i.held.coupons = nil, nil, nil
		return 0, nil
	}
	horizon := i.program.Horizon()
	for _, end := range i.held.end {
		if end != 0 && uint32(end)-ticks32(now) <= horizon {
			count++
		}
	}
	return count, nil
}

// query finds what an event belongs to.
func (i *instance) query(id int) *compile.Compiled {
	if c := i.program.ByID(id); c != nil || i.previous == nil {
		return c
	}
	return i.previous.ByID(id)
}

// least draws of nearly all collectors, from memory if it was asked for before.
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

// effective finds the program that a query belongs to.
func (i *instance) effective(c *compile.Compiled) compile.Collector {
	for _, p := range []*compile.Program{i.program, i.previous} {
		if p != nil && p.ByID(c.ID) == c {
			return p.Effective(c)
		}
	}
	return c.Collector
}
