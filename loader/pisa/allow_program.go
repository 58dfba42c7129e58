package pisa

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// hook is an entry of the list of program types: what a program finds in its context and how it may end.
type hook struct {
	fields   []field
	verdicts []verdict
	chain    string // its program array; programs of one type run in one chain
	recirc   string
	why      string
}

// field is a word of the context that may be read. None may be written.
type field struct {
	name      string
	off, size int
	packet    bool // a pointer to bytes of the packet
	why       string
}

// verdict is a number that a program may end with.
type verdict struct {
	name string
	code uint32
	why  string
}

const (
	ofBuffer  = "bytes of this packet"
	ofReceipt = "how this packet came"
	ofPacket  = "the kernel knows it of this packet"
)

// hooks is the list. Offsets are those of struct xdp_md and struct __sk_buff.
var hooks = map[ebpf.ProgramType]hook{
	ebpf.XDP: {
		chain: "chain_xdp", recirc: "recirc_xdp",
		why: "sees a packet once, on arrival",
		fields: []field{
			{"data", 0, 4, true, ofBuffer}, {"data_end", 4, 4, true, ofBuffer}, {"data_meta", 8, 4, true, ofBuffer},
			{"ingress_ifindex", 12, 4, false, ofReceipt}, {"rx_queue_index", 16, 4, false, ofReceipt},
		},
		verdicts: []verdict{
			{"XDP_ABORTED", 0, "dropped, and seen by a trace point"}, {"XDP_DROP", 1, "dropped"}, {"XDP_PASS", 2, "goes on"},
		},
	},
	ebpf.SchedCLS: {
		chain: "chain_tc", recirc: "recirc_tc",
		why: "sees a packet, or an aggregate of segments, once, on arrival or departure",
		fields: []field{
			{"len", 0, 4, false, ofPacket}, {"pkt_type", 4, 4, false, ofReceipt}, {"mark", 8, 4, false, ofPacket},
			{"queue_mapping", 12, 4, false, ofReceipt}, {"protocol", 16, 4, false, ofPacket},
			{"vlan_present", 20, 4, false, ofPacket}, {"vlan_tci", 24, 4, false, ofPacket}, {"vlan_proto", 28, 4, false, ofPacket},
			{"priority", 32, 4, false, ofPacket}, {"ingress_ifindex", 36, 4, false, ofReceipt}, {"ifindex", 40, 4, false, ofReceipt},
			{"hash", 68, 4, false, ofPacket}, {"data", 76, 4, true, ofBuffer}, {"data_end", 80, 4, true, ofBuffer},
			{"data_meta", 140, 4, true, ofBuffer}, {"tstamp", 152, 8, false, ofPacket}, {"wire_len", 160, 4, false, ofPacket},
			{"gso_segs", 164, 4, false, ofPacket}, {"gso_size", 176, 4, false, ofPacket},
		},
		verdicts: []verdict{
			{"TC_ACT_UNSPEC", 0xffffffff, "goes on to the next program"}, {"TC_ACT_OK", 0, "goes on"}, {"TC_ACT_SHOT", 2, "dropped"},
		},
	},
}

// refusedVerdicts are codes of which more is to be said than that they are not on the list.
var refusedVerdicts = map[ebpf.ProgramType]map[uint32]string{
	ebpf.XDP:      {3: "XDP_TX", 4: "XDP_REDIRECT"},
	ebpf.SchedCLS: {1: "TC_ACT_RECLASSIFY", 6: "TC_ACT_REPEAT", 7: "TC_ACT_REDIRECT"},
}

// entries are the programs that begin chains, by name: the loader puts no other there and these nowhere else. They may choose a
// slot and fill the vector; in return they keep no registers and read of the vector only what they have written.
var entries = []string{"chain_xdp_entry", "chain_tc_entry"}

// listed refuses programs of other types, before anything is interpreted.
func (m *machine) listed(t ebpf.ProgramType, attach ebpf.AttachType) bool {
	if _, ok := hooks[t]; ok {
		return true
	}
	m.fail(0, nil, 1, Unlisted, "programs of type %s (%s) are not on the list: what their context shows is not known to be a packet's own", t, attach)
	return false
}

// fieldAt is the word of the context that an access lies in.
func (h *hook) fieldAt(off, size int) (field, bool) {
	for _, f := range h.fields {
		inside := off >= f.off && off+size <= f.off+f.size
		if inside && (!f.packet || size == f.size) {
			return f, true
		}
	}
	return field{}, false
}

// loadContext reads a word of the context.
func (m *machine) loadContext(s *state, ptr value, size int) value {
	out := number(m.nodes.leaf(below(uint(size)*8)), s.outside.with(fromPacket))
	off, ok := m.contextOffset(ptr)
	f, listed := m.hook.fieldAt(off, size)
	if !ok || !listed {
		m.fail(s.pc, nil, 1, Unlisted, "%d bytes of the context at offset %d are read: they are no field of the list", size, off)
		return out
	}
	if f.packet {
		out.n, out.base = m.nodes.leaf(anything), inPacket
	}
	return out
}

// contextOffset is how far behind the start of the context a pointer is.
func (m *machine) contextOffset(ptr value) (int, bool) {
	switch n := ptr.n; {
	case n == m.context:
		return 0, true
	case n.op == opAdd && n.a == m.context && n.b.op == opConst:
		return int(int64(n.b.k)), true
	}
	return -1, false
}

// checkVerdict is the end of a program.
func (m *machine) checkVerdict(s *state) {
	t := s.regs[0].t.with(s.control)
	m.refuseSecret(s, t.from, "decides the verdict")
	m.refuseAnswer(s, t.from, 0, "the verdict")
	code := s.facts.spanOf(m.nodes.truncate(m.asNumber(s.regs[0]), 32))
	if code.hi-code.lo >= 8 {
		m.fail(s.pc, nil, 1, Unlisted, "the verdict is one of many numbers: return constants")
		return
	}
	for k := code.lo; k <= code.hi; k++ {
		if !slices.ContainsFunc(m.hook.verdicts, func(v verdict) bool { return uint64(v.code) == k }) {
			m.refuseVerdict(s, uint32(k))
			return
		}
	}
}

func (m *machine) refuseVerdict(s *state, code uint32) {
	if name, ok := refusedVerdicts[m.prog.hook][code]; ok {
		m.refuse(s, goesRound, "the verdict may be %s", name)
		return
	}
	m.fail(s.pc, nil, 1, Unlisted, "the verdict may be %d, which is not one of %s", int32(code), m.hook.verdictNames())
}

func (h *hook) verdictNames() string {
	var names []string
	for _, v := range h.verdicts {
		names = append(names, fmt.Sprintf("%s (%d)", v.name, int32(v.code)))
	}
	return strings.Join(names, ", ")
}
