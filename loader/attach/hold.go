package attach

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Hold is one program attached to one hook, by whichever mechanism.
type Hold interface {
	// Replace exchanges the program without a packet passing in between.
	Replace(prog *ebpf.Program) error
	// Release detaches the program; releasing a detached one is no error.
	Release() error
	// Leave closes the hold without detaching the program, which a pin keeps attached.
	Leave() error
	// Alive reports whether the program is still on the interface.
	Alive() bool
	// Keep leaves the program attached after this process ends, under the name of a pin: a link is pinned at a path; a
	// filter stays anyway and records the pin in its name.
	Keep(path, name string, prog *ebpf.Program) error
}

// LinkHold is a BPF link: it ends with its last file descriptor or pin, so a killed process leaves nothing.
type LinkHold struct{ link.Link }

func (h LinkHold) Replace(prog *ebpf.Program) error { return h.Update(prog) }
func (h LinkHold) Leave() error                     { return h.Link.Close() }

func (h LinkHold) Keep(path, _ string, _ *ebpf.Program) error {
	l, ok := h.Link.(interface{ FD() int })
	if !ok {
		return fmt.Errorf("pin link %T: it has no file descriptor", h.Link)
	}
	fd, err := unix.FcntlInt(uintptr(l.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("pin link: %w", err)
	}
	own, err := link.NewFromFD(fd) // a second handle of the same link: pinning the first one again would move its earlier pin, which must stay until the new one is complete
	if err != nil {
		return fmt.Errorf("pin link: %w", err)
	}
	return errors.Join(own.Pin(path), own.Close())
}

// Release detaches before it closes: a pin, or another process that holds the link, must not keep it alive.
func (h LinkHold) Release() error {
	err := h.Detach()
	if errors.Is(err, unix.ENOLINK) || errors.Is(err, link.ErrNotSupported) {
		err = nil
	}
	return errors.Join(err, h.Link.Close())
}

func (h LinkHold) Alive() bool {
	ifindex, err := LinkIfindex(h.Link)
	return err == nil && ifindex != 0
}

// LinkIfindex returns the interface of an XDP or TCX link; 0 when that was removed or the link was detached.
func LinkIfindex(l link.Link) (int, error) {
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

// LinkDirection returns which packets a link sees.
func LinkDirection(l link.Link) Direction {
	info, err := l.Info()
	if err == nil && info.TCX() != nil && ebpf.AttachType(info.TCX().AttachType) == ebpf.AttachTCXEgress {
		return Egress
	}
	return Ingress
}

// Point is one program of an attachment.
type Point struct {
	Hook      Hook
	Mode      Mode // XDP only
	Direction Direction
	Via       string // "xdp", "tcx", "clsact" or "tp_btf"
	Frags     bool

	Hold    Hold
	Program *ebpf.Program
	Since   time.Time // just before packets reached the program; zero where an earlier run's attachment was continued
}

// Where is how messages name the point: "XDP ingress (native)".
func (p Point) Where() string {
	if p.Hook == HookSent {
		return hookName(p.Hook)
	}
	s := hookName(p.Hook) + " " + string(p.Direction)
	if p.Mode != "" {
		s += " (" + string(p.Mode) + ")"
	}
	return s
}
