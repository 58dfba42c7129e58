// Package policer is a plain policer: a token bucket of a few instructions, for kernels without act_police. What TCP makes of it is what TCP itself leaves unused, and what it costs is what one word costs.
package policer

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// Attach drops what is beyond the rate and a burst where packets arrive at or leave a host (ebpf.AttachTCXIngress, AttachTCXEgress). End it.
func Attach(h *netns.Host, at ebpf.AttachType, mbit float64, burst time.Duration) (end func() error, err error) {
	word, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("create the policer's word: %w", err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, AttachType: at, License: "GPL", Instructions: tokenBucket(word.FD(), mbit, burst)})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load the policer: %w", err), word.Close())
	}
	var attached link.Link
	err = h.Run(func() (err error) {
		attached, err = link.AttachTCX(link.TCXOptions{Interface: h.Index, Program: program, Attach: at})
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach the policer: %w", err), program.Close(), word.Close())
	}
	return func() error { return errors.Join(attached.Close(), program.Close(), word.Close()) }, nil
}

// tokenBucket passes a packet while what has passed is paid for within a burst. The word is the time at which it is.
func tokenBucket(word int, mbit float64, burst time.Duration) asm.Instructions {
	const length, drop, next, shift = 0, 2, -1, 10 // offsetof(struct __sk_buff, len), with the MAC header where packets arrive; TCX_DROP, TCX_NEXT
	byteCost := int32(math.Round(8e3 / mbit * (1 << shift)))
	return asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, length, asm.Word),
		asm.Mul.Imm(asm.R6, byteCost),
		asm.RSh.Imm(asm.R6, shift),
		asm.FnKtimeGetNs.Call(),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.StoreImm(asm.R10, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, word),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.JGE.Reg(asm.R1, asm.R7, "owed"),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.Mov.Reg(asm.R2, asm.R1).WithSymbol("owed"),
		asm.Sub.Reg(asm.R2, asm.R7),
		asm.JGT.Imm(asm.R2, int32(burst), "drop"),
		asm.Add.Reg(asm.R1, asm.R6),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, next).WithSymbol("pass"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, drop).WithSymbol("drop"),
		asm.Return(),
	}
}
