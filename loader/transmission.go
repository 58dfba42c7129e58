package loader

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/bpf/trace"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// sentName is the name of the programs at the start of transmission among the algorithms.
const sentName = "trace"

// transmission is the chain at the start of transmission: one entry program for all interfaces of an instance, since trace points are the
// whole host's, and a table of those that are watched. Its programs are on trace points while any is; its counts stay.
type transmission struct {
	coll  *ebpf.Collection
	set   *xmaps.Set
	links []link.Link
	ports []*Port
	total QueueCounts // of the windows that were read
	left  uint64      // bytes that queues held when their interfaces were released
}

// QueueInterface is an interface whose queue is to be watched.
type QueueInterface struct {
	Netns   uint64 // cookie of its network namespace
	IfIndex int
	Queues  int // transmit queues
	L3Only  bool
	Form    chain.ChainCarryForm
	// Backlog tells how many bytes are in the queue; nil: nobody knows.
	Backlog func() (uint64, error)
}

// Port is an interface whose queue is watched. It ends with Release.
type Port struct {
	QueueInterface
	First int // number of its first transmit queue
	inst  *Instance
}

// WatchesQueues reports whether an algorithm asks for what the start of transmission knows.
func (i *Instance) WatchesQueues() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return needsOf(i.loaded)&xmaps.NeedQueue != 0
}

func needsOf(members []*member) (needs xmaps.Need) {
	for _, m := range members {
		needs |= m.object.Needs
	}
	return needs
}

// comesTooLate refuses an algorithm that watches queues where programs are on interfaces already and carry nothing.
func (i *Instance) comesTooLate(objects []Object) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.entries) == 0 || i.sent != nil {
		return nil
	}
	for _, o := range objects {
		if o.Needs&xmaps.NeedQueue != 0 {
			return fmt.Errorf("load %s: %w: packets carry nothing for the start of transmission yet: start again with this algorithm", o.Name, kernel.ErrUnsupported)
		}
	}
	return nil
}

// slotSent is what runs in a member's place at the start of transmission: the order is that of the chain, and a member without a program
// there is passed over.
func (i *Instance) slotSent(m *member) *ebpf.Program {
	if i.sent == nil {
		return nil
	}
	if p := m.program(ebpf.Tracing); p != nil {
		return p
	}
	return i.sent.coll.Programs["chain_tp_over"]
}

// Watch begins to hand packets that start on their way from an interface to the chain. The caller lets TC egress carry afterwards.
func (i *Instance) Watch(q QueueInterface) (*Port, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.startSent(); err != nil {
		return nil, fmt.Errorf("watch the start of transmission: %w", err)
	}
	p := &Port{QueueInterface: q, First: i.sent.free(q.Queues), inst: i}
	value := trace.TraceTraceInterface{Queue: uint16(p.First), Form: uint8(q.Form)}
	if q.L3Only {
		value.L3Only = 1
	}
	err := i.sent.near(p, 1)
	if err == nil {
		err = i.sent.coll.Maps["trace_watched"].Update(p.key(), value, ebpf.UpdateNoExist)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch the start of transmission: %w", privilege.Explain(err)), i.endSent())
	}
	i.sent.ports = append(i.sent.ports, p)
	return p, nil
}

// near says that an interface's place in trace_near has watched interfaces, or none any more.
func (t *transmission) near(p *Port, any uint8) error {
	return t.coll.Maps["trace_near"].Put(t.place(p), any)
}

// place is near_place of trace.bpf.c.
func (t *transmission) place(p *Port) uint32 {
	key := p.key()
	return (uint32(key.Netns)*31 + key.Ifindex) % t.coll.Maps["trace_near"].MaxEntries()
}

// free is the first number from which on so many transmit queues have none yet.
func (t *transmission) free(queues int) int {
	first := 0
	for again := true; again; {
		again = false
		for _, p := range t.ports {
			if first < p.First+p.Queues && p.First < first+queues {
				first, again = p.First+p.Queues, true
			}
		}
	}
	return first
}

func (i *Instance) startSent() error {
	if i.sent == nil {
		if err := i.loadSent(); err != nil {
			return err
		}
	}
	if err := i.serve(Sent); err != nil || len(i.sent.links) > 0 {
		return err
	}
	for _, name := range []string{"chain_tp_entry", "chain_tp_dropped"} {
		l, err := link.AttachTracing(link.TracingOptions{Program: i.sent.coll.Programs[name]})
		if err != nil {
			return errors.Join(fmt.Errorf("attach %s: %w", name, privilege.Explain(err)), i.endSent())
		}
		i.sent.links = append(i.sent.links, l)
	}
	return nil
}

func (i *Instance) loadSent() error {
	err := kernel.HaveSent()
	if errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("%w: programs at the trace point net_dev_start_xmit need a kernel with BPF type information (CONFIG_DEBUG_INFO_BTF) and "+
			"CONFIG_BPF_EVENTS", kernel.ErrUnsupported)
	}
	if err != nil {
		return privilege.Explain(err)
	}
	spec, err := trace.LoadTrace()
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	if err := i.interrupted(sentName); err != nil {
		return err
	}
	if err := errors.Join(i.setCommon(spec), i.specialize(spec)); err != nil {
		return err
	}
	if err := prove(sentName, spec, i.opts.Proven); err != nil {
		return err
	}
	i.tell("the start of transmission", len(i.loaded), len(i.loaded))
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: i.replacements(sentName, spec)})
	if err != nil {
		return explain(sentName, err)
	}
	i.sent = &transmission{coll: coll, set: xmaps.NewSet(spec, coll.Maps)}
	return nil
}

// endSent takes the programs off the trace points when no interface is watched any more.
func (i *Instance) endSent() error {
	if i.sent == nil || len(i.sent.ports) > 0 {
		return nil
	}
	return i.sent.unlink()
}

func (t *transmission) unlink() error {
	var errs []error
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	t.links = nil
	return errors.Join(errs...)
}

func (t *transmission) close() error {
	if t == nil {
		return nil
	}
	err := t.unlink()
	t.coll.Close()
	return err
}

// QueueCounts are what became of the packets that were handed to watched queues. Packets are segments on the wire, unless something else is
// said.
type QueueCounts struct {
	Carried, CarriedBytes uint64 // handed to the queue, with the words that TC egress wrote
	Sent, SentBytes       uint64 // began to be transmitted with their words
	Dropped, DroppedBytes uint64 // freed instead
	Queued                uint64 // still in the queue at the end
	Missed                uint64 // of all so far: in none of these places
	Bare                  uint64 // transmitted skbs that did not pass TC egress
	Foreign               uint64 // ... whose words somebody else has written over
	Stale                 uint64 // ... whose words are too old
	Unparsed              uint64 // ... with their words, whose headers could not be read
}

// add puts the counters of the start of transmission into the counts of a window.
func (q *QueueCounts) add(c []uint64) {
	q.Sent, q.SentBytes = c[trace.TraceTraceCountTRACE_SENT], c[trace.TraceTraceCountTRACE_SENT_BYTES]
	q.Dropped, q.DroppedBytes = c[trace.TraceTraceCountTRACE_DROPPED], c[trace.TraceTraceCountTRACE_DROPPED_BYTES]
	q.Bare, q.Foreign, q.Stale = c[trace.TraceTraceCountTRACE_BARE], c[trace.TraceTraceCountTRACE_FOREIGN], c[trace.TraceTraceCountTRACE_STALE]
	q.Unparsed = c[trace.TraceTraceCountTRACE_UNPARSED]
}

// plus is q with sign times what is in w; Queued and Missed, which are no sums, stay those of q.
func (q QueueCounts) plus(w QueueCounts, sign uint64) QueueCounts {
	for _, f := range []struct{ to, from *uint64 }{
		{&q.Carried, &w.Carried}, {&q.CarriedBytes, &w.CarriedBytes}, {&q.Sent, &w.Sent}, {&q.SentBytes, &w.SentBytes},
		{&q.Dropped, &w.Dropped}, {&q.DroppedBytes, &w.DroppedBytes}, {&q.Bare, &w.Bare}, {&q.Foreign, &w.Foreign}, {&q.Stale, &w.Stale},
		{&q.Unparsed, &w.Unparsed},
	} {
		*f.to += sign * *f.from
	}
	return q
}

// settle splits what was handed over until now, in all windows, and neither left nor was dropped into what was missed and what the queue still held. later is
// what has been counted since, when the queue was found to hold so much. Queues tell bytes (what they count as a packet may be an aggregate), so packets are split
// as bytes are: exactly where nothing is queued, or nothing missed.
func (q *QueueCounts) settle(all, later QueueCounts, backlog uint64) {
	under, _ := all.under()
	if under <= 0 { // what the queue has doubled, or an account that was read while packets went by
		return
	}
	if packets, bytes := all.plus(later, 1).under(); packets > 0 && bytes > 0 {
		gone := max(0, bytes-int64(backlog))
		q.Missed = min(uint64(under), uint64(float64(packets)*float64(gone)/float64(bytes)+0.5))
	}
	q.Queued = uint64(under) - q.Missed
}

// under way: handed over, and neither sent nor dropped.
func (q QueueCounts) under() (packets, bytes int64) {
	return int64(q.Carried - q.Sent - q.Dropped), int64(q.CarriedBytes - q.SentBytes - q.DroppedBytes)
}

// queueCounts are those of a window; nil where no queue is watched. since tells what was handed over since the window ended; nil: it goes on. What is in the
// queues is asked between that and what has left since then: packets that go by meanwhile are not missed.
func (i *Instance) queueCounts(handed QueueCounts, read func(*xmaps.Array) ([]uint64, error), since func() (QueueCounts, error)) (*QueueCounts, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sent == nil {
		return nil, nil
	}
	array, err := i.sent.set.Array("trace_counters")
	if err != nil {
		return nil, err
	}
	c, err := read(array)
	if err != nil {
		return nil, fmt.Errorf("read counts of the start of transmission: %w", err)
	}
	handed.add(c)
	all, later := i.sent.total.plus(handed, 1), QueueCounts{}
	if since != nil {
		if later, err = since(); err != nil {
			return nil, err
		}
	}
	backlog := i.sent.backlog()
	if since != nil {
		if c, err = array.Read(i.control.Bank(), nil); err != nil {
			return nil, fmt.Errorf("read counts of the start of transmission: %w", err)
		}
		later.add(c)
	}
	handed.settle(all, later, backlog)
	return &handed, nil
}

// backlog is what the watched queues hold, and held when their watching ended.
func (t *transmission) backlog() uint64 {
	bytes := t.left
	for _, p := range t.ports {
		bytes += p.backlog()
	}
	return bytes
}

// backlog of a queue. One that cannot be asked any more has gone, with what it held.
func (p *Port) backlog() uint64 {
	if p.Backlog == nil {
		return 0
	}
	bytes, err := p.Backlog()
	if err != nil {
		return 0
	}
	return bytes
}

// closeQueueWindow remembers what was read of a window.
func (i *Instance) closeQueueWindow(q *QueueCounts) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sent != nil && q != nil {
		i.sent.total = i.sent.total.plus(*q, 1)
	}
}

// Release ends the watching: packets that are still queued are not seen when they leave. Releasing what is gone already is no error.
func (p *Port) Release() error {
	i := p.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sent == nil || !slices.Contains(i.sent.ports, p) {
		return nil
	}
	i.sent.ports = slices.DeleteFunc(i.sent.ports, func(o *Port) bool { return o == p })
	i.sent.left += p.backlog()
	err := i.sent.coll.Maps["trace_watched"].Delete(p.key())
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	if !slices.ContainsFunc(i.sent.ports, func(o *Port) bool { return i.sent.place(o) == i.sent.place(p) }) {
		err = errors.Join(err, i.sent.near(p, 0))
	}
	return errors.Join(err, i.endSent())
}

// Alive reports whether the interface is watched: another command may have ended it.
func (p *Port) Alive() bool {
	p.inst.mu.Lock()
	defer p.inst.mu.Unlock()
	if p.inst.sent == nil {
		return false
	}
	var v trace.TraceTraceInterface
	return p.inst.sent.coll.Maps["trace_watched"].Lookup(p.key(), &v) == nil
}

func (p *Port) key() trace.TraceTraceKey {
	return trace.TraceTraceKey{Netns: p.Netns, Ifindex: uint32(p.IfIndex)}
}
