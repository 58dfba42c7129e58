package pisa

import (
	"strings"
	"unicode"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// role says what a helper does with an argument.
type role uint8

const (
	aContext role = iota
	aNumber
	aMap
	aKey    // memory of the map's key size: read
	aValue  // memory of the map's value size: read
	fills   // memory of the map's value size: written
	reads   // memory, of the length in the next argument: read; NULL is none
	writes  // the same: written
	aLength // of the argument in front of it
	aRecord // of a ring
	aCode   // a function of the program
)

// failure is what a helper that fails leaves in the memory that it writes.
type failure uint8

const (
	neverFails failure = iota // or writes no memory of the program
	leavesOld                 // nothing: what was there, be it an earlier packet's, is there still
	writesZero
)

// helper is an entry of the list of what programs may call. Everything that is not on it is refused.
type helper struct {
	args   []role
	fails  failure
	packet bool               // it writes the packet
	types  []ebpf.ProgramType // that have it; nil: all
	why    string             // nothing of it outlives the packet but what the rules know
}

var (
	onlyXDP = []ebpf.ProgramType{ebpf.XDP}
	onlyTC  = []ebpf.ProgramType{ebpf.SchedCLS}
)

// helpers is the list. Failures are those of the kernel's sources (net/core/filter.c, kernel/bpf).
var helpers = map[asm.BuiltinFunc]helper{
	asm.FnMapLookupElem: {args: []role{aMap, aKey}, why: "the way to an element; the map's kind says what may be done with it"},
	asm.FnMapUpdateElem: {args: []role{aMap, aKey, aValue, aNumber}, why: "of a register: a write of the whole element, one touch"},
	asm.FnMapPeekElem: {args: []role{aMap, fills}, fails: leavesOld,
		why: "the head of a queue that userspace has filled: a table of one row"},

	asm.FnTailCall: {args: []role{aContext, aMap, aNumber}, why: "the chain and the second pass, within rule 5"},
	asm.FnLoop:     {args: []role{aNumber, aCode, reads, aNumber}, why: "the callback is the body of a loop"},
	asm.FnForEachMapElem: {args: []role{aMap, aCode, reads, aNumber},
		why: "the callback is the body of a loop over a table; over a register it is one access too many"},

	asm.FnRingbufOutput: {args: []role{aMap, reads, aLength, aNumber},
		why: "a digest to userspace; whether there was room may only be counted"},
	asm.FnRingbufReserve: {args: []role{aMap, aNumber, aNumber},
		why: "the same, written in place; what lies in the record before is an earlier one's and is not read"},
	asm.FnRingbufSubmit:  {args: []role{aRecord, aNumber}, why: "ends a digest"},
	asm.FnRingbufDiscard: {args: []role{aRecord, aNumber}, why: "ends a digest"},
	asm.FnPerfEventOutput: {args: []role{aContext, aMap, aNumber, reads, aLength},
		why: "a digest to userspace, as bpf_ringbuf_output"},

	asm.FnKtimeGetNs:        {why: "the ingress time stamp of a switch"},
	asm.FnGetPrandomU32:     {why: "the random number generator of a switch"},
	asm.FnGetSmpProcessorId: {why: "which pipe the packet is in"},

	asm.FnXdpGetBuffLen: {args: []role{aContext}, types: onlyXDP, why: "the packet's length"},
	asm.FnXdpLoadBytes: {args: []role{aContext, aNumber, writes, aLength}, fails: leavesOld, types: onlyXDP,
		why: "bytes of the packet, wherever its buffer has them"},
	asm.FnSkbLoadBytes: {args: []role{aContext, aNumber, writes, aLength}, fails: writesZero, types: onlyTC,
		why: "bytes of the packet, wherever its buffer has them"},
	asm.FnSkbPullData: {args: []role{aContext, aNumber}, types: onlyTC, why: "brings bytes of the packet into its linear part"},
	asm.FnCsumDiff: {args: []role{reads, aLength, reads, aLength, aNumber},
		why: "a checksum over memory that is read as if by loads"},

	asm.FnXdpStoreBytes: {args: []role{aContext, aNumber, reads, aLength}, packet: true, types: onlyXDP,
		why: "a switch's deparser writes headers, too"},
	asm.FnSkbStoreBytes: {args: []role{aContext, aNumber, reads, aLength, aNumber}, packet: true, types: onlyTC,
		why: "a switch's deparser writes headers, too"},
	asm.FnL3CsumReplace: {args: []role{aContext, aNumber, aNumber, aNumber, aNumber}, packet: true, types: onlyTC,
		why: "the checksum of a header that was changed"},
	asm.FnL4CsumReplace: {args: []role{aContext, aNumber, aNumber, aNumber, aNumber}, packet: true, types: onlyTC,
		why: "the checksum of a header that was changed"},
	asm.FnSkbEcnSetCe: {args: []role{aContext}, packet: true, types: onlyTC, why: "the mark that an enforcer puts on a packet"},
}

// refusal is what is said of something that is known and not on a list.
type refusal struct {
	rule int
	code Code
	why  string
}

var (
	goesRound   = refusal{5, Recirculation, "the packet may come back any number of times"}
	keepsState  = refusal{1, FlowState, "the kernel keeps state between packets there"}
	changesRoom = refusal{1, FlowState, "it shows bytes around the packet that are an earlier one's"}
	hidesMemory = refusal{2, Unfollowed, "the memory behind a dynptr cannot be followed"}
	readsKernel = refusal{1, FlowState, "memory of the kernel is neither the packet's nor the program's"}
)

// refusedHelpers are those of which more is to be said than that they are not on the list.
var refusedHelpers = map[asm.BuiltinFunc]refusal{
	asm.FnRedirect: goesRound, asm.FnRedirectMap: goesRound, asm.FnCloneRedirect: goesRound, asm.FnRedirectNeigh: goesRound,
	asm.FnRedirectPeer: goesRound, asm.FnSkRedirectMap: goesRound, asm.FnSkAssign: goesRound,

	asm.FnMapDeleteElem:       {1, FlowState, "no map of a program has elements that come and go"},
	asm.FnMapPushElem:         {1, FlowState, "a queue or a filter that packets fill is no register"},
	asm.FnMapPopElem:          {1, FlowState, "a queue that packets empty is no register"},
	asm.FnMapLookupPercpuElem: {2, SecondAccess, "it is another core's element of an array that every core has its own of"},
	asm.FnRingbufQuery:        {1, FlowState, "how full a ring is counts what earlier packets have reported"},
	asm.FnPerfEventRead:       keepsState,
	asm.FnPerfEventReadValue:  keepsState,

	asm.FnXdpAdjustHead: changesRoom, asm.FnXdpAdjustMeta: changesRoom, asm.FnXdpAdjustTail: changesRoom,
	asm.FnSkbAdjustRoom: changesRoom, asm.FnSkbChangeHead: changesRoom, asm.FnSkbChangeTail: changesRoom,
	asm.FnSkbChangeProto: changesRoom,

	asm.FnSkStorageGet: keepsState, asm.FnTaskStorageGet: keepsState, asm.FnInodeStorageGet: keepsState,
	asm.FnCgrpStorageGet: keepsState, asm.FnGetLocalStorage: keepsState, asm.FnKptrXchg: keepsState,
	asm.FnSkLookupTcp: keepsState, asm.FnSkLookupUdp: keepsState, asm.FnSkcLookupTcp: keepsState, asm.FnSkRelease: keepsState, asm.FnFibLookup: keepsState,
	asm.FnTimerInit: keepsState, asm.FnTimerStart: keepsState, asm.FnTimerSetCallback: keepsState, asm.FnTimerCancel: keepsState,
	asm.FnSpinLock: {2, Unfollowed, "a switch has no locks: a read-modify-write is one operation"},

	asm.FnDynptrFromMem: hidesMemory, asm.FnDynptrRead: hidesMemory, asm.FnDynptrWrite: hidesMemory, asm.FnDynptrData: hidesMemory,
	asm.FnRingbufReserveDynptr: hidesMemory, asm.FnRingbufSubmitDynptr: hidesMemory, asm.FnRingbufDiscardDynptr: hidesMemory,
	asm.FnUserRingbufDrain: {1, FlowState, "what userspace sends is read once, by one packet of all: a table is read by each"},

	asm.FnProbeRead: readsKernel, asm.FnProbeReadKernel: readsKernel, asm.FnProbeReadUser: readsKernel, asm.FnProbeReadStr: readsKernel,
	asm.FnProbeReadKernelStr: readsKernel, asm.FnPerCpuPtr: readsKernel, asm.FnThisCpuPtr: readsKernel,
}

// refuse says that something is not on a list; known is what is known of it.
func (m *machine) refuse(s *state, known refusal, format string, args ...any) {
	if known.rule == 0 {
		known = refusal{1, Unlisted, "what is not known to be without state may keep some"}
	}
	m.fail(s.pc, nil, known.rule, known.code, format+": "+strings.ReplaceAll(known.why, "%", "%%"), args...)
}

// refused is the result of a call that was refused: whatever it points to, no more is said of it.
func (m *machine) refused() value {
	out := number(m.nodes.leaf(anything), fromPacket)
	out.base = inPacket
	return out
}

// helperName is the name of a helper as C has it.
func helperName(fn asm.BuiltinFunc) string {
	name := fn.String()
	camel, ok := strings.CutPrefix(name, "Fn")
	if !ok {
		return "helper " + name
	}
	out := []rune("bpf")
	for i, r := range camel {
		if unicode.IsUpper(r) && (i == 0 || !unicode.IsUpper(rune(camel[i-1]))) {
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}

// arity is the number of arguments of a helper; of one that is not on the list, all registers are.
func arity(fn int64) int {
	if h, ok := helpers[asm.BuiltinFunc(fn)]; ok {
		return len(h.args)
	}
	return 5
}
