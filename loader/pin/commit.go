package pin

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/loader/attach"
)

// Commit pins maps, programs and attachments in a second folder next to the current one, and renames that into place. It may be
// called again, after an interface reappeared. When it fails, the earlier pin stays.
func (p *Pin) Commit(src attach.Source, attached []*attach.Attachment) error {
	if err := p.build(src, attached); err != nil {
		return errors.Join(fmt.Errorf("pin %s: %w", p.opts.Name, err), os.RemoveAll(p.next()))
	}
	if err := p.swap(); err != nil {
		return errors.Join(fmt.Errorf("pin %s: move it into place: %w", p.opts.Name, err), os.RemoveAll(p.next()))
	}
	for _, h := range p.adopted {
		h.commit()
	}
	p.adopted = nil
	earlier := p.meta
	p.meta = p.want
	if err := errors.Join(p.dropFilters(earlier), p.dropEarlier()); err != nil {
		return fmt.Errorf("pin %s: remove the earlier one: %w", p.opts.Name, err)
	}
	return nil
}

// dropFilters removes the filters of an earlier run that were not adopted.
func (p *Pin) dropFilters(earlier pinMeta) error {
	var errs []error
	for _, i := range earlier.Interfaces {
		for _, pt := range i.Points {
			if pt.Via == "clsact" && !p.meta.covers(i.Index, pt.Direction) {
				errs = append(errs, p.releaseFilters(i.Index, pt.Direction))
			}
		}
	}
	return errors.Join(errs...)
}

// covers reports whether a filter belongs to the described pin.
func (m pinMeta) covers(ifindex int, dir attach.Direction) bool {
	for _, i := range m.Interfaces {
		for _, pt := range i.Points {
			if i.Index == ifindex && pt.Direction == dir && pt.Via == "clsact" {
				return true
			}
		}
	}
	return false
}

// dropEarlier removes the earlier pin, which is at next after the swap. Links that were not adopted are
// detached one by one: removing the last pin of a link detaches it only some time later.
func (p *Pin) dropEarlier() error {
	adopted := map[link.ID]bool{}
	for _, path := range linkPins(p.path()) {
		if id, ok := pinnedLinkID(path); ok {
			adopted[id] = true
		}
	}
	var errs []error
	for _, path := range linkPins(p.next()) {
		if id, ok := pinnedLinkID(path); ok && !adopted[id] {
			errs = append(errs, releasePinned(path))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(p.next()))...)
}

func linkPins(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "links", "*"))
	return paths
}

func releasePinned(path string) error {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return err
	}
	return attach.LinkHold{Link: l}.Release()
}

func (p *Pin) swap() error {
	if err := p.step("swap"); err != nil {
		return err
	}
	return swapInto(p.next(), p.path())
}

func (p *Pin) build(src attach.Source, attached []*attach.Attachment) error {
	if err := os.RemoveAll(p.next()); err != nil {
		return err
	}
	if err := pinEach(p, "maps", src.Maps()); err != nil {
		return err
	}
	if err := pinEach(p, "programs", src.Programs()); err != nil {
		return err
	}
	p.want.Interfaces = nil
	for _, name := range p.Waiting { // so that `xdpmon detach` finds the pin by the interfaces' names
		p.want.Interfaces = append(p.want.Interfaces, pinnedInterface{Name: name})
	}
	for _, a := range attached {
		if err := p.buildAttachment(a); err != nil {
			return err
		}
	}
	if err := p.step("describe"); err != nil {
		return err
	}
	return p.want.store(p.next(metaPin), p.since)
}

// object is a map or a program. Pinning a handle again moves its earlier pin, which has to stay until the new one is complete; a clone has no earlier pin.
type object[T any] interface {
	Clone() (T, error)
	Pin(path string) error
	Close() error
}

// pinEach pins maps or programs, in the order of their names.
func pinEach[T object[T]](p *Pin, kind string, objects map[string]T) error {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if err := pinOne(p, kind, name, objects[name]); err != nil {
			return err
		}
	}
	return nil
}

// pinOne pins under next/KIND/NAME; a slash in the name is a folder.
func pinOne[T object[T]](p *Pin, kind, name string, o T) error {
	if err := p.step("pin " + kind + "/" + name); err != nil {
		return err
	}
	path := p.next(kind, pinName(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	own, err := o.Clone()
	if err != nil {
		return err
	}
	return errors.Join(own.Pin(path), own.Close())
}

func (p *Pin) buildAttachment(a *attach.Attachment) error {
	described := pinnedInterface{Name: a.Interface, Index: a.IfIndex}
	err := a.Each(func(pt attach.Point) error {
		described.Points = append(described.Points, pinnedPoint{pt.Direction, pt.Hook, pt.Via, pt.Mode})
		return p.buildPoint(a.Interface, pt)
	})
	if err != nil {
		return err
	}
	p.want.Interfaces = append(p.want.Interfaces, described)
	return nil
}

func (p *Pin) buildPoint(iface string, pt attach.Point) error {
	name := pointPin(iface, pt.Direction)
	if err := pinOne(p, "entries", name, pt.Program); err != nil {
		return err
	}
	if err := p.step("pin links/" + name); err != nil {
		return err
	}
	path := p.next("links", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return pt.Hold.Keep(path, p.opts.Name, pt.Program)
}
