package loader

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// hold is one program at one hook, however the kernel keeps it there.
type hold interface {
	// update exchanges the program without a packet passing in between.
	update(prog *ebpf.Program) error
	// release takes the program off; releasing what is gone already is no error.
	release() error
	// leave forgets the hold without taking the program off: somebody else (a pin) keeps it.
	leave() error
	// alive reports whether the program is still on the interface.
	alive() bool
	// pin keeps the program there beyond this process, under the name of a pin: a link at a path, a filter, which
	// stays by itself, by saying so in its name.
	pin(path, name string, prog *ebpf.Program) error
}

// linkHold is a BPF link: it ends with its last file descriptor or pin, so a killed process leaves nothing.
type linkHold struct{ link.Link }

func (h linkHold) update(prog *ebpf.Program) error { return h.Update(prog) }
func (h linkHold) leave() error                    { return h.Link.Close() }

func (h linkHold) pin(path, _ string, _ *ebpf.Program) error {
	l, ok := h.Link.(interface{ FD() int })
	if !ok {
		return fmt.Errorf("pin link %T: it has no file descriptor", h.Link)
	}
	return pinFD(l.FD(), path)
}

// release detaches before it closes: a pin, or another process that holds the link, must not keep it alive.
func (h linkHold) release() error {
	err := h.Detach()
	if errors.Is(err, unix.ENOLINK) || errors.Is(err, link.ErrNotSupported) {
		err = nil
	}
	return errors.Join(err, h.Link.Close())
}

func (h linkHold) alive() bool {
	ifindex, err := linkIfindex(h.Link)
	return err == nil && ifindex != 0
}

// linkIfindex returns the interface of an XDP or TCX link; 0 when that has vanished or the link was detached.
func linkIfindex(l link.Link) (int, error) {
	info, err := l.Info()
	if err != nil {
		return 0, err
	}
	if xdp := info.XDP(); xdp != nil {
		return int(xdp.Ifindex), nil
	}
	if tcx := info.TCX(); tcx != nil {
		return int(tcx.Ifindex), nil
	}
	return 0, fmt.Errorf("link %d is neither XDP nor TCX", info.ID)
}

// linkDirection returns which packets a link sees.
func linkDirection(l link.Link) Direction {
	info, err := l.Info()
	if err == nil && info.TCX() != nil && ebpf.AttachType(info.TCX().AttachType) == ebpf.AttachTCXEgress {
		return Egress
	}
	return Ingress
}

// point is one program of an attachment.
type point struct {
	Hook      Hook
	Mode      Mode // XDP only
	Direction Direction
	Via       string // "xdp", "tcx" or "clsact"
	Frags     bool

	hold hold
	prog *ebpf.Program
}

// where is how messages name the point: "XDP ingress (native)".
func (p point) where() string {
	s := hookName(p.Hook) + " " + string(p.Direction)
	if p.Mode != "" {
		s += " (" + string(p.Mode) + ")"
	}
	return s
}
