package run

import (
	"encoding/binary"
	"fmt"
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"slices"
)

// Switch runs a program. It is not safe for concurrent use.
type Switch struct {
	*lang.Builder
	Registers []*Register
	Counters  []*Counter
	Meters    []*Meter
	Params    []*Param
	Filters   []*Lpf
	Controls  []string // used by the program, including parsers
	Wraps     []*Wrap
	Coins     func(random string, width int) uint64 // draws of Random externs; 0 until it is set
	Sessions  map[uint64]Session                    // of mirrors, by number: created by the control plane
	Loops     map[uint16]bool                       // ports that loop packets back to the ingress
	CPUPort   uint16                                // of copies for the control plane; 0: none, and copies are lost
	Learns    []string                              // names of the program's digests

	target                                           Target
	ingress, egress                                  *gress
	parserError, parserTime, drop, port, bypass, cpu int
	egressDrop, egressError, egressTime              int
	ofEgress                                         map[string]bool // registers and tables of the egress, by path
	machine                                          *lang.Machine
	result                                           *Result // of the current packet
	time                                             uint64
	input                                            []byte
}

// Packet is a packet that arrives at a port.
type Packet struct {
	Data []byte
	Port uint16
	Time uint64 // ns, of which the switch uses 48 bits
	Queue
}

// Queue is the traffic manager's result for a packet.
type Queue struct {
	Wait         uint64 // ns from enqueue to dequeue
	Depth, After uint32 // cells at enqueue and at dequeue
}

// Digest is a record for the control plane: a struct's fields in their order.
type Digest struct {
	Name   string
	Fields []string // their names
	Values []uint64
}

// Value of a field; 0 if there is no such field.
func (d *Digest) Value(field string) uint64 {
	if i := slices.Index(d.Fields, field); i >= 0 {
		return d.Values[i]
	}
	return 0
}

// Session is the port of clones, and how many of their bytes are sent; 0: all.
type Session struct {
	Port  uint16
	Bytes int
}

// Result of a packet. Data and Digests are valid until the next one.
type Result struct {
	Data    []byte
	Port    uint16
	Dropped bool
	ToCPU   bool
	Passes  int
	Lost    int      // clones without an existing session, and copies for the control plane without a port
	Touched int      // executions of register actions
	Cloned  []uint64 // sessions of its clones
	Digests []Digest
	Headers []Header // made by the program
	Copies  []Copy   // its clones, after the egress
	Escaped int      // clones that did not end with their second pass
	again   []byte
	clones  []clone
}

type clone struct {
	session uint64
	front   []byte
}

// Kind is the position of a header that the program made.
type Kind string

// Kinds of headers.
const (
	Bridged     Kind = "bridged"     // in front of the packet, from the ingress to the egress
	Cloned      Kind = "cloned"      // in front of a clone
	Resubmitted Kind = "resubmitted" // in front of the packet, for its next pass
	Added       Kind = "added"       // in the packet that leaves the switch
)

// Header is a header made by the program: no parser has extracted it.
type Header struct {
	Kind    Kind
	Type    string
	Fields  []string // their names
	Values  []uint64
	Session uint64 // of a clone
}

// Copy is a clone that was sent to its session's port.
type Copy struct {
	Port    uint16
	Sent    []byte // to the egress: the header and the part of the packet that the session copies
	Data    []byte // that left the egress
	Dropped bool
}

// header records a header that the program made.
func (r *Result) header(kind Kind, session uint64, made lang.Made) {
	h := Header{Kind: kind, Type: made.Type.Name, Values: made.Values, Session: session, Fields: make([]string, len(made.Type.Fields))}
	for i, f := range made.Type.Fields {
		h.Fields[i] = f.Name
	}
	r.Headers = append(r.Headers, h)
}

// mostPasses is the model's bound on resubmissions.
const mostPasses = 4

// Process runs a packet through the switch, with its second pass immediately after the first. An error is a fault of the program:
// a second access to a register, an undefined value that leaves the pipeline.
func (sw *Switch) Process(p Packet, r *Result) error {
	if sw.machine == nil {
		sw.machine = lang.NewMachine(sw.Builder)
	}
	m := sw.machine
	*r = Result{Digests: r.Digests[:0], again: r.again[:0], clones: r.clones[:0], Cloned: r.Cloned[:0], Data: r.Data[:0],
		Headers: r.Headers[:0], Copies: r.Copies[:0]}
	sw.result, sw.time = r, p.Time&lang.Mask(48)
	if err := sw.through(m, p, r); err != nil {
		return err
	}
	if err := sw.leave(m, p.Queue, r); err != nil {
		return err
	}
	r.Data = append(r.Data, m.Out...)
	return sw.loop(m, p, r)
}

// through runs the ingress, repeatedly while the packet is resubmitted.
func (sw *Switch) through(m *lang.Machine, p Packet, r *Result) error {
	for again := []byte(nil); ; {
		if r.Passes++; r.Passes > mostPasses {
			return fmt.Errorf("a packet made %d passes", r.Passes)
		}
		if err := sw.pass(m, p, again); err != nil {
			return err
		}
		if len(r.again) == 0 || m.Cells[sw.drop].Val&1 != 0 {
			r.again = r.again[:0]
			return nil
		}
		again = append(again[:0], r.again...)
		r.again = r.again[:0]
	}
}

// loop sends clones to their ports, and those of a looping port through the ingress.
func (sw *Switch) loop(m *lang.Machine, p Packet, r *Result) error {
	for len(r.clones) > 0 {
		c := r.clones[0]
		r.clones, r.Cloned = r.clones[1:], append(r.Cloned, c.session)
		to, ok := sw.Sessions[c.session]
		if !ok {
			r.Lost++
			continue
		}
		m.Out = append(append(m.Out[:0], c.front...), p.Data...)
		if to.Bytes > 0 {
			m.Out = m.Out[:min(len(m.Out), to.Bytes)]
		}
		sent := append([]byte(nil), m.Out...)
		aside := Result{Port: to.Port}
		sw.time = p.Time & lang.Mask(48)
		if err := sw.out(m, Queue{}, &aside); err != nil {
			return err
		}
		r.Headers = append(r.Headers, aside.Headers...)
		r.Copies = append(r.Copies, Copy{Port: to.Port, Sent: sent, Data: append([]byte(nil), m.Out...), Dropped: aside.Dropped})
		if aside.Dropped || !sw.Loops[to.Port] {
			continue
		}
		back := Packet{Data: append([]byte(nil), m.Out...), Port: to.Port, Time: p.Time}
		if err := sw.through(m, back, r); err != nil {
			return err
		}
		ends := Result{}
		if err := sw.leave(m, Queue{}, &ends); err != nil {
			return err
		}
		if !ends.Dropped || ends.ToCPU {
			r.Escaped++
		}
	}
	return nil
}

// pass is one pass through the ingress. again is the data of a resubmitted packet.
func (sw *Switch) pass(m *lang.Machine, p Packet, again []byte) error {
	sw.arrive(p, again)
	m.Begin(sw.Builder, sw.input)
	sw.ingress.parse(m)
	m.Set(sw.parserError, m.Short, 0)
	m.Set(sw.parserTime, p.Time&lang.Mask(48), 0)
	sw.ingress.control(m)
	sw.ingress.deparse(m)
	m.Rest()
	for _, slot := range []int{sw.drop, sw.port, sw.cpu, sw.bypass} {
		if m.Cells[slot].Undef != 0 && m.Fault == nil {
			return fmt.Errorf("the egress port of the packet is undefined")
		}
	}
	return m.Fault
}

// arrive writes intrinsic metadata, the data that follows, and the packet.
func (sw *Switch) arrive(p Packet, again []byte) {
	first := uint64(p.Port&0x1ff)<<48 | p.Time&lang.Mask(48)
	if again != nil {
		first |= 1 << 63
	}
	in := binary.BigEndian.AppendUint64(sw.input[:0], first)
	in = append(in, again...)
	for len(in) < 8+portMetadataBits[sw.target]/8 {
		in = append(in, 0)
	}
	sw.input = append(in, p.Data...)
}

// leave applies the traffic manager and the egress to a packet.
func (sw *Switch) leave(m *lang.Machine, q Queue, r *Result) error {
	if m.Cells[sw.cpu].Val != 0 && m.Cells[sw.drop].Val&2 == 0 {
		r.ToCPU = sw.CPUPort != 0
		r.Lost += int(lang.Number(!r.ToCPU))
	}
	r.Dropped = m.Cells[sw.drop].Val&1 != 0
	r.Port = uint16(m.Cells[sw.port].Val)
	if r.Dropped {
		return nil
	}
	kind := Bridged
	if m.Cells[sw.bypass].Val != 0 {
		kind = Added
	}
	for _, made := range m.Made {
		r.header(kind, 0, made)
	}
	if kind == Added {
		return nil
	}
	return sw.out(m, q, r)
}

// out is the egress pipeline. Times in queues are ns, in the width of the intrinsic metadata.
func (sw *Switch) out(m *lang.Machine, q Queue, r *Result) error {
	in := make([]byte, 0, len(m.Out)+64)
	var w lang.BitWriter
	for _, f := range sw.egress.by["egress_intrinsic_metadata_t"].Type.Fields {
		v := uint64(0)
		switch f.Name {
		case "egress_port":
			v = uint64(r.Port)
		case "enq_tstamp":
			v = sw.time
		case "deq_timedelta":
			v = q.Wait
		case "enq_qdepth":
			v = uint64(q.Depth)
		case "deq_qdepth":
			v = uint64(q.After)
		case "pkt_length":
			v = uint64(len(m.Out))
		}
		w.Put(v&lang.Mask(f.Type.Width), f.Type.Width)
	}
	sw.time = (sw.time + q.Wait) & lang.Mask(48)
	m.Begin(sw.Builder, append(append(in, w.Data...), m.Out...))
	sw.egress.parse(m)
	m.Set(sw.egressError, m.Short, 0)
	m.Set(sw.egressTime, sw.time, 0)
	sw.egress.control(m)
	sw.egress.deparse(m)
	m.Rest()
	if m.Cells[sw.egressDrop].Undef != 0 && m.Fault == nil {
		return fmt.Errorf("whether the packet is dropped is undefined")
	}
	r.Dropped = m.Cells[sw.egressDrop].Val&1 != 0
	for _, made := range m.Made {
		r.header(Added, 0, made)
	}
	return m.Fault
}

// Arrays are the arrays with state across packets: registers and filters.
func (sw *Switch) Arrays() []*Register {
	all := sw.Registers[:len(sw.Registers):len(sw.Registers)]
	for _, f := range sw.Filters {
		all = append(all, f.Array)
	}
	return all
}

// Register finds a register array, or that of a filter, by its name.
func (sw *Switch) Register(name string) *Register {
	for _, r := range sw.Arrays() {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Full is the full name of a register or table: its path with its half of the pipeline.
func (sw *Switch) Full(path string) string {
	if sw.ofEgress[path] {
		return "Egress." + path
	}
	return "Ingress." + path
}

// Table finds a table by its name with the path of its control: reasons.reason.
func (sw *Switch) Table(name string) *lang.Table {
	for _, t := range sw.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// The parts of a program's tables.
type (
	Table    = lang.Table
	Row      = lang.Row
	Match    = lang.Match
	Spot     = lang.Spot
	ValueSet = lang.ValueSet
)
