package loader

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// adopter offers what an earlier run left pinned; nil when there is nothing to adopt.
type adopter interface {
	// adopt exchanges the program of a pinned attachment for p.prog, and returns nil when there is none that fits.
	adopt(d *device, p point) (hold, error)
}

// attacher puts one program after the other on one interface.
type attacher struct {
	src   Source
	dev   *device
	opts  AttachOptions
	adopt adopter
	say   func(string, ...any)
}

// attach loads the entry program of a point and puts it on the interface.
func (at attacher) attach(p point, mode Mode) (point, error) {
	if p.Hook == HookTC {
		return at.attachTC(p)
	}
	if mode != ModeAuto {
		p.Mode = mode
		return at.attachXDP(p)
	}
	p.Mode = ModeNative
	native, err := at.attachXDP(p)
	if err == nil || !errors.Is(err, ErrUnsupported) {
		return native, err
	}
	at.say("WARNING: falling back to generic XDP, which runs behind the allocation of the skb and costs more a packet: %v", err)
	p.Mode = ModeGeneric
	return at.attachXDP(p)
}

func (at attacher) attachXDP(p point) (point, error) {
	p.Via, p.Frags = "xdp", HaveXDPFrags() == nil
	return at.place(p, func(prog *ebpf.Program) (hold, error) { return at.newXDPLink(p, prog) })
}

func (at attacher) attachTC(p point) (point, error) {
	if at.opts.withoutTCX || errors.Is(HaveTCX(), ebpf.ErrNotSupported) {
		return at.attachClsact(p)
	}
	p.Via = "tcx"
	return at.place(p, func(prog *ebpf.Program) (hold, error) { return at.newTCXLink(p, prog) })
}

func (at attacher) attachClsact(p point) (point, error) {
	p.Via = "clsact"
	return at.place(p, func(prog *ebpf.Program) (hold, error) { return addFilter(at.dev.Index, p.Direction, prog) })
}

// place loads the entry program and hands it to an earlier run's attachment or to a new one.
func (at attacher) place(p point, attach func(*ebpf.Program) (hold, error)) (point, error) {
	if err := at.opts.step("entry " + string(p.Direction)); err != nil {
		return p, err
	}
	prog, err := at.src.Entry(at.entryConfig(p))
	if err != nil {
		return p, fmt.Errorf("load the entry program for %s of %s: %w", p.where(), at.dev.Name, err)
	}
	p.prog = prog
	if p.hold, err = at.holdFor(p, attach); err != nil {
		return p, errors.Join(err, closeProgram(prog))
	}
	return p, nil
}

func (at attacher) holdFor(p point, attach func(*ebpf.Program) (hold, error)) (hold, error) {
	if at.adopt != nil {
		if h, err := at.adopt.adopt(at.dev, p); h != nil || err != nil {
			return h, err
		}
	}
	if err := at.opts.step("attach " + string(p.Direction)); err != nil {
		return nil, err
	}
	return attach(p.prog)
}

func (at attacher) entryConfig(p point) EntryConfig {
	l3, _ := l3Only(at.dev.HWType)
	cfg := EntryConfig{Kind: TC, IfIndex: at.dev.Index, L3Only: l3, Egress: p.Direction == Egress}
	if p.Hook == HookXDP {
		cfg.Kind, cfg.Frags = XDP, p.Frags
	}
	if p.Mode == ModeGeneric {
		cfg.MTU = at.dev.MTU // GRO comes before generic XDP: what is longer was merged
	}
	return cfg
}

// newXDPLink attaches in one mode only: the kernel never chooses another one silently.
func (at attacher) newXDPLink(p point, prog *ebpf.Program) (hold, error) {
	flags := link.XDPDriverMode
	if p.Mode == ModeGeneric {
		flags = link.XDPGenericMode
	}
	var l link.Link
	said, err := withKernelReason(func() (err error) {
		l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: at.dev.Index, Flags: flags})
		return err
	})
	if err != nil {
		return nil, explainXDP(at.dev, p, said, err)
	}
	return linkHold{l}, nil
}

// newTCXLink attaches behind the programs that are there already.
func (at attacher) newTCXLink(p point, prog *ebpf.Program) (hold, error) {
	l, err := link.AttachTCX(link.TCXOptions{
		Program: prog, Interface: at.dev.Index, Attach: tcxType(p.Direction), Anchor: link.Tail(),
	})
	if err != nil {
		return nil, fmt.Errorf("attach %s to %s: %w", p.where(), at.dev.Name, withRemedy(err))
	}
	return linkHold{l}, nil
}

// explainXDP says in the kernel's words why XDP was refused, and what to do.
func explainXDP(d *device, p point, said string, err error) error {
	what := fmt.Sprintf("attach %s to %s", p.where(), d.Name)
	switch {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s: %w: %s (%w); use --hook tc, which runs beside it", what, ErrBusy, currentXDP(d), err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w", what, withRemedy(err))
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%s: %w: %w", what, ErrNoInterface, err)
	}
	reason := guessReason(d, err)
	if said != "" {
		reason = fmt.Sprintf("the kernel says %q", said)
	}
	return fmt.Errorf("%s: %w: %s (%w); %s", what, ErrUnsupported, reason, err, remedyXDP(p))
}

// guessReason stands in for the kernel's own words where it gives a number only.
func guessReason(d *device, err error) string {
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) && d.NativeXDP.State == Unsupported:
		return "the driver has no native XDP"
	case errors.Is(err, unix.ERANGE), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Sprintf("the driver refuses it, perhaps because of the MTU of %d bytes, the number of queues, or LRO", d.MTU)
	}
	return "the kernel refuses it"
}

func remedyXDP(p point) string {
	if p.Mode == ModeGeneric {
		return "use --hook tc"
	}
	return "use --mode generic or --mode auto, or --hook tc"
}

// currentXDP looks again: the program may have come after the interface was inspected.
func currentXDP(d *device) string {
	now, err := inspect(d.Name)
	if err != nil {
		now = d
	}
	return describeXDP(now)
}
