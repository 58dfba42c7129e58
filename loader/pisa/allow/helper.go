// Package allow lists what programs may do: the helpers and kernel functions they may call, the instructions, the fields of the context that
// each type of program may access, and its verdicts. Everything else is refused. (Package declared lists the roles of maps.)
package allow

import (
	"strings"
	"unicode"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// role is a helper's use of an argument.
type role uint8

const (
	aContext role = iota
	aNumber
	aMap
	aKey    // memory of the map's key size: read
	aValue  // memory of the map's value size: read
	fills   // memory of the map's value size: written
	Reads   // memory, of the length in the next argument: read; NULL is none
	Writes  // the same: written
	aLength // of the argument before it
	aRecord // of a ring
	aCode   // a function of the program
	Copied  // memory of the kernel, of the length in the argument before it: read
)

// Failure is the content, after a failed helper, of the memory that it writes.
type Failure uint8

const (
	NeverFails Failure = iota // or writes no memory of the program
	LeavesOld                 // unchanged: it may be an earlier packet's
	WritesZero
)

// Helper is an entry of the list of allowed helpers.
type Helper struct {
	Args   []role
	Fails  Failure
	Packet bool               // it writes the packet
	Types  []ebpf.ProgramType // that have it; nil: all
	Why    string             // why it leaves no state after the packet except the state that the rules cover
}

var (
	onlyXDP = []ebpf.ProgramType{ebpf.XDP}
	onlyTC  = []ebpf.ProgramType{ebpf.SchedCLS}
	onlyTP  = []ebpf.ProgramType{ebpf.Tracing}
)

// Helpers is the list. Failures are those of the kernel's sources (net/core/filter.c, kernel/bpf).
var Helpers = map[asm.BuiltinFunc]Helper{
	asm.FnMapLookupElem: {Args: []role{aMap, aKey}, Why: "access to an element; the map's kind decides what may be done with it"},
	asm.FnMapUpdateElem: {Args: []role{aMap, aKey, aValue, aNumber}, Why: "of a register: a write of the whole element, one touch"},
	asm.FnMapPeekElem: {Args: []role{aMap, fills}, Fails: LeavesOld,
		Why: "the head of a queue that userspace has filled: a table of one row"},

	asm.FnTailCall: {Args: []role{aContext, aMap, aNumber}, Why: "the chain and the second pass, within rule 5"},
	asm.FnLoop:     {Args: []role{aNumber, aCode, Reads, aNumber}, Why: "the callback is the body of a loop"},
	asm.FnForEachMapElem: {Args: []role{aMap, aCode, Reads, aNumber},
		Why: "the callback is the body of a loop over a table; over a register it is one access too many"},

	asm.FnRingbufOutput: {Args: []role{aMap, Reads, aLength, aNumber},
		Why: "a digest to userspace; whether the ring was full may only be counted"},
	asm.FnRingbufReserve: {Args: []role{aMap, aNumber, aNumber},
		Why: "the same, written in place; what lies in the record before is an earlier one's and is not read"},
	asm.FnRingbufSubmit:  {Args: []role{aRecord, aNumber}, Why: "ends a digest"},
	asm.FnRingbufDiscard: {Args: []role{aRecord, aNumber}, Why: "ends a digest"},
	asm.FnPerfEventOutput: {Args: []role{aContext, aMap, aNumber, Reads, aLength},
		Why: "a digest to userspace, as bpf_ringbuf_output"},

	asm.FnKtimeGetNs:        {Why: "the ingress time stamp of a switch"},
	asm.FnGetPrandomU32:     {Why: "the random number generator of a switch"},
	asm.FnGetSmpProcessorId: {Why: "which pipe the packet is in"},

	asm.FnXdpGetBuffLen: {Args: []role{aContext}, Types: onlyXDP, Why: "the packet's length"},
	asm.FnXdpLoadBytes: {Args: []role{aContext, aNumber, Writes, aLength}, Fails: LeavesOld, Types: onlyXDP,
		Why: "bytes of the packet, wherever its buffer has them"},
	asm.FnSkbLoadBytes: {Args: []role{aContext, aNumber, Writes, aLength}, Fails: WritesZero, Types: onlyTC,
		Why: "bytes of the packet, wherever its buffer has them"},
	asm.FnSkbPullData: {Args: []role{aContext, aNumber}, Types: onlyTC, Why: "brings bytes of the packet into its linear part"},
	asm.FnCsumDiff: {Args: []role{Reads, aLength, Reads, aLength, aNumber},
		Why: "a checksum over memory that is read as if by loads"},

	asm.FnProbeReadKernel: {Args: []role{Writes, aLength, Copied}, Fails: WritesZero, Types: onlyTP,
		Why: "bytes of the packet, and words that belong to it, where a trace point shows them"},

	asm.FnXdpStoreBytes: {Args: []role{aContext, aNumber, Reads, aLength}, Packet: true, Types: onlyXDP,
		Why: "a switch's deparser writes headers, too"},
	asm.FnSkbStoreBytes: {Args: []role{aContext, aNumber, Reads, aLength, aNumber}, Packet: true, Types: onlyTC,
		Why: "a switch's deparser writes headers, too"},
	asm.FnL3CsumReplace: {Args: []role{aContext, aNumber, aNumber, aNumber, aNumber}, Packet: true, Types: onlyTC,
		Why: "the checksum of a header that was changed"},
	asm.FnL4CsumReplace: {Args: []role{aContext, aNumber, aNumber, aNumber, aNumber}, Packet: true, Types: onlyTC,
		Why: "the checksum of a header that was changed"},
	asm.FnSkbEcnSetCe: {Args: []role{aContext}, Packet: true, Types: onlyTC, Why: "the mark that an enforcer puts on a packet"},
}

// Refusal is the reason why a known instruction, helper or verdict is not on a list.
type Refusal struct {
	Rule int
	Code rule.Code
	Why  string
}

var (
	GoesRound   = Refusal{5, rule.Recirculation, "the packet may return any number of times"}
	keepsState  = Refusal{1, rule.FlowState, "the kernel keeps state between packets there"}
	changesRoom = Refusal{1, rule.FlowState, "it shows bytes around the packet that are an earlier one's"}
	hidesMemory = Refusal{2, rule.Unfollowed, "the memory of a dynptr cannot be followed"}
	readsKernel = Refusal{1, rule.FlowState, "memory of the kernel is neither the packet's nor the program's"}
)

// RefusedHelpers are those with a more specific reason than that they are not on the list.
var RefusedHelpers = map[asm.BuiltinFunc]Refusal{
	asm.FnRedirect: GoesRound, asm.FnRedirectMap: GoesRound, asm.FnCloneRedirect: GoesRound, asm.FnRedirectNeigh: GoesRound,
	asm.FnRedirectPeer: GoesRound, asm.FnSkRedirectMap: GoesRound, asm.FnSkAssign: GoesRound,

	asm.FnMapDeleteElem:       {1, rule.FlowState, "no map of a program has elements that are added and removed"},
	asm.FnMapPushElem:         {1, rule.FlowState, "a queue or a filter that packets fill is no register"},
	asm.FnMapPopElem:          {1, rule.FlowState, "a queue that packets empty is no register"},
	asm.FnMapLookupPercpuElem: {2, rule.SecondAccess, "it is another core's element of an array that every core has its own of"},
	asm.FnRingbufQuery:        {1, rule.FlowState, "how full a ring is counts what earlier packets have reported"},
	asm.FnPerfEventRead:       keepsState,
	asm.FnPerfEventReadValue:  keepsState,

	asm.FnXdpAdjustHead: changesRoom, asm.FnXdpAdjustMeta: changesRoom, asm.FnXdpAdjustTail: changesRoom,
	asm.FnSkbAdjustRoom: changesRoom, asm.FnSkbChangeHead: changesRoom, asm.FnSkbChangeTail: changesRoom,
	asm.FnSkbChangeProto: changesRoom,

	asm.FnSkStorageGet: keepsState, asm.FnTaskStorageGet: keepsState, asm.FnInodeStorageGet: keepsState,
	asm.FnCgrpStorageGet: keepsState, asm.FnGetLocalStorage: keepsState, asm.FnKptrXchg: keepsState,
	asm.FnSkLookupTcp: keepsState, asm.FnSkLookupUdp: keepsState, asm.FnSkcLookupTcp: keepsState, asm.FnSkRelease: keepsState, asm.FnFibLookup: keepsState,
	asm.FnTimerInit: keepsState, asm.FnTimerStart: keepsState, asm.FnTimerSetCallback: keepsState, asm.FnTimerCancel: keepsState,
	asm.FnSpinLock: {2, rule.Unfollowed, "a switch has no locks: a read-modify-write is one operation"},

	asm.FnDynptrFromMem: hidesMemory, asm.FnDynptrRead: hidesMemory, asm.FnDynptrWrite: hidesMemory, asm.FnDynptrData: hidesMemory,
	asm.FnRingbufReserveDynptr: hidesMemory, asm.FnRingbufSubmitDynptr: hidesMemory, asm.FnRingbufDiscardDynptr: hidesMemory,
	asm.FnUserRingbufDrain: {1, rule.FlowState, "what userspace sends is read once, by one packet of all: a table is read by each"},

	asm.FnProbeRead: readsKernel, asm.FnProbeReadUser: readsKernel, asm.FnProbeReadStr: readsKernel,
	asm.FnProbeReadKernelStr: readsKernel, asm.FnPerCpuPtr: readsKernel, asm.FnThisCpuPtr: readsKernel,
}

// HelperName is the name of a helper as C has it.
func HelperName(fn asm.BuiltinFunc) string {
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

// Arity is the number of arguments of a helper; of one that is not on the list, all registers are.
func Arity(fn int64) int {
	if h, ok := Helpers[asm.BuiltinFunc(fn)]; ok {
		return len(h.Args)
	}
	return 5
}

// CallbackOf is the register that holds a helper's callback.
var CallbackOf = map[asm.BuiltinFunc]asm.Register{
	asm.FnLoop: asm.R2, asm.FnForEachMapElem: asm.R2,
}

// LoopsOver reports whether an instruction calls a helper that calls back, any number of times.
func LoopsOver(in asm.Instruction) bool {
	if !in.IsBuiltinCall() {
		return false
	}
	_, ok := CallbackOf[asm.BuiltinFunc(in.Constant)]
	return ok
}
