package loader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// ErrNothingAttached is wrapped when there is nothing of xdpmon on an interface.
var ErrNothingAttached = errors.New("nothing of xdpmon is attached")

// Detach takes everything that is xdpmon's off an interface: pinned attachments, those of running processes (which
// notice and say so), and filters that a killed run left. Other owners' programs stay. It returns a sentence for each
// thing that it removed; an interface that has vanished may still have pins to remove.
func Detach(iface string) ([]string, error) {
	return detachUnder(bpffsRoot, iface)
}

func detachUnder(root, iface string) ([]string, error) {
	var d detacher
	pins := pinsHere(root)
	for _, name := range pins {
		d.note(unpinLinks(root, name, iface))
	}
	d.note(detachLive(iface))
	for _, name := range pins {
		d.note(removeUnused(root, name, iface))
	}
	if err := errors.Join(d.errs...); err != nil {
		return d.removed, fmt.Errorf("detach %s: %w", iface, err)
	}
	if len(d.removed) == 0 {
		if err := mayLook(); err != nil {
			return nil, fmt.Errorf("detach %s: %w", iface, err)
		}
		return nil, fmt.Errorf("detach %s: %w; `xdpmon status` shows what is", iface, ErrNothingAttached)
	}
	return d.removed, nil
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

// detachLive takes our programs off an interface, whoever holds them.
func detachLive(iface string) ([]string, error) {
	d, err := inspect(iface)
	if errors.Is(err, ErrNoInterface) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	for _, o := range withHolders(occupants(d)) {
		if !o.Ours {
			continue
		}
		if err := o.remove(d.Index); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o, privilegeError(err)))
			continue
		}
		removed = append(removed, fmt.Sprintf("%s: %s removed", iface, o))
	}
	return removed, errors.Join(errs...)
}

func (o Occupant) remove(ifindex int) error {
	if o.filter != nil {
		return (&filterHold{ifindex, o.Direction, o.filter}).release()
	}
	l, err := o.link()
	if err != nil {
		return err
	}
	return linkHold{l}.release()
}

// link opens the link that holds the occupant's program.
func (o Occupant) link() (link.Link, error) {
	if o.Link != 0 {
		return link.NewFromID(o.Link)
	}
	var found link.Link
	err := eachLink(func(l link.Link, info *link.Info) bool {
		if info.XDP() == nil || info.Program != o.Program {
			return true
		}
		var err error
		found, err = link.NewFromID(info.ID)
		return err != nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("find the link of program %d: %w", o.Program, os.ErrNotExist)
	}
	return found, err
}

// mayLook tells a process that sees nothing from one that may not see: without the privilege to list links, and to open
// the folder of pins, every interface looks empty.
func mayLook() error {
	return privilegeError(eachLink(func(link.Link, *link.Info) bool { return false }))
}

// eachLink calls fn with every BPF link of this host until it returns false.
func eachLink(fn func(link.Link, *link.Info) bool) error {
	it := new(link.Iterator)
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil {
			continue // gone since
		}
		if !fn(it.Link, info) {
			return nil
		}
	}
	return it.Err()
}

// pinsUnder lists the names of pinned instances.
func pinsUnder(root string) []string {
	entries, _ := os.ReadDir(filepath.Join(root, pinFolder))
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// pinsHere lists the pins whose interfaces are in the network namespace of the calling thread.
func pinsHere(root string) []string {
	here := netNSInode()
	return slices.DeleteFunc(pinsUnder(root), func(name string) bool {
		meta, err := loadMeta(filepath.Join(root, pinFolder, name, currentPins, metaPin))
		return err == nil && meta.NetNS != here
	})
}

// unpinLinks takes the pinned links of an interface off it and removes their pins.
func unpinLinks(root, name, iface string) ([]string, error) {
	dir := filepath.Join(root, pinFolder, name)
	var removed []string
	var errs []error
	for _, direction := range []Direction{Ingress, Egress} {
		did, err := unpinPoint(dir, iface, direction)
		if did {
			removed = append(removed, fmt.Sprintf("%s: pinned attachment at %s of instance %s removed", iface, direction, name))
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// removeUnused removes an instance that was pinned for an interface and has no attachment left, there or elsewhere.
func removeUnused(root, name, iface string) ([]string, error) {
	dir := filepath.Join(root, pinFolder, name)
	meta, err := loadMeta(filepath.Join(dir, currentPins, metaPin))
	if errors.Is(err, os.ErrNotExist) || err == nil && (!meta.has(iface) || meta.stillUsed(dir, name)) {
		return nil, nil
	}
	if err != nil {
		return nil, privilegeError(err)
	}
	return removeInstance(dir, name)
}

func (m pinMeta) has(iface string) bool {
	for _, i := range m.Interfaces {
		if i.Name == iface {
			return true
		}
	}
	return false
}

// stillUsed reports whether an instance has an attachment left.
func (m pinMeta) stillUsed(dir, name string) bool {
	links, _ := os.ReadDir(filepath.Join(dir, currentPins, "links"))
	if len(links) > 0 {
		return true
	}
	for _, i := range m.Interfaces {
		for _, h := range append(ourFilters(i.Index, Ingress), ourFilters(i.Index, Egress)...) {
			if owner, _ := parseOwner(h.filter.Name); owner.pin == name {
				return true
			}
		}
	}
	return false
}

// removeInstance removes the maps and programs of an instance without attachments. A process that still runs it
// keeps its folder: it holds the lock.
func removeInstance(dir, name string) ([]string, error) {
	lock, err := lockFolder(dir)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return []string{fmt.Sprintf("instance %s stays pinned: a process runs it", name)}, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	removeEmpty(filepath.Dir(dir))
	return []string{fmt.Sprintf("instance %s removed, with its registers", name)}, nil
}

// unpinPoint detaches a pinned link and removes its files.
func unpinPoint(dir, iface string, direction Direction) (bool, error) {
	path := filepath.Join(dir, currentPins, "links", pointPin(iface, direction))
	l, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, privilegeError(err)
	}
	err = linkHold{l}.release()
	entry := filepath.Join(dir, currentPins, "entries", pointPin(iface, direction))
	if gone := os.Remove(entry); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return true, errors.Join(err, os.Remove(path))
}
