// Package pin keeps an instance and its attachments running after their process ends, pinned in a BPF file system, and lets a later
// process adopt them.
package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
)

// A pin keeps an instance running without its process:
//
//	/sys/fs/bpf/xdpmon/NAME/current/{meta, links/…, maps/…, programs/…, entries/…}
//
// The folder is built under another name, next, and renamed into place. The lock on NAME belongs to the process that
// runs the instance and ends with it; the process that acquires it may adopt.
const (
	pinFolder   = "xdpmon"
	currentPins = "current"
	nextPins    = "next"
	metaPin     = "meta"
)

// ErrInUse is wrapped when another process runs the pinned instance.
var ErrInUse = errors.New("in use by another process")

var pinNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// Options name a pin.
type Options struct {
	Name string // letters, digits, - and _
	// Interfaces will be attached. The pinned ones have to be among them: the registers hold their packets.
	Interfaces []string
	Notice     func(format string, args ...any)
	// Adapt adopts what is unchanged and replaces the rest; without it any difference is an error.
	Adapt bool

	Root string // a BPF file system; default Root
	fail func(step string) error
}

// Pin is a named instance under the BPF file system, locked by this process.
//
// The order of calls: Open, then Seed (to configure the algorithms with), Match, Load, Attach for each
// interface, Commit. When something fails before Commit has returned, Close puts everything back as it was.
type Pin struct {
	opts    Options
	dir     string
	lock    *os.File
	meta    pinMeta // what is pinned; Format 0 when nothing is
	want    pinMeta
	maps    map[string]*ebpf.Map
	adopted []*adoptedHold
	fresh   []string
	since   int64    // see Since
	Waiting []string // interfaces that were removed and may reappear
}

// Open locks a pin and reads what an earlier run left there. It mounts the BPF file system if none is mounted.
func Open(opts Options) (*Pin, error) {
	if opts.Root == "" {
		opts.Root = Root
	}
	if opts.Notice == nil {
		opts.Notice = func(string, ...any) {}
	}
	if !pinNames.MatchString(opts.Name) {
		return nil, fmt.Errorf("open pin: %w: name %q: want 1 to 63 letters, digits, - or _", attach.ErrUsage, opts.Name)
	}
	if err := mountBPFFS(opts.Root, opts.Notice); err != nil {
		return nil, fmt.Errorf("open pin %s: %w", opts.Name, err)
	}
	if isPrivateMount(opts.Root) {
		opts.Notice("WARNING: the pin %s will be removed with this process: %s is a private mount here, as `ip netns exec` makes it. "+
			"Pin in the host's mount namespace: nsenter --net=/run/netns/NAME xdpmon attach ...", opts.Name, opts.Root)
	}
	RemoveEmpty(opts.Root)
	p := &Pin{opts: opts, dir: filepath.Join(opts.Root, pinFolder, opts.Name)}
	if err := p.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open pin %s: %w", opts.Name, err), p.Close())
	}
	return p, nil
}

func (p *Pin) open() (err error) {
	p.lock, err = lockFolder(p.dir)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%w (%s); choose another name or end that process", ErrInUse, attach.DescribePIDs(p.lastOwner()))
	}
	if err != nil {
		return fmt.Errorf("lock it: %w", err)
	}
	if err := recoverPins(p.dir); err != nil {
		return fmt.Errorf("clean up after a killed run: %w", err)
	}
	p.meta, err = loadMeta(p.path(metaPin))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		p.since, err = loadSince(p.path(metaPin))
	}
	return err
}

// lastOwner is the process that wrote the description.
func (p *Pin) lastOwner() []int {
	meta, err := loadMeta(p.path(metaPin))
	if err != nil {
		return nil
	}
	return []int{meta.PID}
}

func (p *Pin) path(parts ...string) string {
	return filepath.Join(append([]string{p.dir, currentPins}, parts...)...)
}

// Adopts reports whether an earlier run left something to continue.
func (p *Pin) Adopts() bool { return p.meta.Format != 0 }

// Seed returns the hash seed to run with: that of the pinned instance, unless another one is requested. Registers are
// addressed by seeded hashes, so another seed would make their content meaningless.
func (p *Pin) Seed(asked uint64) uint64 {
	if p.Adopts() && asked == 0 {
		return p.meta.Seed
	}
	return asked
}

// Match compares configured algorithms with the pinned ones and puts the pinned maps into opts. It fails with
// ErrDiffers, naming the differences, when the content of registers would be misinterpreted.
func (p *Pin) Match(objects []loader.Object, opts *loader.Options) error {
	opts.Seed = p.Seed(opts.Seed)
	p.want = describeObjects(objects, *opts)
	if !p.Adopts() {
		return nil
	}
	if p.opts.Adapt {
		return p.adapt(opts)
	}
	if diffs := append(p.missing(), p.meta.differences(p.want)...); len(diffs) > 0 {
		return fmt.Errorf("adopt pin %s: %w: %s; remove it first (`xdpmon detach %s`) or choose another name",
			p.opts.Name, ErrDiffers, strings.Join(diffs, "; "), p.opts.Name)
	}
	var err error
	if p.maps, err = p.loadMaps(); err != nil {
		return fmt.Errorf("adopt pin %s: %w", p.opts.Name, err)
	}
	opts.Maps = p.maps
	p.opts.Notice("continuing the pinned instance %s: its registers and counts are preserved", p.opts.Name)
	return nil
}

// missing lists the pinned interfaces that are not requested: their packets are in the registers, and would be reported as
// those of the others.
func (p *Pin) missing() []string {
	var diffs []string
	for _, i := range p.meta.Interfaces {
		if !slices.Contains(p.opts.Interfaces, i.Name) {
			diffs = append(diffs, fmt.Sprintf("interface %s is pinned and was not named", i.Name))
		}
	}
	return diffs
}

// loadMaps opens all pinned maps, by the keys of Source.Maps.
func (p *Pin) loadMaps() (map[string]*ebpf.Map, error) {
	root, found := p.path("maps"), map[string]*ebpf.Map{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		m, err := ebpf.LoadPinnedMap(path, nil)
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		key, _ := filepath.Rel(root, path)
		found[nameOfPin(key)] = m
		return nil
	})
	return found, err
}

// Attach attaches to an interface, adopting the attachments that the earlier run left on it.
func (p *Pin) Attach(src attach.Source, iface string, opts attach.Options) (*attach.Attachment, error) {
	opts = opts.WithDefaults()
	if err := opts.Check(); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", iface, err)
	}
	if src.WatchesQueues() {
		return nil, fmt.Errorf("attach to %s: %w: an algorithm that watches queues cannot be pinned: the trace point ends with its process", iface, attach.ErrUsage)
	}
	d, err := attach.Inspect(iface)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	place, err := attach.ChooseHooks(p.withoutOwn(d), opts)
	if err != nil {
		return nil, err
	}
	return attach.At(src, d, place, opts, p)
}

// withoutOwn hides our own pinned XDP program from the choice of a hook, since it is adopted.
func (p *Pin) withoutOwn(d *attach.Device) *attach.Device {
	l := p.pinnedLink(d.Name, attach.Ingress)
	if l == nil {
		return d
	}
	defer l.Close()
	if index, err := attach.LinkIfindex(l); err != nil || index != d.Index {
		return d
	}
	if info, err := l.Info(); err != nil || info.XDP() == nil {
		return d
	}
	own := *d
	own.XDPMode, own.XDPProg = "", 0
	return &own
}

// Close ends the work on a pin: adopted attachments that were not committed get their earlier program back. Committed
// ones stay attached, unless everything was detached meanwhile.
func (p *Pin) Close() error {
	if p.lock == nil {
		return nil
	}
	var errs []error
	for _, h := range p.adopted {
		errs = append(errs, h.restore())
	}
	p.adopted = nil
	errs = append(errs, os.RemoveAll(filepath.Join(p.dir, nextPins)))
	if p.Adopts() && len(p.meta.Interfaces) == 0 {
		errs = append(errs, os.RemoveAll(p.path()))
	}
	if _, err := os.Lstat(p.path()); errors.Is(err, os.ErrNotExist) {
		removeEmpty(p.dir, filepath.Dir(p.dir))
	}
	errs = append(errs, p.lock.Close())
	p.lock = nil
	return errors.Join(errs...)
}

// removeEmpty removes empty folders; others stay.
func removeEmpty(dirs ...string) {
	for _, dir := range dirs {
		if os.Remove(dir) != nil {
			return
		}
	}
}
