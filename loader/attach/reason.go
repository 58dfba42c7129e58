package attach

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// reasonBytes is the length of the longest message that drivers give.
const reasonBytes = 128

// withKernelReason runs an attachment and, when it fails, runs it once more while listening for the driver's
// message: a BPF link returns an error number only, but from Linux 6.6 on a tracepoint has the message. Where it is not
// available, the reason is empty and only the error number remains.
func withKernelReason(attach func() error) (reason string, err error) {
	if err := attach(); err == nil {
		return "", nil
	}
	listener, lerr := listenForReason()
	if lerr != nil {
		return "", attach()
	}
	defer listener.close()
	if err = attach(); err != nil {
		reason = listener.message()
	}
	return reason, err
}

type reasonListener struct {
	text *ebpf.Map
	prog *ebpf.Program
	link link.Link
}

func listenForReason() (*reasonListener, error) {
	l := &reasonListener{}
	if err := l.open(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *reasonListener) open() (err error) {
	l.text, err = ebpf.NewMap(&ebpf.MapSpec{Name: "xdpmon_reason", Type: ebpf.Array, KeySize: 4, ValueSize: reasonBytes, MaxEntries: 1})
	if err != nil {
		return err
	}
	if l.prog, err = ebpf.NewProgram(reasonProgram(l.text)); err != nil {
		return err
	}
	l.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "bpf_xdp_link_attach_failed", Program: l.prog})
	return err
}

// reasonProgram copies the tracepoint's only argument, a string, into the map.
func reasonProgram(text *ebpf.Map) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Name: "xdpmon_reason", Type: ebpf.RawTracepoint, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord),
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, text.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "out"),
			asm.Mov.Reg(asm.R1, asm.R0),
			asm.Mov.Imm(asm.R2, reasonBytes),
			asm.Mov.Reg(asm.R3, asm.R6),
			asm.FnProbeReadKernelStr.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
			asm.Return(),
		},
	}
}

func (l *reasonListener) message() string {
	text := make([]byte, reasonBytes)
	if err := l.text.Lookup(uint32(0), text); err != nil {
		return ""
	}
	return unix.ByteSliceToString(text)
}

func (l *reasonListener) close() {
	if l.link != nil {
		l.link.Close()
	}
	if l.prog != nil {
		l.prog.Close()
	}
	if l.text != nil {
		l.text.Close()
	}
}
