package twins

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// pair is a twin beside its bytecode.
type pair struct {
	twin             *twin.Twin
	form             twin.Form
	host             *host
	sw               *run.Switch
	result           run.Result
	decoder          packet.Decoder
	met              map[string]int // differences, by name
	packets, windows int
	now              int64
	reasons          map[string]uint64           // of this window
	packetIs         []func(*packet.Packet) bool // by difference
	tape             *tape                       // records, when there is one
	every            int                         // packets of a window; 0: one window
	sent             [][]uint64                  // to the control plane, in this window
	clones           uint64                      // ... made in it
	reports          int                         // of the host, in all
	queue            func(f *packet.Frame) run.Queue
	pokes            map[string][]poke // elements that a driver writes, which the host has not got yet
	records          [][]byte          // of the host's ring, of this window, of a twin with headers
	values           algo.Values
	plane            plane
	states           map[string]bool                           // whether its parser has a state; absent: not known yet
	before           map[string][]uint64                       // what the twin remembers of the host; nil: to be read
	fields           map[string]bool                           // of digests: whether their content affects the comparison; nil: not known yet
	layout           func(register string, word uint64) uint64 // of the twin, from the host's; nil: the same
}

func openPair(t *twin.Twin, form twin.Form, target run.Target, fill filling) (*pair, error) {
	h, err := openHost(t, form, coins)
	if err != nil {
		return nil, err
	}
	p := &pair{twin: t, form: form, host: h, met: map[string]int{}, reasons: map[string]uint64{}, fields: map[string]bool{}, states: map[string]bool{}}
	p.layout = t.Host
	if p.values, err = t.Values(form); err == nil && t.HostOf != nil {
		p.layout, err = t.HostOf(p.values)
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	for _, d := range t.Differences {
		is := d.Packet
		if d.Follow != nil {
			is = d.Follow()
		}
		p.packetIs = append(p.packetIs, is)
	}
	if t.Queue != nil {
		p.queue = t.Queue()
	}
	if p.sw, p.plane, err = fill(p, target); err == nil {
		err = errors.Join(p.begin(0), p.begin(1), p.start())
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return p, nil
}

// filling makes a switch that measures, and what ends its windows.
type filling func(p *pair, target run.Target) (*run.Switch, plane, error)

// byHandOf fills a switch according to the twin's folder.
func byHandOf(p *pair, target run.Target) (*run.Switch, plane, error) {
	sw, err := build(p.twin, p.form, target)
	if err != nil {
		return nil, nil, err
	}
	return sw, byHand{p}, errors.Join(forward(sw), p.host.coordinate(sw), p.twin.SetBank(sw, 0))
}

// byPlan fills it by its plan.
func byPlan(p *pair, target run.Target) (*run.Switch, plane, error) { return planned(p, target, nil) }

// clockTurn is a period of every clock of a twin: of 32 bits of 2^10 ns, and of shorter ones.
const clockTurn = int64(1) << 42

// feed runs a stream through both, a window every so many packets, and one that ends with it.
func (p *pair) feed(source capture.Source, every int) error {
	p.every = every
	if err := p.frames(source, func(f *packet.Frame) int64 { return f.Time }); err != nil {
		return err
	}
	return p.window()
}

// apart is a clock for captures: each starts some minutes after the one before, and none jumps by more than that, since some have
// no clock and write what they find.
func (p *pair) apart() func(f *packet.Frame) int64 {
	const most = 301_234_567_891
	shift, first := int64(0), true
	return func(f *packet.Frame) int64 {
		if first || f.Time+shift > p.now+most {
			shift, first = p.now+most-f.Time, false
		}
		return f.Time + shift
	}
}

// frames of a stream, by a clock.
func (p *pair) frames(source capture.Source, clock func(f *packet.Frame) int64) error {
	var f packet.Frame
	for n := 1; ; n++ {
		switch err := source.Next(&f); {
		case errors.Is(err, io.EOF), errors.Is(err, capture.ErrTruncated), errors.Is(err, capture.ErrFormat):
			return nil
		case err != nil:
			return err
		}
		if f.Link != packet.LinkEthernet {
			continue // a switch has no other ports
		}
		f.Time = max(clock(&f), p.now) // a switch's clock does not decrease, those of merged captures do
		if err := p.turns(f.Time); err != nil {
			return err
		}
		if err := p.packet(&f); err != nil {
			return fmt.Errorf("packet %d (%x): %w", n, f.Data[:min(len(f.Data), 80)], err)
		}
		if p.every > 0 && n%p.every == 0 {
			if err := p.window(); err != nil {
				return fmt.Errorf("window that ends with packet %d: %w", n, err)
			}
		}
	}
}

// forget clears a register of the twin.
func forget(sw *run.Switch, register string, as uint64) {
	if as == 0 {
		twin.Reset(sw, register, 0, twin.Entries(sw, register))
		return
	}
	for i := range twin.Entries(sw, register) {
		twin.SetElement(sw, register, i, as)
	}
}

// turns clears what is invalid after a wrap of the twin's clock.
func (p *pair) turns(now int64) error {
	before := p.now
	p.now = now
	for _, d := range p.twin.Differences {
		if d.Turn == nil || before/d.Turn.Every == now/d.Turn.Every {
			continue
		}
		if err := p.host.feed.Flush(); err != nil {
			return err
		}
		for _, register := range d.Turn.Registers {
			if twin.Entries(p.sw, register) == 0 {
				continue
			}
			if err := p.forget(d, register); err != nil {
				return err
			}
			if p.tape != nil {
				p.tape.steps = append(p.tape.steps, step{forget: register, as: d.Turn.As})
			}
		}
	}
	return nil
}

// forget the twin's content; what only the host has is found at the window's end.
func (p *pair) forget(d twin.Difference, register string) error {
	p.before = nil
	var keys []uint32
	for i, v := range twin.Elements(p.sw, register) {
		if v != 0 {
			keys = append(keys, uint32(i))
		}
	}
	forget(p.sw, register, d.Turn.As)
	if len(keys) == 0 {
		return nil
	}
	p.met[d.Name] += len(keys)
	a, err := p.host.set.Array(register)
	if err != nil {
		return err
	}
	return p.host.put(a, keys, make([]uint64, len(keys)))
}

func (p *pair) packet(f *packet.Frame) error {
	p.packets++
	in := arrival{}
	if p.queue != nil {
		in.queue = p.queue(f)
	}
	side, name := p.whose(f)
	var flip func() uint32
	seen := twin.Seen{Given: side == both}
	if side == both || side == hostOnly {
		var err error
		if seen.Before, err = p.remembered(); err != nil {
			return err
		}
		if flip, seen.PHV, err = p.host.give(f, p.twin.Enforces || len(p.twin.Emits) > 0); err != nil {
			return err
		}
		in.verdict = seen.PHV.Verdict
		if seen.PHV.Pass != 0 {
			p.before = nil
		}
	}
	in.data, in.time, in.side, in.coin = f.Data, uint64(max(f.Time-int64(in.queue.Wait), 1)), side, p.host.coin
	if err := p.wanted(&in, f, &seen); err != nil {
		return err
	}
	if name != "" {
		p.met[name]++
	}
	if side == hostOnly || side == neither {
		return nil
	}
	p.reasons[walk(f.Data).reason(p.reads("udp"), p.reads("dns"))]++
	if p.tape != nil {
		p.tape.packet(in)
	}
	return p.process(in, flip)
}

// arrival is a packet of the twin, with the host's expected result.
type arrival struct {
	data    []byte
	time    uint64
	queue   run.Queue
	side    side
	coin    uint32
	verdict uint8
	wanted  []twin.Fields // of headers
}

// Verdicts of bpf/include/verdict.h.
const (
	verdictMark = 1
	verdictDrop = 2
)

// port of a packet: of all four pipes. What is not a frame arrives at the first one.
func port(now uint64, data []byte) uint16 {
	if len(data) < 14 {
		return uint16(portOf(0))
	}
	return uint16(portOf(now >> 4 & 3))
}

// reads reports whether this twin's parser has a state.
func (p *pair) reads(state string) bool {
	is, ok := p.states[state]
	if !ok {
		is = slices.ContainsFunc(p.sw.Spots, func(s *run.Spot) bool { return s.Name == "state "+state })
		p.states[state] = is
	}
	return is
}

// process sends a packet to the twin.
func (p *pair) process(a arrival, flip func() uint32) error {
	if p.twin.Coins != nil && flip != nil {
		p.sw.Coins = p.twin.Coins(flip)
	}
	in := port(a.time, a.data)
	if err := p.sw.Process(run.Packet{Data: a.data, Port: in, Time: a.time, Queue: a.queue}, &p.result); err != nil {
		return err
	}
	if p.twin.Reports != nil {
		p.sent = append(p.sent, p.twin.Reports.Twin(&p.result, a.time)...)
		p.decide(a.time)
	}
	if a.side == twinOnly && p.result.Touched > 0 {
		return fmt.Errorf("the twin touches %d registers for a packet that it does not measure", p.result.Touched)
	}
	if err := p.twin.CompareHeaders(a.wanted, &p.result); err != nil {
		return err
	}
	return p.verdict(a, in)
}

// Ports that the test's table of p4/include/forward.p4 sends to: everything from one pipe, and odd addresses from
// another one. Everything else is dropped, as on a tap.
const (
	forwarded, odd       = 5, 6
	allOfPipe, oddOfPipe = 1, 2
)

func portOf(pipe uint64) uint64 { return 1 + 128*pipe }

func forward(sw *run.Switch) error {
	table := sw.Table("forward.forward")
	if table == nil {
		return errors.New("there is no table forward.forward")
	}
	return forwardBy(table)
}

func forwardBy(table *run.Table) error {
	return errors.Join(
		table.Add([]run.Match{{Value: portOf(allOfPipe), Mask: 1<<9 - 1}, {}}, "send", forwarded),
		table.Add([]run.Match{{Value: portOf(oddOfPipe), Mask: 1<<9 - 1}, {Value: 1, Mask: 1}}, "send", odd))
}

// egress is the destination of a packet from a port; ok: there is an entry for it.
func egress(in uint16, data []byte) (to uint16, ok bool) {
	switch {
	case in == uint16(portOf(allOfPipe)):
		return forwarded, true
	case in == uint16(portOf(oddOfPipe)) && data[5]&1 == 1:
		return odd, true
	}
	return 0, false
}

// verdict: the packet leaves unchanged, to the table's port, except for the host's changes; its clones return to its
// own pipe.
func (p *pair) verdict(a arrival, in uint16) error {
	r, data := &p.result, a.data
	if a.verdict == verdictMark {
		data = marked(data)
	}
	to, ok := egress(in, data)
	dropped := a.verdict == verdictDrop || !ok
	if a.verdict != verdictDrop && !bytes.Equal(r.Data, data) {
		return fmt.Errorf("the packet leaves the switch as %x, want %x", r.Data, data)
	}
	if r.Dropped != dropped || !dropped && r.Port != to {
		return fmt.Errorf("the packet of port %d went to port %d (dropped: %v), want %d (%v)", in, r.Port, r.Dropped, to, dropped)
	}
	p.clones += uint64(len(r.Cloned))
	for _, session := range r.Cloned {
		if session != uint64(in)>>7+1 {
			return fmt.Errorf("a clone of port %d went to session %d", in, session)
		}
	}
	if r.Lost > 0 || r.ToCPU && p.twin.Reports == nil {
		return fmt.Errorf("%d clones were lost; copied to the CPU: %v", r.Lost, r.ToCPU)
	}
	return nil
}

// window compares all words and ends the window on both sides.
func (p *pair) window() error {
	p.windows++
	if err := p.check(true); err != nil {
		return err
	}
	bank, err := p.host.end()
	if err != nil {
		return err
	}
	return errors.Join(p.begin(bank), p.turn(bank))
}

// check compares all words, at a window's end or on the way.
func (p *pair) check(ends bool) error {
	if err := p.host.feed.Flush(); err != nil {
		return err
	}
	words := map[string][]uint64{}
	for _, name := range twin.Names(p.sw) {
		host, err := p.host.words(name)
		if err != nil {
			return err
		}
		words[name] = p.laidOut(name, host)
	}
	counts, err := p.counters()
	if err != nil {
		return err
	}
	records, err := p.recorded()
	if err != nil {
		return err
	}
	if p.tape != nil {
		p.tape.steps = append(p.tape.steps, step{words: words, counts: counts, sent: records, ends: ends})
	}
	return errors.Join(p.compare(words), p.compareCounts(counts), p.compareRecords(records))
}

// counters of the host, in the order of the twin's list, and what the reasons have to be.
func (p *pair) counters() ([]uint64, error) {
	counts := make([]uint64, len(p.twin.Counts))
	bank := p.host.loaded.Control().Bank()
	for i, c := range p.twin.Counts {
		a, err := p.host.set.Array(c.Host)
		if err != nil {
			return nil, err
		}
		words, err := a.Read(bank, nil)
		if err != nil {
			return nil, err
		}
		counts[i] = words[c.Index]
	}
	for _, reason := range reasons {
		counts = append(counts, p.reasons[reason])
	}
	return counts, nil
}

// reasonTable is the table of p4/include/reasons.p4.
const reasonTable = "reasons.reason"

func (p *pair) compareCounts(counts []uint64) error {
	for i, c := range p.twin.Counts {
		n := p.clones
		if c.Table != "" {
			n = twin.Counted(p.sw, c.Table, c.Actions)
		}
		if n > counts[i] || (counts[i]-n)*1000 > uint64(c.Short*max(p.packets, 1000)) {
			return fmt.Errorf("%s of table %s: %d in the twin, %d on the host", strings.Join(c.Actions, " + "), c.Table, n, counts[i])
		}
	}
	for i, reason := range reasons {
		if n, want := twin.Counted(p.sw, reasonTable, []string{reason}), counts[len(p.twin.Counts)+i]; n != want {
			return fmt.Errorf("%s: %d packets in the twin, by their bytes %d", reason, n, want)
		}
	}
	return nil
}

// compareRecords of a window, which starts without any.
func (p *pair) compareRecords(host [][]uint64) error {
	mine := p.sent
	p.sent, p.reports = nil, p.reports+len(host)
	if slices.EqualFunc(host, mine, slices.Equal) {
		return nil
	}
	for _, d := range p.twin.Differences {
		if d.Records == nil {
			continue
		}
		if n := d.Records(host, mine); n >= 0 {
			p.met[d.Name] += n
			return nil
		}
	}
	at := 0
	for at < min(len(host), len(mine)) && slices.Equal(host[at], mine[at]) {
		at++
	}
	return fmt.Errorf("%d reports of the twin, %d of the host; from number %d on %x in the twin, %x on the host", len(mine), len(host), at,
		mine[at:min(len(mine), at+3)], host[at:min(len(host), at+3)])
}

// laidOut is the expected content in the twin's layout.
func (p *pair) laidOut(register string, host []uint64) []uint64 {
	if p.layout != nil {
		for i, v := range host {
			host[i] = p.layout(register, v)
		}
	}
	return host
}

// plane is what ends windows on the switch.
type plane interface {
	Clear(closed int) error // sets back what accumulated
	SetBank(bank int) error
}

// byHand is a control plane specific to the twin.
type byHand struct{ *pair }

// SetBank implements plane.
func (p byHand) SetBank(bank int) error { return p.twin.SetBank(p.sw, bank) }

// Clear implements plane.
func (p byHand) Clear(closed int) error {
	twin.Uncount(p.sw)
	for _, r := range p.sw.Arrays() {
		ms := maps.MapOf(p.host.spec, r.Name)
		if ms != nil && slices.Contains(ms.Tags, maps.TagBanked) {
			n := twin.Entries(p.sw, r.Name) / 2
			twin.Reset(p.sw, r.Name, closed*n, (closed+1)*n)
		}
	}
	return nil
}

// turn resets the closed bank of the twin, and lets packets count into the other one.
func (p *pair) turn(closed int) error {
	p.clones = 0
	clear(p.reasons)
	return errors.Join(p.plane.Clear(closed), p.plane.SetBank(closed^1))
}

// begin sets the host's arrays to the twin's initial values, if those are not zeros.
func (p *pair) begin(bank int) error {
	for _, r := range p.sw.Arrays() {
		first := twin.First(r)
		if first == 0 {
			continue
		}
		a, err := p.host.set.Array(r.Name)
		if err != nil {
			return err
		}
		if bank >= a.Banks || a.Banks == 1 && p.windows > 0 { // registers without banks continue
			continue
		}
		p.met[beginnings] += a.Entries
		if err := a.Write(bank, slices.Repeat([]uint64{first}, a.Entries)); err != nil {
			return err
		}
	}
	return nil
}

// start writes the initial values of the test.
func (p *pair) start() error {
	for name, v := range p.twin.Fixed {
		if err := p.host.fill(name, v); err != nil {
			return err
		}
	}
	if p.twin.Start == nil {
		return nil
	}
	for _, name := range twin.Names(p.sw) {
		if err := p.startWith(name); err != nil {
			return err
		}
	}
	return nil
}

func (p *pair) startWith(name string) error {
	var words []uint64
	for i := range twin.Entries(p.sw, name) {
		v := p.twin.Start(name, i)
		if v == 0 {
			continue
		}
		if words == nil {
			var err error
			if words, err = p.host.words(name); err != nil {
				return err
			}
		}
		twin.SetElement(p.sw, name, i, v)
		words[i] = v
	}
	if words == nil {
		return nil
	}
	return p.host.write(name, 0, words...)
}

// beginnings is the known difference of initial values, which the test removes to find all others.
const beginnings = "an empty record's first value"

// compare the twin with a host's words.
func (p *pair) compare(words map[string][]uint64) error {
	for _, name := range twin.Names(p.sw) {
		host, mine := words[name], twin.Elements(p.sw, name)
		if len(mine) != len(host) {
			return fmt.Errorf("register %s: %d elements in the twin, %d on the host", name, len(mine), len(host))
		}
		if p.twin.Same != nil {
			for i, v := range mine {
				mine[i] = p.twin.Same(name, v)
			}
		}
		if !slices.Equal(host, mine) && !p.allowed(name, host, mine) {
			return errors.New(complaint(name, host, mine))
		}
	}
	return nil
}

const mostComplaints = 8

func complaint(name string, host, mine []uint64) string {
	var lines []string
	for i := range mine {
		if host[i] != mine[i] && len(lines) < mostComplaints {
			lines = append(lines, fmt.Sprintf("%s[%d]: %#x on the host, %#x in the twin", name, i, host[i], mine[i]))
		}
	}
	return strings.Join(lines, "; ")
}

func (p *pair) allowed(register string, host, mine []uint64) bool {
	for _, d := range p.twin.Differences {
		if d.Words == nil {
			continue
		}
		if n := d.Words(register, host, mine); n >= 0 {
			p.met[d.Name] += n
			return true
		}
	}
	return false
}
