package allow

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Hook is an entry of the list of program types: the fields of the context and the verdicts.
type Hook struct {
	Fields   []field
	Written  []field // that may be written, too
	Verdicts []Verdict
	Chain    string // its program array; programs of one type run in one chain
	Recirc   string
	Why      string
}

// field is a word of the context.
type field struct {
	Name      string
	off, size int
	Shows     value.Source // what it points to
	Why       string
}

// Verdict is a number that a program may end with.
type Verdict struct {
	Name string
	Code uint32
	Why  string
}

const (
	ofBuffer  = "bytes of this packet"
	ofReceipt = "how this packet arrived"
	ofPacket  = "the kernel knows it of this packet"

	number = value.Nothing
	bytes  = value.InPacket
)

// Hooks is the list. Offsets are those of struct xdp_md and struct __sk_buff.
var Hooks = map[ebpf.ProgramType]Hook{
	ebpf.XDP: {
		Chain: "chain_xdp", Recirc: "recirc_xdp",
		Why: "sees a packet once, on arrival",
		Fields: []field{
			{"data", 0, 4, bytes, ofBuffer}, {"data_end", 4, 4, bytes, ofBuffer}, {"data_meta", 8, 4, bytes, ofBuffer},
			{"ingress_ifindex", 12, 4, number, ofReceipt}, {"rx_queue_index", 16, 4, number, ofReceipt},
		},
		Verdicts: []Verdict{
			{"XDP_ABORTED", 0, "dropped, and seen by a trace point"}, {"XDP_DROP", 1, "dropped"}, {"XDP_PASS", 2, "passed on"},
		},
	},
	ebpf.SchedCLS: {
		Chain: "chain_tc", Recirc: "recirc_tc",
		Why: "sees a packet, or an aggregate of segments, once, on arrival or departure",
		Fields: []field{
			{"len", 0, 4, number, ofPacket}, {"pkt_type", 4, 4, number, ofReceipt}, {"mark", 8, 4, number, ofPacket},
			{"queue_mapping", 12, 4, number, ofReceipt}, {"protocol", 16, 4, number, ofPacket},
			{"vlan_present", 20, 4, number, ofPacket}, {"vlan_tci", 24, 4, number, ofPacket}, {"vlan_proto", 28, 4, number, ofPacket},
			{"priority", 32, 4, number, ofPacket}, {"ingress_ifindex", 36, 4, number, ofReceipt}, {"ifindex", 40, 4, number, ofReceipt},
			{"hash", 68, 4, number, ofPacket}, {"data", 76, 4, bytes, ofBuffer}, {"data_end", 80, 4, bytes, ofBuffer},
			{"data_meta", 140, 4, bytes, ofBuffer}, {"tstamp", 152, 8, number, ofPacket}, {"wire_len", 160, 4, number, ofPacket},
			{"gso_segs", 164, 4, number, ofPacket}, {"gso_size", 176, 4, number, ofPacket},
		},
		Written: []field{
			{"mark", 8, 4, number, "another route, for programs that read it later"}, {"priority", 32, 4, number, "the class of the queue"},
			{"cb", 48, 20, number, "what the packet carries to the start of transmission: a bridged header"},
			{"tstamp", 152, 8, number, "when it may leave at the earliest: what a traffic manager does"},
		},
		Verdicts: []Verdict{
			{"TC_ACT_UNSPEC", 0xffffffff, "passed on to the next program"}, {"TC_ACT_OK", 0, "passed on"}, {"TC_ACT_SHOT", 2, "dropped"},
		},
	},
	ebpf.Tracing: {
		Chain: "chain_tp",
		Why:   "sees a packet that leaves or is dropped, at a trace point of the list",
		// Fields: see TracePoints.
		Verdicts: []Verdict{{"nothing", 0, "not used"}},
	},
}

// RefusedVerdicts are codes with a more specific reason than that they are not on the list.
var RefusedVerdicts = map[ebpf.ProgramType]map[uint32]string{
	ebpf.XDP:      {3: "XDP_TX", 4: "XDP_REDIRECT"},
	ebpf.SchedCLS: {1: "TC_ACT_RECLASSIFY", 6: "TC_ACT_REPEAT", 7: "TC_ACT_REDIRECT"},
}

// Entries are the programs that begin chains, by name: the loader puts no other there and these nowhere else. They may choose a
// slot and fill the vector; in return they keep no registers and read of the vector only what they have written.
var Entries = []string{"chain_xdp_entry", "chain_tc_entry", "chain_tp_entry"}

// FieldAt is the word of the context that an access lies in.
func (h *Hook) FieldAt(off, size int) (field, bool) {
	return fieldAt(h.Fields, off, size)
}

// WrittenAt is the word of the context that a store lies in.
func (h *Hook) WrittenAt(off, size int) (field, bool) { return fieldAt(h.Written, off, size) }

func fieldAt(list []field, off, size int) (field, bool) {
	for _, f := range list {
		inside := off >= f.off && off+size <= f.off+f.size
		if inside && (f.Shows == number || size == f.size) {
			return f, true
		}
	}
	return field{}, false
}

// FieldNames lists fields, for a message or a document.
func FieldNames(list []field) string {
	var names []string
	for _, f := range list {
		names = append(names, "`"+f.Name+"`")
	}
	return strings.Join(names, " ")
}

// VerdictNames lists the verdicts, for a message.
func (h *Hook) VerdictNames() string {
	var names []string
	for _, v := range h.Verdicts {
		names = append(names, fmt.Sprintf("%s (%d)", v.Name, int32(v.Code)))
	}
	return strings.Join(names, ", ")
}
