package pisa

import "github.com/cilium/ebpf/asm"

// helperArguments is the number of arguments of each helper, from bpf_helper_defs.h of libbpf 1.1. Registers behind
// the last one may hold anything.
const helperArguments = "" +
	"524230300555330021314422154353332310323221032311254344243522" +
	"422432545444444341410242551322443111111554333444215533332104" +
	"451130531243222211111444342335414212420203154534132311113414" +
	"54332101144533231442255333220442"

// arity is the number of arguments of a helper; of one that is not known, all registers are.
func arity(helper int64) int {
	if helper < 0 || helper >= int64(len(helperArguments)) {
		return 5
	}
	return int(helperArguments[helper] - '0')
}

// readsOnly are helpers that do not write to memory of the program. Of all others it is assumed.
var readsOnly = map[asm.BuiltinFunc]bool{
	asm.FnTracePrintk: true, asm.FnTraceVprintk: true, asm.FnSkbStoreBytes: true, asm.FnXdpStoreBytes: true,
	asm.FnCsumDiff: true, asm.FnSkbSetTunnelKey: true, asm.FnSkbSetTunnelOpt: true, asm.FnStrncmp: true,
	asm.FnTcpCheckSyncookie: true, asm.FnTcpGenSyncookie: true, asm.FnSkLookupTcp: true, asm.FnSkLookupUdp: true,
	asm.FnSkcLookupTcp: true, asm.FnRedirectNeigh: true, asm.FnSkbOutput: true, asm.FnXdpOutput: true,
	asm.FnRingbufSubmit: true, asm.FnRingbufDiscard: true, asm.FnLwtPushEncap: true, asm.FnSeqWrite: true,
}

// readsMap are helpers that take a map and do not change it, besides those that the proof interprets.
var readsMap = map[asm.BuiltinFunc]bool{
	asm.FnRedirectMap: true, asm.FnSkRedirectMap: true, asm.FnPerfEventRead: true, asm.FnPerfEventReadValue: true,
	asm.FnSkbUnderCgroup: true, asm.FnCurrentTaskUnderCgroup: true, asm.FnRingbufQuery: true,
}
