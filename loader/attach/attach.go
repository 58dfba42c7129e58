// Package attach puts a chain's entry programs on an interface, by XDP or TC, and takes them off again. It knows who else is there.
package attach

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
)

// Source gives out the entry programs of a loaded chain. *Instance is one.
type Source interface {
	Entry(cfg loader.EntryConfig) (*ebpf.Program, error)
	Maps() map[string]*ebpf.Map
	Programs() map[string]*ebpf.Program
	// WatchesQueues says that an algorithm asks for what the start of transmission knows.
	WatchesQueues() bool
	// Steering is how the chain changes the way that packets leave.
	Steering() loader.Steering
	Watch(loader.QueueInterface) (*loader.Port, error)
}

// Attachment is an interface with the programs of a chain on it.
type Attachment struct {
	Interface string // the name it was attached by
	IfIndex   int
	L3Only    bool
	Notices   []string        // what the operator was told
	Changed   []OffloadChange // offloads that attaching switched

	mu     sync.Mutex
	points []Point
	notice func(string, ...any)
}

// Attach puts a chain on an interface: XDP or TC at ingress, TC at egress, as the options and the interface ask
// for. Either all programs are attached or none is.
//
// Errors wrap ErrUsage, ErrNoInterface, ErrBusy, ErrMissing or ErrUnsupported and name the remedy. It runs in
// the network namespace of the calling thread.
func Attach(src Source, iface string, opts Options) (*Attachment, error) {
	opts = opts.WithDefaults()
	if err := opts.Check(); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", iface, err)
	}
	d, err := Inspect(iface)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	p, err := ChooseHooks(d, opts.Seeing(src))
	if err != nil {
		return nil, err
	}
	return At(src, d, p, opts, nil)
}

// At carries out a placement. adopt offers holds of an earlier run, see package pin.
func At(src Source, d *Device, p Placement, opts Options, adopt Adopter) (*Attachment, error) {
	a := &Attachment{Interface: d.Name, IfIndex: d.Index, notice: opts.Notice}
	a.L3Only, _ = L3Only(d.HWType)
	clearStale(d.Index, a.say)

	before, occupied := offloadsAt(d, p), others(d)
	if err := a.attachAll(src, d, p, opts, adopt); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	after := offloadsAt(d, p)
	a.say("%s%s", a.describe(p, opts.Hook), after.problem)
	a.sayDown(d)
	a.sayClsact()
	if s := src.Steering(); s.Delays && p.Egress != "" {
		a.sayDelays(d, s)
	}
	a.sayOthers(occupied)
	a.compareOffloads(d, before, after)
	return a, nil
}

func (a *Attachment) attachAll(src Source, d *Device, p Placement, opts Options, adopt Adopter) error {
	at := attacher{src: src, dev: d, opts: opts, adopt: adopt, say: a.say}
	if p.Ingress != "" {
		if err := a.add(at.attach(Point{Hook: p.Ingress, Direction: Ingress}, p.Mode)); err != nil {
			return err
		}
	}
	if p.Egress == "" {
		return nil
	}
	egress := Point{Hook: HookTC, Direction: Egress}
	if src.WatchesQueues() {
		sent, form, err := at.attachSent()
		if err := a.add(sent, err); err != nil {
			return err
		}
		at.carry = form
	}
	return a.add(at.attach(egress, p.Mode))
}

func (a *Attachment) add(p Point, err error) error {
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.points = append(a.points, p)
	return nil
}

// say tells the operator and keeps the sentence.
func (a *Attachment) say(format string, args ...any) {
	a.Notices = append(a.Notices, fmt.Sprintf(format, args...))
	if a.notice != nil {
		a.notice(format, args...)
	}
}

// describe says where the programs are, and why when that was not asked for.
func (a *Attachment) describe(p Placement, asked Hook) string {
	where := make([]string, len(a.points))
	for i, pt := range a.points {
		where[i] = pt.Where()
	}
	s := fmt.Sprintf("%s: attached at %s", a.Interface, strings.Join(where, " and "))
	if asked == HookAuto {
		s += "; --hook auto: " + p.Why
	}
	return s
}

func (a *Attachment) sayDown(d *Device) {
	if d.Flags&unix.IFF_UP == 0 {
		a.say("%s is down: no packet is seen until it is up (ip link set %s up)", a.Interface, a.Interface)
	}
}

// sayClsact warns of what a filter does that a link does not.
func (a *Attachment) sayClsact() {
	if slices.ContainsFunc(a.points, func(p Point) bool { return p.Via == "clsact" }) {
		a.say("%s: this kernel has no TCX (Linux 6.6): a filter on the clsact qdisc does the work. Unlike a BPF link it stays when "+
			"this process is killed; `xdpmon detach %s` or the next attach removes it", a.Interface, a.Interface)
	}
}

// sayOthers names other owners' programs: they stay where they are and run on.
func (a *Attachment) sayOthers(occupied []Occupant) {
	for _, o := range occupied {
		a.say("%s: %s stays and runs on%s", a.Interface, o, a.consequence(o))
	}
}

// consequence says what another program does to the measurement: one that runs before ours hides packets.
func (a *Attachment) consequence(o Occupant) string {
	for _, p := range a.points {
		if o.runsBefore(p) {
			return fmt.Sprintf(" before xdpmon's at %s: what it drops, redirects or accepts for good is not measured", p.Where())
		}
	}
	return ""
}

// runsBefore knows the kernel's order: XDP, TCX, clsact; within TCX and clsact we are last.
func (o Occupant) runsBefore(p Point) bool {
	if o.Direction != p.Direction {
		return false
	}
	order := map[string]int{"xdp": 0, "tcx": 1, "clsact": 2}
	return order[o.Via] <= order[p.Via]
}

func (a *Attachment) compareOffloads(d *Device, before, after offloadState) {
	a.Changed = before.changes(after, d.Name)
	for _, line := range summariseChanges(a.Changed) {
		a.say("attaching changed offloads of %s", line)
	}
}

// Alive reports whether all programs are still on the interface; another command may have detached them.
func (a *Attachment) Alive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.points {
		if !p.Hold.Alive() {
			return false
		}
	}
	return len(a.points) > 0
}

// Close takes the programs off the interface. It may be called again.
func (a *Attachment) Close() error {
	var errs []error
	for _, p := range slices.Backward(a.take()) { // packets are handed to a queue before they leave it: what hands them over goes first
		if err := p.Hold.Release(); err != nil {
			errs = append(errs, fmt.Errorf("detach %s from %s: %w", p.Where(), a.Interface, err))
		}
		errs = append(errs, closeProgram(p.Program))
	}
	return errors.Join(errs...)
}

// Leave forgets the attachment without taking anything off: what is pinned goes on running.
func (a *Attachment) Leave() error {
	var errs []error
	for _, p := range a.take() {
		errs = append(errs, p.Hold.Leave(), closeProgram(p.Program))
	}
	return errors.Join(errs...)
}

func (a *Attachment) take() []Point {
	a.mu.Lock()
	defer a.mu.Unlock()
	points := a.points
	a.points = nil
	return points
}

func closeProgram(p *ebpf.Program) error {
	if p == nil {
		return nil
	}
	return p.Close()
}
