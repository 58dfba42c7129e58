// Package bench measures what a packet costs: nanoseconds over a mutator that rewrites the packet of a test run each
// time, so that many flows rotate (one hot packet flatters every figure: docs/bench.md).
package bench

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/micro"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Subject is something that is measured.
type Subject struct {
	Name  string
	Group string // heading of the table
	What  string
	// object is the algorithm's name where the subject has another one.
	object string
	// prepare makes the algorithm after the entry program; nil: the chain is empty.
	prepare func() (loader.Object, algo.Instance, error)
	// rest are the algorithms that run after it in the same chain.
	rest []Subject
	// fill writes what userspace writes where no instance does it.
	fill func(set *maps.Set) error
	// bare subjects run without the chain: the program alone.
	bare bool
	// egress subjects run where packets are handed to a queue: TC, not XDP.
	egress bool
	// liveTC subjects are attached to TC where packets arrive.
	liveTC bool
	carry  chain.ChainCarryForm
	// front is a yardstick in the slot before: it leaves in the vector what another hook would.
	front string
	// unproven subjects break the memory rules: that is their point.
	unproven bool
}

// Bare is whether the subject is what others of its hook are measured over.
func (s Subject) Bare() bool { return s.bare }

// The headings, in the order of the table.
const (
	GroupWay        = "the way of a packet"
	GroupYardsticks = "yardsticks, each behind parser and chain"
	GroupAlgorithms = "algorithms, with parser, chain and clock"
	GroupEgress     = "TC, where packets are handed to a queue, over its own empty program"
	GroupNaive      = "what one writes first"
)

// Subjects are everything that is measured, algorithms with their default parameters.
func Subjects() ([]Subject, error) {
	list := []Subject{
		{Name: "empty", Group: GroupWay, What: "a program that passes everything", bare: true},
		{Name: "parser", Group: GroupWay, What: "entry program: parser, counters, hashes of both endpoints"},
		yardstick("nothing", GroupWay, "... and a slot of the chain with an empty algorithm"),
		yardstick("flowhash", GroupYardsticks, "flow hash"),
		yardstick("spread", GroupYardsticks, "flow hash that a packet carries through a queue, and 64 bits of it"),
		yardstick("keyhash", GroupYardsticks, "5-tuple as words, and their hash"),
		yardstick("clock", GroupYardsticks, "clock"),
		waiting(),
		yardstick("coin", GroupYardsticks, "coin"),
		yardstick("carry", GroupYardsticks, "clock, flow hash, and the words that TC egress hands to a queue: what ConQuest costs there"),
		yardstick("one_register", GroupYardsticks, "flow hash, one register of 65,536 x 64 bits"),
		yardstick("two_registers", GroupYardsticks, "flow hash, two registers"),
		yardstick("three_registers", GroupYardsticks, "flow hash, three registers"),
		yardstick("one_tally", GroupYardsticks, "flow hash, one tally of 32,768 x 64 bits"),
	}
	for _, d := range algo.All() {
		s, err := Configured(d.Name, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	more, err := queried()
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	if more, err = reordered(); err != nil {
		return nil, err
	}
	list = append(list, more...)
	if more, err = networked(); err != nil {
		return nil, err
	}
	list = append(list, more...)
	if more, err = queued(); err != nil {
		return nil, err
	}
	list = append(list, more...)
	if more, err = handed(); err != nil {
		return nil, err
	}
	list = append(list, more...)
	if more, err = sliced(); err != nil {
		return nil, err
	}
	list = append(list, more...)
	list = append(list, prefixed()...)
	if more, err = chained(); err != nil {
		return nil, err
	}
	list = append(list, more...)
	return append(list,
		breaking("naive", "hash map of open handshakes, no bound on memory kept"),
		breaking("flow_map", "hash map of flows, packets and bytes: 262,144 entries, room for all"),
		breaking("flow_lru", "LRU hash map of flows, 65,536 entries: the benchmark's flows push each other out"),
		breaking("buckets", "LRU hash map of token buckets, 65,536 users: what limits rates without a sketch")), nil
}

// breaking is what one writes first: it keeps flows in a hash map, which the memory rules do not know.
func breaking(name, what string) Subject {
	s := yardstick(name, GroupNaive, what)
	s.unproven = true
	return s
}

// waiting writes what only an entry program may.
func waiting() Subject {
	s := yardstick("waited", GroupYardsticks, "clock, and what the start of transmission knows of a packet that waited 8 ms: when it was handed over, and its flow hash")
	s.unproven = true
	return s
}

func yardstick(name, group, what string) Subject {
	return Subject{Name: name, Group: group, What: what, prepare: func() (loader.Object, algo.Instance, error) {
		spec, err := micro.Spec(name)
		return loader.Object{Name: name, Spec: spec}, nil, err
	}}
}

// Configured is a registered algorithm with parameters.
func Configured(name string, set map[string]string) (Subject, error) {
	d, err := algo.Lookup(name)
	if err != nil {
		return Subject{}, err
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return Subject{}, err
	}
	return Subject{Name: name, Group: GroupAlgorithms, What: d.Summary, prepare: func() (loader.Object, algo.Instance, error) {
		cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Seed: 1}
		objects, instances, err := session.Objects(cfg, false)
		if err != nil {
			return loader.Object{}, nil, err
		}
		return objects[0], instances[0], nil
	}}, nil
}

// named is an instance with the name of its object.
type named struct {
	algo.Instance
	object string
}

// loaded is a subject in the kernel.
type loaded struct {
	Subject
	inst      *loader.Instance
	instances []named       // what reports, in the order of the chain
	program   *ebpf.Program // nil: the mutator's own
}

func (s Subject) load() (*loaded, error) {
	l := &loaded{Subject: s}
	if s.bare {
		return l, nil
	}
	if err := l.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("load %s: %w", s.Name, err), l.close())
	}
	return l, nil
}

func (l *loaded) build() (err error) {
	var objects []loader.Object
	if l.front != "" {
		spec, err := micro.Spec(l.front)
		if err != nil {
			return err
		}
		objects = append(objects, loader.Object{Name: l.front, Spec: spec})
	}
	for _, s := range append([]Subject{l.Subject}, l.rest...) {
		if s.prepare == nil {
			continue
		}
		o, instance, err := s.prepare()
		if err != nil {
			return err
		}
		objects = append(objects, o)
		if instance != nil {
			l.instances = append(l.instances, named{instance, o.Name})
		}
	}
	if l.inst, err = loader.Load(objects, loader.Options{Seed: 1, Unproven: l.unproven || l.front != ""}); err != nil {
		return err
	}
	if err := l.bind(); err != nil {
		return err
	}
	cfg := loader.EntryConfig{Kind: loader.XDP, IfIndex: 1, Frags: true}
	if l.egress {
		cfg = loader.EntryConfig{Kind: loader.TC, IfIndex: 1, Egress: true, Carry: l.carry}
	}
	if l.liveTC {
		cfg = loader.EntryConfig{Kind: loader.TC, IfIndex: 1}
	}
	l.program, err = l.inst.Entry(cfg)
	return err
}

func (l *loaded) bind() error {
	if l.fill != nil {
		set, err := l.inst.Set(cmp.Or(l.object, l.Name))
		if err != nil {
			return err
		}
		return l.fill(set)
	}
	for _, i := range l.instances {
		set, err := l.inst.Set(i.object)
		if err != nil {
			return err
		}
		if err := i.Bind(set); err != nil {
			return err
		}
	}
	return nil
}

func (l *loaded) close() error {
	var errs []error
	if l.program != nil {
		errs = append(errs, l.program.Close())
	}
	if l.inst != nil {
		errs = append(errs, l.inst.Close())
	}
	return errors.Join(errs...)
}

// aim points a mutator at the subject.
func (l *loaded) aim(m *mutator.Mutator) error {
	if l.egress {
		return m.AimTC(l.program)
	}
	return m.Aim(l.program)
}

// finish ends a window: the packets that the chain counted, and the responses that the algorithm matched (-1 when it
// matches nothing).
func (l *loaded) finish() (seen uint64, matched float64, err error) {
	bank, err := l.inst.Control().Flip()
	if err != nil {
		return 0, -1, err
	}
	counts, err := l.inst.Counts(bank)
	if err != nil {
		return counts.Seen, -1, err
	}
	matched = -1
	for _, i := range l.instances {
		result, err := algo.Window(i, report.Window{Start: 1, End: 2}, bank)
		if err != nil {
			return counts.Seen, -1, err
		}
		matched = max(matched, matches(result.Body))
	}
	return counts.Seen, matched, nil
}

// matches is the number of matched responses in a report that knows responses, else -1.
func matches(b report.Body) float64 {
	found := map[string]uint64{}
	for _, v := range b.Values {
		if n, ok := v.Value.(uint64); ok {
			found[v.Name] = n
		}
	}
	if _, ok := found["responses"]; !ok {
		return -1
	}
	return float64(found["matched"])
}
