package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// LiveConfig is a run on interfaces.
type LiveConfig struct {
	Config
	Interfaces []string
	Each       bool // one instance per interface; else all interfaces share the registers of one
	Hook       attach.Hook
	Mode       attach.Mode
	Direction  attach.Direction
	// PinRoot is the BPF file system of the pin; "" for the usual one.
	PinRoot string
	// PinAdapt continues the algorithms of a pin that match, and replaces the others, whose window is cut; without it all have to
	// match.
	PinAdapt bool
	// Pin names a pinned instance, which is continued if it exists, and stays attached after the run; "" for none.
	Pin string
	// Alike is how many sessions with the same algorithms and values this process will have, including this one: they share programs where
	// possible, and Notice reports where not. 0 and 1: no sharing.
	Alike int
	// Boundary returns the first end of a window after a time, by the packets' clock, where hosts share windows; nil: a window ends one length
	// after its start.
	Boundary func(after, window int64) int64
	// Duration ends the run; 0: when ctx ends.
	Duration time.Duration
	// Watched: the caller watches for interfaces and reports those that reappear; the session itself only detects those that
	// disappear.
	Watched bool
	// Name of the instance, in its windows; "": the names of its interfaces.
	Name string
	// Member is the interface of this session, if the instance has a session for each of its interfaces.
	Member string
	// Changed is called when an interface is attached, detached, and attached again.
	Changed func(iface string, attached bool)
	fixed   bool // the algorithms stay the same
	// Started is called once with what is attached, before the first window.
	Started func(attached []*attach.Attachment)
}

// DefaultWindow is the length of a live window when none is set.
const DefaultWindow = 10 * time.Second

// Live attaches the algorithms and reports windows until ctx ends; the last window is cut short, not lost. It
// leaves nothing attached, unless it is pinned.
func Live(ctx context.Context, cfg LiveConfig) error {
	if cfg.Each && len(cfg.Interfaces) > 1 {
		return liveEach(ctx, cfg)
	}
	cfg.fixed = cfg.Pin == "" // nobody applies another configuration to this session
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	select {
	case <-ctx.Done():
	case <-s.Done():
	}
	return s.Close()
}

// openPin opens the pin and takes over its seed, which its registers are addressed with.
func openPin(cfg *LiveConfig) (*pin.Pin, error) {
	var opened *pin.Pin
	if cfg.Pin != "" {
		var err error
		if opened, err = pin.Open(pin.Options{Name: cfg.Pin, Interfaces: cfg.Interfaces, Notice: cfg.Notice,
			Root: cfg.PinRoot, Adapt: cfg.PinAdapt}); err != nil {
			return nil, err
		}
		cfg.Seed = opened.Seed(cfg.Seed)
	}
	if cfg.Seed == 0 {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, errors.Join(fmt.Errorf("draw hash seed: %w", err), closePin(opened))
		}
		cfg.Seed = binary.NativeEndian.Uint64(b[:]) | 1
	}
	return opened, nil
}

func closePin(opened *pin.Pin) error {
	if opened == nil {
		return nil
	}
	return opened.Close()
}

func loadLive(ctx context.Context, cfg *LiveConfig, pin *pin.Pin) (*runner, error) {
	adopt := func([]loader.Object, *loader.Options) error { return nil }
	if pin != nil {
		adopt = pin.Match
	}
	opts := loader.Options{Interrupted: ctx.Err, Lazy: pin == nil, Fixed: cfg.fixed}
	if pin == nil {
		opts.Alike = cfg.Alike
	}
	if cfg.warms() {
		opts.Soon = []loader.Kind{loader.TC}
	}
	cfg.arrives = cfg.Direction != attach.Egress
	if !cfg.Watched { // else interfaces may appear later
		cfg.interfaces = len(cfg.Interfaces)
	}
	r, err := newRunner(cfg.Config, cfg.identity(), opts, adopt)
	if err == nil && r.inst.Alone() != nil {
		cfg.Notice("programs of its own: %v", r.inst.Alone())
	}
	return r, err
}

// identity of the windows.
func (cfg *LiveConfig) identity() report.Identity {
	return report.Identity{Instance: cfg.Name, Each: cfg.Member, Interfaces: slices.Sorted(slices.Values(cfg.Interfaces))}
}
