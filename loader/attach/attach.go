// Package attach attaches a chain's entry programs to an interface, by XDP or TC, and detaches them. It also lists the programs of other
// owners on the interface.
package attach

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
)

// Source provides the entry programs of a loaded chain. *Instance is one.
type Source interface {
	Entry(cfg loader.EntryConfig) (*ebpf.Program, error)
	Maps() map[string]*ebpf.Map
	Programs() map[string]*ebpf.Program
	// WatchesQueues reports whether an algorithm needs data from the start of transmission.
	WatchesQueues() bool
	// Steering is how the chain changes mark, class or departure time of packets.
	Steering() loader.Steering
	Watch(loader.QueueInterface) (*loader.Port, error)
}

// Attachment is an interface with the programs of a chain on it.
type Attachment struct {
	Interface string // its name when it was attached
	IfIndex   int
	L3Only    bool
	Notices   []string        // messages for the operator
	Changed   []OffloadChange // offloads that attaching switched

	mu     sync.Mutex
	points []Point
	notice func(string, ...any)
}

// Attach attaches a chain to an interface: XDP or TC at ingress, TC at egress, as the options and the interface
// require. Either all programs are attached or none is.
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

// At attaches a chain by a placement. adopt offers the pinned attachments of an earlier run, see package pin.
func At(src Source, d *Device, p Placement, opts Options, adopt Adopter) (*Attachment, error) {
	a := &Attachment{Interface: d.Name, IfIndex: d.Index, notice: opts.Notice}
	a.L3Only, _ = L3Only(d.HWType)
	clearStale(d.Index, a.notify)

	before, occupied := offloadsAt(d, p), others(d)
	if err := a.attachAll(src, d, p, opts, adopt); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	after := offloadsAt(d, p)
	a.notify("%s%s", a.describe(p, opts.Hook), after.problem)
	a.warnDown(d)
	a.warnClsact()
	if s := src.Steering(); s.Delays && p.Egress != "" {
		a.warnDelays(d, s)
	}
	a.notifyOthers(occupied)
	a.compareOffloads(d, before, after)
	return a, nil
}

// Since is a time just before the first packet that is counted; zero where an earlier run's attachment was continued.
func (a *Attachment) Since() (first time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.points {
		if p.Since.IsZero() {
			return time.Time{}
		}
		if first.IsZero() || p.Since.Before(first) {
			first = p.Since
		}
	}
	return first
}

func (a *Attachment) attachAll(src Source, d *Device, p Placement, opts Options, adopt Adopter) error {
	at := attacher{src: src, dev: d, opts: opts, adopt: adopt, notify: a.notify}
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

// notify sends a message to the operator and records it in Notices.
func (a *Attachment) notify(format string, args ...any) {
	a.Notices = append(a.Notices, fmt.Sprintf(format, args...))
	if a.notice != nil {
		a.notice(format, args...)
	}
}

// describe names the hooks, and the reason for them unless the operator chose them.
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

func (a *Attachment) warnDown(d *Device) {
	if d.Flags&unix.IFF_UP == 0 {
		a.notify("%s is down: no packet is seen until it is up (ip link set %s up)", a.Interface, a.Interface)
	}
}

// warnClsact warns that a filter, unlike a link, outlives a killed process.
func (a *Attachment) warnClsact() {
	if slices.ContainsFunc(a.points, func(p Point) bool { return p.Via == "clsact" }) {
		a.notify("%s: this kernel has no TCX (Linux 6.6): attached as a filter on the clsact qdisc. Unlike a BPF link it stays when "+
			"this process is killed; `xdpmon detach %s` or the next attach removes it", a.Interface, a.Interface)
	}
}

// notifyOthers names other owners' programs, which stay attached.
func (a *Attachment) notifyOthers(occupied []Occupant) {
	for _, o := range occupied {
		a.notify("%s: %s stays attached and runs%s", a.Interface, o, a.consequence(o))
	}
}

// consequence describes the effect of another program on the measurement: one that runs before ours hides packets.
func (a *Attachment) consequence(o Occupant) string {
	for _, p := range a.points {
		if o.runsBefore(p) {
			return fmt.Sprintf(" before xdpmon's at %s: packets that it drops, redirects or finally accepts are not measured", p.Where())
		}
	}
	return ""
}

// runsBefore follows the kernel's order: XDP, TCX, clsact. Within TCX and clsact our programs are last.
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
		a.notify("attaching changed offloads of %s", line)
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

// Close detaches the programs from the interface. It may be called again.
func (a *Attachment) Close() error {
	var errs []error
	for _, p := range slices.Backward(a.take()) { // packets are handed to a queue before they leave it, so the program at the hand-over is detached first
		if err := p.Hold.Release(); err != nil {
			errs = append(errs, fmt.Errorf("detach %s from %s: %w", p.Where(), a.Interface, err))
		}
		errs = append(errs, closeProgram(p.Program))
	}
	return errors.Join(errs...)
}

// Leave releases the attachment without detaching anything: pinned programs stay attached.
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
