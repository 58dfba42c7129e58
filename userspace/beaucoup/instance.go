package beaucoup

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// pollEvery is how often a live run empties the ring and looks at the file of queries.
const pollEvery = 100_000_000 // ns

type event = bpf.BeaucoupBeaucoupEvent

// heard is an event with what its query was when it was taken out of the ring: identifiers are used again.
type heard struct {
	event
	query     *Compiled
	effective Collector
}

// Alert says that a key passed a query's threshold.
type Alert struct {
	Query *Compiled
	Key   words
	Time  int64 // ns, in the clock of the packets
	Age   int64 // ns since the collector's first coupon
	Text  string
	Times int // alerts of this key in the window
	Draws float64
	// Low and High enclose the count in 95 % of all alerts, and Confidence is the probability that it is more than half of the
	// threshold, given how many keys of the query came near it.
	Low, High, Confidence float64
	// Least is what 9,999 of 10,000 take at least, if no coupon was lost to ties: with fewer, the alert is false.
	Least float64
}

// instance is one configured monitor.
type instance struct {
	*config
	set    *maps.Set
	counts *maps.Array
	held   *held

	mu       sync.Mutex // guards what a live run's polling and its windows share
	program  *Program
	previous *Program  // events of queries that are gone are still named
	needs    maps.Need // of the queries at the start: the parser reads no more
	tables   *tables
	ring     *maps.Ring
	events   []heard
	epoch    uint64
	modified time.Time                        // of the file of queries
	trouble  []string                         // for the next report
	tell     func(format string, args ...any) // for the operator, at once
	changes  uint64
	evicted  uint64 // collectors, since the last window
	looked   int64  // ns, when hopeless collectors were looked for

	last   []Alert // of the last window: the oracle judges them
	leasts map[Collector]float64
}

func newInstance(v algo.Values, env algo.Env) (algo.Instance, error) { return configured(v, env) }

func configured(v algo.Values, env algo.Env) (*instance, error) {
	c, err := newConfig(v, env)
	if err != nil {
		return nil, err
	}
	p, err := Compile(c.queries, c.options)
	if err != nil {
		return nil, err
	}
	i := &instance{config: c, program: p, needs: p.needs(), tell: env.Tell}
	if c.file != "" {
		if stat, err := os.Stat(c.file); err == nil {
			i.modified = stat.ModTime()
		}
	}
	return i, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	var multipliers words
	for n := range multipliers {
		multipliers[n] = salt(i.seed, uint64(n), "multiplier") | 1
	}
	key := [2]uint64{salt(i.seed, 0, "key"), salt(i.seed, 1, "key")}
	for name, v := range map[string]any{"beaucoup_multipliers": multipliers, "beaucoup_export": i.export, "beaucoup_dated": i.dated(), "beaucoup_keyed": i.keyed,
		"beaucoup_key": key} {
		if err := maps.SetConstant(spec, name, v); err != nil {
			return err
		}
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
	i.set = set
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
	if i.ring, err = maps.NewRing(events.Map()); err != nil {
		return err
	}
	if i.tables, err = newTables(set); err != nil {
		return err
	}
	return i.tables.install(i.program, i.seed, i.epoch)
}

// Update exchanges the queries while packets come: those that stay go on with what they have collected.
func (i *instance) Update(queries []Query) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.update(queries)
}

func (i *instance) update(queries []Query) error {
	o := i.options
	o.Keep = i.program
	next, err := Compile(queries, o)
	if err != nil {
		return err
	}
	if missing := next.needs() &^ i.needs; missing != 0 {
		return fmt.Errorf("change queries: %w %s: it was not among the fields at the start, and the parser does not read it; start again",
			ErrField, strings.Join(fieldsOf(missing), ", "))
	}
	if err := i.poll(); err != nil { // what the old queries said
		return err
	}
	if err := i.tables.install(next, i.seed, i.epoch); err != nil {
		return err
	}
	i.previous, i.program = i.program, next
	i.changes++
	return nil
}

// IntervalNS implements algo.Controller.
func (i *instance) IntervalNS() int64 { return pollEvery }

// Tick implements algo.Controller: it empties the ring and follows the file of queries. A file that cannot be used
// changes nothing; the operator is told at once, and the next report says so.
func (i *instance) Tick(now int64) error {
	if err := i.follow(); err != nil {
		i.tell("beaucoup: the queries stay as they were: %s: %v", i.file, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if now-i.looked >= evictEvery {
		i.looked = now
		if err := i.evict(now); err != nil {
			return err
		}
	}
	return i.poll()
}

// follow returns what keeps a changed file from being used. What is no regular file is read once, at the start.
func (i *instance) follow() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.file == "" {
		return nil
	}
	stat, err := os.Stat(i.file)
	if err != nil || !stat.Mode().IsRegular() || stat.ModTime().Equal(i.modified) {
		return nil
	}
	i.modified = stat.ModTime()
	queries, err := ReadFile(i.file)
	if err == nil {
		err = i.update(queries)
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

// Window implements algo.Instance.
func (i *instance) Window(w report.Window, bank int) (algo.Result, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n, err := i.counts.ReadReset(bank, nil)
	if err != nil {
		return algo.Result{}, errorf("read window", err)
	}
	if err := i.poll(); err != nil {
		return algo.Result{}, errorf("read window", err)
	}
	alive, err := i.alive(w.End)
	if err != nil {
		return algo.Result{}, errorf("read window", err)
	}
	var vectors []vector
	i.last, vectors = i.take()
	if err := i.judge(i.last); err != nil {
		return algo.Result{}, errorf("read window", err)
	}
	if err := i.evict(w.End); err != nil {
		return algo.Result{}, errorf("read window", err)
	}
	evicted := i.evicted
	body := i.body(n, alive, vectors)
	i.evicted = 0
	if i.rotate {
		i.epoch++
		if err := i.forget(); err != nil {
			return algo.Result{}, err
		}
		if err := i.tables.install(i.program, i.seed, i.epoch); err != nil {
			return algo.Result{}, err
		}
	}
	return algo.Result{Body: body, Used: n[bpf.BeaucoupBeaucoupCounterBEAUCOUP_PACKETS], Lost: lost(n, evicted)}, nil
}

// alive counts the collectors whose window is not over.
func (i *instance) alive(now int64) (count int, err error) {
	if i.held.end, err = i.held.ends.Read(0, i.held.end); err != nil {
		return 0, err
	}
	horizon := i.program.horizon()
	for _, end := range i.held.end {
		if end != 0 && uint32(end)-ticks32(now) <= horizon {
			count++
		}
	}
	return count, nil
}

// query finds what an event belongs to.
func (i *instance) query(id int) *Compiled {
	if c := i.program.byID(id); c != nil || i.previous == nil {
		return c
	}
	return i.previous.byID(id)
}

// vector is the coupons of a collector, as they are exported.
type vector struct {
	query     *Compiled
	effective Collector
	key       words
	coupons   uint64
	start     int64
}

// take turns the events of a window into alerts and exported collectors.
func (i *instance) take() (alerts []Alert, vectors []vector) {
	type name struct {
		query string
		key   words
	}
	at, held := map[name]int{}, map[name]int{}
	for k := range i.events {
		e := &i.events[k]
		c, n := e.query, name{e.query.Text(), e.Key}
		if i.export {
			start := int64(e.Time) - int64(e.Age)
			if h, ok := held[n]; ok && vectors[h].start+int64(c.Window) >= int64(e.Time) {
				vectors[h].coupons |= e.Coupons
			} else {
				held[n] = len(vectors)
				vectors = append(vectors, vector{c, e.effective, e.Key, e.Coupons, start})
			}
		}
		if e.Alert == 0 {
			continue
		}
		if a, ok := at[n]; ok {
			alerts[a].Times++
			continue
		}
		at[n] = len(alerts)
		alerts = append(alerts, i.alert(e))
	}
	i.events = i.events[:0]
	return alerts, vectors
}

func (i *instance) alert(e *heard) Alert {
	c := e.query
	a := Alert{Query: c, Key: e.Key, Time: int64(e.Time), Age: int64(e.Age), Times: 1, Text: c.Key.Name(e.Key, i.names)}
	a.Draws = e.effective.Draws()
	a.Least = i.least(c.Collector)
	return a
}

// least draws of nearly all collectors, from memory if it was asked for before.
func (i *instance) least(drawn Collector) float64 {
	n, known := i.leasts[drawn]
	if !known {
		n = drawn.Quantiles(1e-4)[0]
		if i.leasts == nil {
			i.leasts = map[Collector]float64{}
		}
		i.leasts[drawn] = n
	}
	return n
}

// effective finds the program that a query belongs to.
func (i *instance) effective(c *Compiled) Collector {
	for _, p := range []*Program{i.program, i.previous} {
		if p != nil && p.byID(c.ID) == c {
			return p.Effective(c)
		}
	}
	return c.Collector
}
