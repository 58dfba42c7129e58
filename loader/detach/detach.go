// Package detach detaches xdpmon's programs from interfaces, of any process.
package detach

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/loader/status"
)

// ErrNothing is wrapped when there is nothing of xdpmon on an interface.
var ErrNothing = errors.New("nothing of xdpmon is attached")

// Detach detaches everything of xdpmon from an interface: pinned attachments, those of running processes (which
// detect and report that), and filters that a killed run left. Other owners' programs stay. An interface that has vanished may
// still have pins to remove. Where nothing is on an interface of that name, it is the name of a pin or the number
// of an instance (see Attachment), in whatever network namespace its interfaces are. Detach returns a sentence for each
// thing that it removed.
func Detach(name string) ([]string, error) {
	return detachUnder(pin.Root, name)
}

func detachUnder(root, name string) ([]string, error) {
	pin.RemoveEmpty(root)
	for _, by := range []func(root, name string) *detacher{detachInterface, detachPinned, detachInstance} {
		d := by(root, name)
		if err := errors.Join(d.errs...); err != nil {
			return d.removed, fmt.Errorf("detach %s: %w", name, err)
		}
		if len(d.removed) > 0 {
			return d.removed, nil
		}
	}
	if err := mayLook(); err != nil {
		return nil, fmt.Errorf("detach %s: %w", name, err)
	}
	return nil, fmt.Errorf("detach %s: %w; `xdpmon status` shows what is", name, ErrNothing)
}

func detachInterface(root, iface string) *detacher {
	d := &detacher{}
	pins := pin.Here(root)
	for _, name := range pins {
		d.note(pin.RemoveLinks(root, name, iface))
	}
	d.note(detachLive(iface))
	for _, name := range pins {
		d.note(pin.RemoveUnused(root, name, iface))
	}
	return d
}

func detachPinned(root, name string) *detacher {
	d := &detacher{}
	d.note(pin.Detach(root, name))
	return d
}

// detachInstance takes an instance off its interfaces by the number that status gives it.
func detachInstance(root, name string) *detacher {
	d := &detacher{}
	number, err := strconv.ParseUint(name, 10, 32)
	if err != nil || number == 0 {
		return d
	}
	all, err := status.Under(root)
	d.note(nil, err)
	for _, a := range all {
		if a.Instance != ebpf.MapID(number) {
			continue
		}
		if a.Pin != "" {
			return detachPinned(root, a.Pin)
		}
		if err := a.Remove(a.Index); err != nil {
			d.note(nil, fmt.Errorf("%s: %w", a.Occupant, privilege.ExplainLook(err)))
			continue
		}
		d.note([]string{fmt.Sprintf("%s: %s of instance %s removed", a.Where(), a.Occupant, name)}, nil)
	}
	return d
}

// detacher collects what was removed and what could not be.
type detacher struct {
	removed []string
	errs    []error
}

func (d *detacher) note(removed []string, err error) {
	d.removed = append(d.removed, removed...)
	if err != nil {
		d.errs = append(d.errs, err)
	}
}

// detachLive detaches our programs from an interface, of any process.
func detachLive(iface string) ([]string, error) {
	d, err := attach.Inspect(iface)
	if errors.Is(err, attach.ErrNoInterface) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	for _, o := range attach.WithHolders(append(attach.Watched(d), attach.Occupants(d)...)) {
		if !o.Ours {
			continue
		}
		if err := o.Remove(d.Index); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o, privilege.ExplainLook(err)))
			continue
		}
		removed = append(removed, fmt.Sprintf("%s: %s removed", iface, o))
	}
	return removed, errors.Join(errs...)
}

// mayLook distinguishes "nothing is attached" from "not permitted to list": without the privilege to list links, and to open
// the folder of pins, every interface looks empty.
func mayLook() error {
	return privilege.ExplainLook(attach.EachLink(func(link.Link, *link.Info) bool { return false }))
}
