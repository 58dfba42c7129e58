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

// transmission is the chain at the start of transmission: one entry program for all interfaces of an instance, since trace points are
// those of the whole host, and a table of the watched interfaces. Its programs are attached while any interface is watched; its counts stay.
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
	// Backlog returns the number of bytes in the queue; nil: unknown.
	Backlog func() (uint64, error)
}

// Port is an interface whose queue is watched. It ends with Release.
type Port struct {
	QueueInterface
	First int // number of its first transmit queue
	inst  *Instance
}

// WatchesQueues reports whether an algorithm needs data from the start of transmission.
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

// checkQueueWatch refuses an algorithm that watches queues where attached entry programs do not write the words that it needs.
func (i *Instance) checkQueueWatch(objects []Object) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.entries) == 0 || i.sent != nil {
		return nil
	}
	for _, o := range objects {
		if o.Needs&xmaps.NeedQueue != 0 {
			return fmt.Errorf("load %s: %w: the attached programs do not write the words for the start of transmission: restart with this algorithm", o.Name, kernel.ErrUnsupported)
		}
	}
	return nil
}

// slotSent is a member's program at the start of transmission. The order is that of the chain; a member without such a program is
// skipped.
func (i *Instance) slotSent(m *member) *ebpf.Program {
	if i.sent == nil {
		return nil
	}
	if p := m.program(ebpf.Tracing); p != nil {
		return p
	}
	return i.sent.coll.Programs["chain_tp_over"]
}

// Watch passes packets that start transmission on an interface to the chain. Afterwards the caller enables carrying in TC egress.
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

// near records whether an interface's element of trace_near has watched interfaces.
func (t *transmission) near(p *Port, any uint8) error {
	return t.coll.Maps["trace_near"].Put(t.place(p), any)
}

// place is the index that near_place of trace.bpf.c calculates.
func (t *transmission) place(p *Port) uint32 {
	key := p.key()
	return (uint32(key.Netns)*31 + key.Ifindex) % t.coll.Maps["trace_near"].MaxEntries()
}

// free is the lowest number from which the given count of numbers is unused.
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
	i.progress("the start of transmission", len(i.loaded), len(i.loaded))
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: i.replacements(sentName, spec)})
	if err != nil {
		return Explain(sentName, err)
	}
	i.sent = &transmission{coll: coll, set: xmaps.NewSet(spec, coll.Maps)}
	return nil
}

// endSent detaches the programs from the trace points when no interface is watched any more.
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

// QueueCounts count the packets handed to watched queues by their fate. Packets are segments on the wire, unless stated otherwise.
type QueueCounts struct {
	Carried, CarriedBytes uint64 // handed to the queue with the words that TC egress wrote
	Sent, SentBytes       uint64 // began to be transmitted with their words
	Dropped, DroppedBytes uint64 // freed instead
	Queued                uint64 // still in the queue at the end
	Missed                uint64 // of all so far: neither sent, dropped nor queued
	Bare                  uint64 // transmitted skbs that did not pass TC egress
	Foreign               uint64 // ... whose words another program has overwritten
	Stale                 uint64 // ... whose words are too old
	Unparsed              uint64 // ... with their words but with unreadable headers
}

// add puts the counters of the start of transmission into the counts of a window.
func (q *QueueCounts) add(c []uint64) {
	q.Sent, q.SentBytes = c[trace.TraceTraceCountTRACE_SENT], c[trace.TraceTraceCountTRACE_SENT_BYTES]
	q.Dropped, q.DroppedBytes = c[trace.TraceTraceCountTRACE_DROPPED], c[trace.TraceTraceCountTRACE_DROPPED_BYTES]
	q.Bare, q.Foreign, q.Stale = c[trace.TraceTraceCountTRACE_BARE], c[trace.TraceTraceCountTRACE_FOREIGN], c[trace.TraceTraceCountTRACE_STALE]
	q.Unparsed = c[trace.TraceTraceCountTRACE_UNPARSED]
}

// plus returns q + sign * w; Queued and Missed, which are not sums, stay those of q.
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

// settle splits the packets that were handed over in all windows, and neither sent nor dropped, into missed and queued ones. backlog is the
// queue's length in bytes when it was read, and later the counts between the window's end and that moment. Queues report bytes (a packet of
// theirs may be an aggregate), so packets are split in proportion to bytes: exact where nothing is queued or nothing was missed.
func (q *QueueCounts) settle(all, later QueueCounts, backlog uint64) {
	under, _ := all.under()
	if under <= 0 { // the queue duplicated packets, or packets arrived while the counters were read
		return
	}
	if packets, bytes := all.plus(later, 1).under(); packets > 0 && bytes > 0 {
		lost := max(0, bytes-int64(backlog))
		q.Missed = min(uint64(under), uint64(float64(packets)*float64(lost)/float64(bytes)+0.5))
	}
	q.Queued = uint64(under) - q.Missed
}

// under is what was handed over and neither sent nor dropped.
func (q QueueCounts) under() (packets, bytes int64) {
	return int64(q.Carried - q.Sent - q.Dropped), int64(q.CarriedBytes - q.SentBytes - q.DroppedBytes)
}

// queueCounts are the counts of a window; nil where no queue is watched. since counts the packets handed over after the window's end; nil:
// the window is still open. Readings are in this order: handed over, backlog, sent; so a packet that leaves between them does not count as missed.
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

// backlog is the number of bytes in the watched queues, and in released ones at their release.
func (t *transmission) backlog() uint64 {
	bytes := t.left
	for _, p := range t.ports {
		bytes += p.backlog()
	}
	return bytes
}

// backlog is the number of bytes in the queue; 0 where it cannot be read any more, since an interface is removed with its queue.
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

// closeQueueWindow adds a window's counts to the totals.
func (i *Instance) closeQueueWindow(q *QueueCounts) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sent != nil && q != nil {
		i.sent.total = i.sent.total.plus(*q, 1)
	}
}

// Release ends the watching: packets that are still queued are not seen when they leave. Releasing a removed interface is no error.
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

// Alive reports whether the interface is still watched: another command may have ended it.
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
