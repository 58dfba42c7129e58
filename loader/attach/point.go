package attach

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// Adopter offers attachments that an earlier run pinned; nil when there are none.
type Adopter interface {
	// Adopt exchanges the program of a pinned attachment for p.prog, and returns nil when there is none that fits.
	Adopt(d *Device, p Point) (Hold, error)
}

// attacher attaches the programs of one interface, one at a time.
type attacher struct {
	src    Source
	dev    *Device
	opts   Options
	adopt  Adopter
	notify func(string, ...any)
	carry  chain.ChainCarryForm // the form of the words that TC egress writes for the start of transmission
}

// attach loads the entry program of a point and attaches it to the interface.
func (at attacher) attach(p Point, mode Mode) (Point, error) {
	if p.Hook == HookTC {
		return at.attachTC(p)
	}
	if mode != ModeAuto {
		p.Mode = mode
		return at.attachXDP(p)
	}
	p.Mode = ModeNative
	native, err := at.attachXDP(p)
	if err == nil || !errors.Is(err, kernel.ErrUnsupported) {
		return native, err
	}
	at.notify("WARNING: falling back to generic XDP, which runs after the allocation of the skb and costs more a packet: %v", err)
	p.Mode = ModeGeneric
	return at.attachXDP(p)
}

func (at attacher) attachXDP(p Point) (Point, error) {
	p.Via, p.Frags = "xdp", kernel.HaveXDPFrags() == nil
	return at.place(p, func(prog *ebpf.Program) (Hold, error) { return at.newXDPLink(p, prog) })
}

func (at attacher) attachTC(p Point) (Point, error) {
	if at.opts.WithoutTCX || errors.Is(kernel.HaveTCX(), ebpf.ErrNotSupported) {
		return at.attachClsact(p)
	}
	p.Via = "tcx"
	return at.place(p, func(prog *ebpf.Program) (Hold, error) { return at.newTCXLink(p, prog) })
}

func (at attacher) attachClsact(p Point) (Point, error) {
	p.Via = "clsact"
	return at.place(p, func(prog *ebpf.Program) (Hold, error) { return addFilter(at.dev.Index, p.Direction, prog) })
}

// place loads the entry program and puts it into an earlier run's attachment or into a new one.
func (at attacher) place(p Point, attach func(*ebpf.Program) (Hold, error)) (Point, error) {
	if err := at.opts.step("entry " + string(p.Direction)); err != nil {
		return p, err
	}
	prog, err := at.src.Entry(at.entryConfig(p))
	if err != nil {
		return p, fmt.Errorf("load the entry program for %s of %s: %w", p.Where(), at.dev.Name, err)
	}
	p.Program = prog
	if err := at.hold(&p, attach); err != nil {
		return p, errors.Join(err, closeProgram(prog))
	}
	return p, nil
}

func (at attacher) hold(p *Point, attach func(*ebpf.Program) (Hold, error)) (err error) {
	if at.adopt != nil {
		if p.Hold, err = at.adopt.Adopt(at.dev, *p); p.Hold != nil || err != nil {
			return err
		}
	}
	if err := at.opts.step("attach " + string(p.Direction)); err != nil {
		return err
	}
	p.Since = time.Now()
	p.Hold, err = attach(p.Program)
	return err
}

func (at attacher) entryConfig(p Point) loader.EntryConfig {
	l3, _ := L3Only(at.dev.HWType)
	cfg := loader.EntryConfig{Kind: loader.TC, IfIndex: at.dev.Index, L3Only: l3, Egress: p.Direction == Egress}
	if p.Hook == HookXDP {
		cfg.Kind, cfg.Frags = loader.XDP, p.Frags
	}
	if p.Hook == HookTC && p.Direction == Egress {
		cfg.Carry = at.carry
	}
	if p.Mode == ModeGeneric {
		cfg.MTU = at.dev.MTU // GRO runs before generic XDP: a longer packet was merged
	}
	return cfg
}

// newXDPLink attaches in one mode only: the kernel never chooses another one silently.
func (at attacher) newXDPLink(p Point, prog *ebpf.Program) (Hold, error) {
	flags := link.XDPDriverMode
	if p.Mode == ModeGeneric {
		flags = link.XDPGenericMode
	}
	var l link.Link
	reason, err := withKernelReason(func() (err error) {
		l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: at.dev.Index, Flags: flags})
		return err
	})
	if err != nil {
		return nil, explainXDP(at.dev, p, reason, err)
	}
	return LinkHold{l}, nil
}

// newTCXLink attaches after the programs that are attached already.
func (at attacher) newTCXLink(p Point, prog *ebpf.Program) (Hold, error) {
	l, err := link.AttachTCX(link.TCXOptions{
		Program: prog, Interface: at.dev.Index, Attach: tcxType(p.Direction), Anchor: link.Tail(),
	})
	if err != nil {
		return nil, fmt.Errorf("attach %s to %s: %w", p.Where(), at.dev.Name, privilege.Explain(err))
	}
	return LinkHold{l}, nil
}

// explainXDP returns an error with the kernel's reason for the refusal and the remedy.
func explainXDP(d *Device, p Point, reason string, err error) error {
	what := fmt.Sprintf("attach %s to %s", p.Where(), d.Name)
	switch {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s: %w: %s (%w); use --hook tc, which runs as well", what, ErrBusy, currentXDP(d), err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w", what, privilege.Explain(err))
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%s: %w: %w", what, ErrNoInterface, err)
	}
	if reason == "" {
		reason = guessReason(d, err)
	} else {
		reason = fmt.Sprintf("the kernel reports %q", reason)
	}
	return fmt.Errorf("%s: %w: %s (%w); %s", what, kernel.ErrUnsupported, reason, err, remedyXDP(p))
}

// guessReason returns a likely reason where the kernel gives an error number only.
func guessReason(d *Device, err error) string {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) && d.NativeXDP.State == kernel.Unsupported:
		return "the driver has no native XDP"
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Sprintf("the driver refuses it, perhaps because of the MTU of %d bytes, the number of queues, or LRO", d.MTU)
	}
	return "the kernel refuses it"
}

func remedyXDP(p Point) string {
	if p.Mode == ModeGeneric {
		return "use --hook tc"
	}
	return "use --mode generic or --mode auto, or --hook tc"
}

// currentXDP inspects the interface again: the program may have been attached after the first inspection.
func currentXDP(d *Device) string {
	now, err := Inspect(d.Name)
	if err != nil {
		now = d
	}
	return DescribeXDP(now)
}
