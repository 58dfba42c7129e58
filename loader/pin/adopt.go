package pin

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/attach"
)

// pointPin names the pin of a point: links/eth0-ingress.
func pointPin(iface string, dir attach.Direction) string { return pinName(iface) + "-" + string(dir) }

// adoptedHold is a hold of an earlier run that now runs our program. Until the pin is committed it can be restored.
type adoptedHold struct {
	attach.Hold
	old       *ebpf.Program
	committed bool
	done      bool
}

// Release ends the attachment after the commit, and restores the earlier program before it.
func (h *adoptedHold) Release() error {
	if !h.committed {
		return h.restore()
	}
	return h.Hold.Release()
}

// restore puts the earlier program back and closes the hold.
func (h *adoptedHold) restore() error {
	if h.committed || h.done {
		return nil
	}
	h.done = true
	var err error
	if h.old != nil {
		err = h.Replace(h.old)
		h.old.Close()
	}
	return errors.Join(err, h.Hold.Leave())
}

func (h *adoptedHold) commit() {
	h.committed = true
	if h.old != nil {
		h.old.Close()
	}
}

// pinnedLink opens the link of a point; nil when there is none.
func (p *Pin) pinnedLink(iface string, dir attach.Direction) link.Link {
	l, err := link.LoadPinnedLink(p.path("links", pointPin(iface, dir)), nil)
	if err != nil {
		return nil
	}
	return l
}

// Adopt exchanges the program of a pinned attachment. nil means that a new one is needed: there was none, its
// interface was removed (ENOLINK), or it is of another kind (EINVAL). An attachment at another hook is detached first, so
// that no packet is counted twice; this is the only step that a later failure does not undo.
func (p *Pin) Adopt(d *attach.Device, pt attach.Point) (attach.Hold, error) {
	if err := p.step("adopt " + string(pt.Direction)); err != nil {
		return nil, err
	}
	if pt.Via != "clsact" {
		if err := p.releaseFilters(d.Index, pt.Direction); err != nil {
			return nil, err
		}
	}
	h := p.earlier(d, pt)
	if h == nil {
		return nil, nil
	}
	err := h.Replace(pt.Program)
	switch {
	case err == nil:
		a := &adoptedHold{Hold: h, old: p.earlierProgram(d.Name, pt.Direction)}
		p.adopted = append(p.adopted, a)
		return a, nil
	case errors.Is(err, unix.ENOLINK), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		p.opts.Notice("%s: the pinned attachment at %s cannot be continued (%v); attaching again, counts are preserved", d.Name, pt.Where(), err)
		return nil, h.Release()
	}
	return nil, errors.Join(fmt.Errorf("adopt %s of %s: %w", pt.Where(), d.Name, err), h.Leave())
}

// earlier finds the pinned attachment of a point that is still on this interface by the same mechanism. One by
// another mechanism is detached.
func (p *Pin) earlier(d *attach.Device, pt attach.Point) attach.Hold {
	if pt.Via == "clsact" {
		return p.earlierFilter(d, pt)
	}
	l := p.pinnedLink(d.Name, pt.Direction)
	if l == nil {
		return nil
	}
	h := attach.LinkHold{Link: l}
	if fits(l, d, pt) {
		return h
	}
	if err := h.Release(); err != nil {
		p.opts.Notice("%s: detaching the pinned attachment at %s failed: %v", d.Name, pt.Where(), err)
	}
	return nil
}

// fits reports whether a pinned link is of the interface, kind, direction and mode that is wanted now.
func fits(l link.Link, d *attach.Device, pt attach.Point) bool {
	info, err := l.Info()
	if err != nil {
		return false
	}
	if index, err := attach.LinkIfindex(l); err != nil || index != d.Index {
		return false
	}
	if pt.Hook == attach.HookXDP {
		return info.XDP() != nil && d.XDPMode == pt.Mode
	}
	return info.TCX() != nil && attach.LinkDirection(l) == pt.Direction
}

func (p *Pin) earlierFilter(d *attach.Device, pt attach.Point) attach.Hold {
	if found := p.filters(d.Index, pt.Direction); len(found) > 0 {
		return found[0]
	}
	return nil
}

// filters are the filters that carry the name of this pin.
func (p *Pin) filters(ifindex int, dir attach.Direction) []*attach.FilterHold {
	return slices.DeleteFunc(attach.OurFilters(ifindex, dir), func(h *attach.FilterHold) bool {
		owner, _ := attach.ParseOwner(h.Filter.Name)
		return owner.Pin != p.opts.Name
	})
}

func (p *Pin) releaseFilters(ifindex int, dir attach.Direction) error {
	var errs []error
	for _, h := range p.filters(ifindex, dir) {
		errs = append(errs, h.Release())
	}
	return errors.Join(errs...)
}

// earlierProgram is the entry program that restoring an adopted hold puts back.
func (p *Pin) earlierProgram(iface string, dir attach.Direction) *ebpf.Program {
	prog, err := ebpf.LoadPinnedProgram(p.path("entries", pointPin(iface, dir)), nil)
	if err != nil {
		return nil
	}
	return prog
}

func (p *Pin) step(name string) error {
	if p.opts.fail == nil {
		return nil
	}
	return p.opts.fail(name)
}

func (p *Pin) next(parts ...string) string {
	return filepath.Join(append([]string{p.dir, nextPins}, parts...)...)
}
