// Package kernel probes the features of the running kernel by using them.
package kernel

import (
	"errors"
	"math"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/privilege"
)

// ErrUnsupported is wrapped when this kernel or device lacks something; the text names it and what provides it.
var ErrUnsupported = errors.New("not supported here")

// State is the outcome of a probe.
type State string

// Only a conclusive result of the kernel counts as Supported or Unsupported. Everything else, above all a missing
// privilege, is Unknown, with the reason.
const (
	Supported   State = "supported"
	Unsupported State = "unsupported"
	Unknown     State = "unknown"
)

// Answer is the result of a probe.
type Answer struct {
	State  State
	Detail string // the observation, or why the state is unknown
}

// Conclude turns the error of a probe into an answer: no error and "not supported" are conclusive, nothing else is.
func Conclude(err error) Answer {
	switch {
	case err == nil:
		return Answer{State: Supported}
	case errors.Is(err, ebpf.ErrNotSupported):
		return Answer{State: Unsupported}
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return Answer{Unknown, "not permitted: " + privilege.Remedy(privilege.AttachNeeds)}
	}
	return Answer{Unknown, err.Error()}
}

func Release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Returning is the smallest program of a type.
func Returning(t ebpf.ProgramType, code int32) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Name:         "xdpmon_probe",
		Type:         t,
		License:      "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, code), asm.Return()},
	}
}

// Try loads a program and closes it. For an otherwise valid program, the verifier's "invalid argument" means that the
// kernel does not know an instruction or flag.
func Try(spec *ebpf.ProgramSpec) error {
	prog, err := ebpf.NewProgramWithOptions(spec, ebpf.ProgramOptions{LogDisabled: true})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.E2BIG) {
		return ebpf.ErrNotSupported
	}
	if err != nil {
		return err
	}
	return prog.Close()
}

// HaveXDPFrags probes for programs that declare fragments. All programs of a chain must agree on it.
func HaveXDPFrags() error {
	spec := Returning(ebpf.XDP, 2)
	spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	return Try(spec)
}

// haveTCX caches a positive result, which does not change.
var haveTCX atomic.Bool

// HaveTCX probes for TCX links by attaching to an interface that cannot exist.
func HaveTCX() error {
	if haveTCX.Load() {
		return nil
	}
	err := askTCX()
	haveTCX.Store(err == nil)
	return err
}

// haveSent caches a positive result, likewise.
var haveSent atomic.Bool

// HaveSent probes for programs at the start of transmission: the trace point net_dev_start_xmit, with type information of its arguments.
func HaveSent() error {
	if haveSent.Load() {
		return nil
	}
	spec := Returning(ebpf.Tracing, 0)
	spec.AttachType, spec.AttachTo = ebpf.AttachTraceRawTp, "net_dev_start_xmit"
	err := Try(spec)
	if errors.Is(err, btf.ErrNotFound) || errors.Is(err, btf.ErrNotSupported) {
		err = ebpf.ErrNotSupported
	}
	haveSent.Store(err == nil)
	return err
}

func askTCX() error {
	prog, err := ebpf.NewProgram(Returning(ebpf.SchedCLS, -1))
	if err != nil {
		return err
	}
	defer prog.Close()
	l, err := link.AttachTCX(link.TCXOptions{Interface: math.MaxInt32, Program: prog, Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err == nil {
		l.Close()
		return errors.New("attached to an interface that does not exist")
	}
	return err
}
