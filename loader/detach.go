package loader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// ErrNothingAttached is wrapped when there is nothing of xdpmon on an interface.
var ErrNothingAttached = errors.New("nothing of xdpmon is attached")

// Detach takes everything that is xdpmon's off an interface: pinned attachments, those of running processes (which
// notice and say so), and filters that a killed run left. Other owners' programs stay. An interface that has vanished may
// still have pins to remove. Where nothing is on an interface of that name, it is the name of a pin or the number
// of an instance (see AttachmentInfo), in whatever network namespace its interfaces are. Detach returns a sentence for each
// thing that it removed.
func Detach(name string) ([]string, error) {
	return detachUnder(bpffsRoot, name)
}

func detachUnder(root, name string) ([]string, error) {
	removeEmptyPins(root)
	for _, by := range []func(root, name string) *detacher{detachInterface, detachPin, detachInstance} {
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
	return nil, fmt.Errorf("detach %s: %w; `xdpmon status` shows what is", name, ErrNothingAttached)
}

func detachInterface(root, iface string) *detacher {
	d := &detacher{}
	pins := pinsHere(root)
	for _, name := range pins {
		d.note(unpinLinks(root, name, iface))
	}
	d.note(detachLive(iface))
	for _, name := range pins {
		d.note(removeUnused(root, name, iface))
	}
	return d
}

// detachPin takes a pinned instance off all its interfaces. A link can be taken off from any network namespace.
func detachPin(root, name string) *detacher {
	d := &detacher{}
	if !slices.Contains(pinsUnder(root), name) {
		return d
	}
	dir := filepath.Join(root, pinFolder, name)
	meta, err := loadMeta(filepath.Join(dir, currentPins, metaPin))
	if err != nil {
		d.note(nil, withRemedy(err))
		return d
	}
	for _, i := range meta.Interfaces {
		d.note(unpinLinks(root, name, i.Name))
		if meta.NetNS == netNSInode() {
			d.note(removeFilters(name, i))
		}
	}
	if meta.stillUsed(dir, name) {
		return d
	}
	d.note(removeInstance(dir, name))
	return d
}

// removeFilters removes the filters that are kept on an interface under the name of a pin.
func removeFilters(pin string, i pinnedInterface) (removed []string, err error) {
	var errs []error
	for _, h := range append(ourFilters(i.Index, Ingress), ourFilters(i.Index, Egress)...) {
		if owner, _ := parseOwner(h.filter.Name); owner.pin != pin {
			continue
		}
		errs = append(errs, h.release())
		removed = append(removed, fmt.Sprintf("%s: filter at %s of instance %s removed", i.Name, h.dir, pin))
	}
	return removed, errors.Join(errs...)
}

// detachInstance takes an instance off its interfaces by the number that status gives it.
func detachInstance(root, name string) *detacher {
	d := &detacher{}
	number, err := strconv.ParseUint(name, 10, 32)
	if err != nil || number == 0 {
		return d
	}
	all, err := statusUnder(root)
	d.note(nil, err)
	for _, a := range all {
		if a.Instance != ebpf.MapID(number) {
			continue
		}
		if a.Pin != "" {
			return detachPin(root, a.Pin)
		}
		if err := a.remove(a.Index); err != nil {
			d.note(nil, fmt.Errorf("%s: %w", a.Occupant, withLookRemedy(err)))
			continue
		}
		d.note([]string{fmt.Sprintf("%s: %s of instance %s removed", a.where(), a.Occupant, name)}, nil)
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
			errs = append(errs, fmt.Errorf("%s: %w", o, withLookRemedy(err)))
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
	return withLookRemedy(eachLink(func(link.Link, *link.Info) bool { return false }))
}

// mostTries is how often a link that is being made is looked at again: some seconds.
const mostTries = 2000

// eachLink calls fn with every BPF link of this host until it returns false.
func eachLink(fn func(link.Link, *link.Info) bool) error {
	it := new(link.Iterator)
	defer func() { it.Close() }()
	for tries := 0; ; tries++ {
		for it.Next() {
			info, err := it.Link.Info()
			if err != nil {
				continue // gone since
			}
			if !fn(it.Link, info) {
				return nil
			}
		}
		if !errors.Is(it.Err(), unix.EAGAIN) || tries == mostTries {
			return it.Err()
		}
		// A link is being made: it has a number already, and can be opened when it is attached.
		time.Sleep(time.Millisecond)
		it = &link.Iterator{ID: it.ID}
	}
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

// removeEmptyPins removes what a start that was killed before it had pinned anything left: a folder without an instance. A
// folder that a process is working on is locked. What cannot be removed hurts nobody.
func removeEmptyPins(root string) {
	for _, name := range pinsUnder(root) {
		dir := filepath.Join(root, pinFolder, name)
		if holdsInstance(dir) {
			continue
		}
		lock, err := lockFolder(dir)
		if err != nil {
			continue
		}
		if !holdsInstance(dir) && recoverPins(dir) == nil {
			removeEmpty(dir, filepath.Dir(dir))
		}
		lock.Close()
	}
}

// holdsInstance reports whether something is pinned in a folder, were it one that stepped aside.
func holdsInstance(dir string) bool {
	current := filepath.Join(dir, currentPins)
	for _, path := range []string{current, current + asideSuffix} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
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
		return nil, withRemedy(err)
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
		return []string{fmt.Sprintf("instance %s goes when the process that runs it ends", name)}, nil
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
		return false, withRemedy(err)
	}
	err = linkHold{l}.release()
	entry := filepath.Join(dir, currentPins, "entries", pointPin(iface, direction))
	if gone := os.Remove(entry); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return true, errors.Join(err, os.Remove(path))
}
