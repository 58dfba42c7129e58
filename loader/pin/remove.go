package pin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/namespace"
	"github.com/xdpmon/xdpmon/loader/privilege"
)

// Detach detaches a pinned instance from all its interfaces. Links can be detached from any network namespace.
func Detach(root, name string) (removed []string, err error) {
	if !slices.Contains(Names(root), name) {
		return nil, nil
	}
	var errs []error
	note := func(did []string, err error) {
		removed = append(removed, did...)
		errs = append(errs, err)
	}
	dir := filepath.Join(root, pinFolder, name)
	meta, err := loadMeta(filepath.Join(dir, currentPins, metaPin))
	if err != nil {
		return nil, privilege.Explain(err)
	}
	for _, i := range meta.Interfaces {
		note(RemoveLinks(root, name, i.Name))
		if meta.NetNS == namespace.Inode() {
			note(removeFilters(name, i))
		}
	}
	if !meta.stillUsed(dir, name) {
		note(removeInstance(dir, name))
	}
	return removed, errors.Join(errs...)
}

// removeFilters removes the filters of an interface that carry the name of a pin.
func removeFilters(pin string, i pinnedInterface) (removed []string, err error) {
	var errs []error
	for _, h := range append(attach.OurFilters(i.Index, attach.Ingress), attach.OurFilters(i.Index, attach.Egress)...) {
		if owner, _ := attach.ParseOwner(h.Filter.Name); owner.Pin != pin {
			continue
		}
		errs = append(errs, h.Release())
		removed = append(removed, fmt.Sprintf("%s: filter at %s of instance %s removed", i.Name, h.Direction, pin))
	}
	return removed, errors.Join(errs...)
}

// Names lists the names of pinned instances.
func Names(root string) []string {
	entries, _ := os.ReadDir(filepath.Join(root, pinFolder))
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// RemoveEmpty removes folders without an instance: a start that is killed before it has pinned anything leaves one. The
// folder of a running process is locked. Failures are ignored: such a folder does no harm.
func RemoveEmpty(root string) {
	for _, name := range Names(root) {
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

// holdsInstance reports whether a folder, current or renamed, has pins.
func holdsInstance(dir string) bool {
	current := filepath.Join(dir, currentPins)
	for _, path := range []string{current, current + asideSuffix} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}

// Here lists the pins whose interfaces are in the network namespace of the calling thread.
func Here(root string) []string {
	here := namespace.Inode()
	return slices.DeleteFunc(Names(root), func(name string) bool {
		meta, err := loadMeta(filepath.Join(root, pinFolder, name, currentPins, metaPin))
		return err == nil && meta.NetNS != here
	})
}

// RemoveLinks detaches the pinned links of an interface and removes their pins.
func RemoveLinks(root, name, iface string) ([]string, error) {
	dir := filepath.Join(root, pinFolder, name)
	var removed []string
	var errs []error
	for _, direction := range []attach.Direction{attach.Ingress, attach.Egress} {
		did, err := unpinPoint(dir, iface, direction)
		if did {
			removed = append(removed, fmt.Sprintf("%s: pinned attachment at %s of instance %s removed", iface, direction, name))
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// RemoveUnused removes an instance that was pinned for an interface and has no attachment left on any interface.
func RemoveUnused(root, name, iface string) ([]string, error) {
	dir := filepath.Join(root, pinFolder, name)
	meta, err := loadMeta(filepath.Join(dir, currentPins, metaPin))
	if errors.Is(err, os.ErrNotExist) || err == nil && (!meta.has(iface) || meta.stillUsed(dir, name)) {
		return nil, nil
	}
	if err != nil {
		return nil, privilege.Explain(err)
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
		for _, h := range append(attach.OurFilters(i.Index, attach.Ingress), attach.OurFilters(i.Index, attach.Egress)...) {
			if owner, _ := attach.ParseOwner(h.Filter.Name); owner.Pin == name {
				return true
			}
		}
	}
	return false
}

// removeInstance removes the maps and programs of an instance without attachments. A running process
// holds the lock, and its folder stays.
func removeInstance(dir, name string) ([]string, error) {
	lock, err := lockFolder(dir)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return []string{fmt.Sprintf("instance %s is removed when the process that runs it ends", name)}, nil
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
func unpinPoint(dir, iface string, direction attach.Direction) (bool, error) {
	path := filepath.Join(dir, currentPins, "links", pointPin(iface, direction))
	l, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, privilege.Explain(err)
	}
	err = attach.LinkHold{Link: l}.Release()
	entry := filepath.Join(dir, currentPins, "entries", pointPin(iface, direction))
	if failed := os.Remove(entry); failed != nil && !errors.Is(failed, os.ErrNotExist) {
		err = errors.Join(err, failed)
	}
	return true, errors.Join(err, os.Remove(path))
}

// ByLink finds the pins of links, by link.
func ByLink(root string) map[link.ID]string {
	pins := map[link.ID]string{}
	for _, name := range Names(root) {
		for _, path := range linkPins(filepath.Join(root, pinFolder, name, currentPins)) {
			if id, ok := pinnedLinkID(path); ok {
				pins[id] = name
			}
		}
	}
	return pins
}

func pinnedLinkID(path string) (link.ID, bool) {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return 0, false
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return 0, false
	}
	return info.ID, true
}

// Interfaces names the interfaces of a pinned instance.
func Interfaces(root, name string) []string {
	meta, err := loadMeta(filepath.Join(root, pinFolder, name, currentPins, metaPin))
	if err != nil {
		return nil
	}
	names := make([]string, len(meta.Interfaces))
	for i, of := range meta.Interfaces {
		names[i] = of.Name
	}
	return names
}
