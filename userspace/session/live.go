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
	Each       bool // an instance for each interface; else one for all, whose registers they share
	Hook       attach.Hook
	Mode       attach.Mode
	Direction  attach.Direction
	// PinRoot is the BPF file system of the pin; "" for the usual one.
	PinRoot string
	// PinAdapt takes over of a pin what fits, and replaces the rest, whose window is cut; without it everything has to fit.
	PinAdapt bool
	// Pin names a pinned instance to continue or to leave behind; "" for none.
	Pin string
	// Alike is how many sessions with the same algorithms and values this process will have, this one among them: they share programs where that is
	// possible, and Notice is told where it is not. 0 and 1: it shares none.
	Alike int
	// Boundary is the next end of a window of a length behind a time, all of the packets' clock, where hosts share windows; nil: a window after
	// its start.
	Boundary func(after, window int64) int64
	// Duration ends the run; 0: when ctx ends.
	Duration time.Duration
	// Watched: the caller watches interfaces itself and says what comes back; the session only notices what goes.
	Watched bool
	// Name of the instance, in its windows; "": its interfaces.
	Name string
	// Member is the one interface of this session, where an instance of that name has a session for each.
	Member string
	// Changed is told of each interface when it is attached, when that ends, and when it comes back.
	Changed func(iface string, attached bool)
	// Started is called once with what is attached, before the first window.
	Started func(attached []*attach.Attachment)
}

// DefaultWindow is the length of a live window when none is asked for.
const DefaultWindow = 10 * time.Second

// Live attaches the algorithms and reports windows until ctx ends; the last window is cut short, not lost. It
// leaves nothing attached, unless it is pinned.
func Live(ctx context.Context, cfg LiveConfig) error {
	if cfg.Each && len(cfg.Interfaces) > 1 {
		return liveEach(ctx, cfg)
	}
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

// openPin settles the seed: a pinned instance's registers are addressed with its own.
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
	opts := loader.Options{Interrupted: ctx.Err, Lazy: pin == nil}
	if pin == nil {
		opts.Alike = cfg.Alike
	}
	if cfg.warms() {
		opts.Soon = []loader.Kind{loader.TC}
	}
	cfg.arrives = cfg.Direction != attach.Egress
	if !cfg.Watched { // else interfaces may follow
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
