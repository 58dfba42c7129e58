package session

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// LiveConfig is a run on interfaces.
type LiveConfig struct {
	Config
	Interfaces []string
	Hook       string // auto, xdp, tc
	Mode       string // native, generic, auto
	Direction  string // ingress, egress, both
	// Pin names a pinned instance to continue or to leave behind; "" for none.
	Pin string
	// Duration ends the run; 0: when ctx ends.
	Duration time.Duration
	// DropCapabilities gives up, for the whole process and for good, what is not needed once everything is attached.
	DropCapabilities bool
	// Started is called once with what is attached, before the first window.
	Started func(attached []*loader.Attachment)
}

// DefaultWindow is the length of a live window when none is asked for.
const DefaultWindow = 10 * time.Second

// Live attaches the algorithms and reports windows until ctx ends; the last window is cut short, not lost. It
// leaves nothing attached, unless it is pinned.
func Live(ctx context.Context, cfg LiveConfig) error {
	if cfg.Window == 0 {
		cfg.Window = DefaultWindow
	}
	if cfg.Notice == nil {
		cfg.Notice = func(string, ...any) {}
	}
	pin, err := openPin(&cfg)
	if err != nil {
		return err
	}
	run, err := loadLive(&cfg, pin)
	if err != nil {
		return errors.Join(err, closePin(pin))
	}
	err = runLive(ctx, cfg, run, pin)
	return errors.Join(err, closePin(pin), run.close())
}

// openPin settles the seed: a pinned instance's registers are addressed with its own.
func openPin(cfg *LiveConfig) (*loader.Pin, error) {
	var pin *loader.Pin
	if cfg.Pin != "" {
		var err error
		if pin, err = loader.OpenPin(loader.PinOptions{Name: cfg.Pin, Notice: cfg.Notice}); err != nil {
			return nil, err
		}
		cfg.Seed = pin.Seed(cfg.Seed)
	}
	if cfg.Seed == 0 {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, errors.Join(fmt.Errorf("draw hash seed: %w", err), closePin(pin))
		}
		cfg.Seed = binary.NativeEndian.Uint64(b[:]) | 1
	}
	return pin, nil
}

func closePin(pin *loader.Pin) error {
	if pin == nil {
		return nil
	}
	return pin.Close()
}

func loadLive(cfg *LiveConfig, pin *loader.Pin) (*runner, error) {
	adopt := func([]loader.Object, *loader.Options) error { return nil }
	if pin != nil {
		adopt = pin.Match
	}
	return newRunner(cfg.Config, joined(cfg.Interfaces), loader.Options{}, adopt)
}

func runLive(ctx context.Context, cfg LiveConfig, run *runner, pin *loader.Pin) error {
	manager := loader.NewManager(run.inst, loader.ManagerOptions{
		Attach: loader.AttachOptions{Hook: loader.Hook(cfg.Hook), Mode: loader.Mode(cfg.Mode),
			Direction: loader.Direction(cfg.Direction), Notice: cfg.Notice},
		Reattach: true,
		Pin:      pin,
	})
	if err := manager.Attach(cfg.Interfaces...); err != nil {
		return errors.Join(err, manager.Close())
	}
	// Attaching takes longer than the moment in which packets are counted already: rates are from here on.
	run.window = report.Window{Start: monotonic()}
	if err := manager.Start(ctx); err != nil {
		return errors.Join(err, manager.Close())
	}
	err := settle(cfg, manager)
	if err == nil {
		err = run.windows(ctx, cfg)
	}
	// Detach before reading: what arrives while the last window is read would be counted nowhere.
	end := monotonic()
	err = errors.Join(err, manager.Close())
	return errors.Join(err, run.closeWindow(end, true))
}

// settle is what happens once, between attaching and the first window.
func settle(cfg LiveConfig, manager *loader.Manager) error {
	if cfg.DropCapabilities {
		if _, err := loader.DropCapabilities(loader.Keep{Reattach: true}); err != nil {
			return err
		}
	}
	if cfg.Started != nil {
		cfg.Started(manager.Attachments())
	}
	return nil
}

// windows closes one window after the other until ctx or the duration ends.
func (r *runner) windows(ctx context.Context, cfg LiveConfig) error {
	if cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Duration)
		defer cancel()
	}
	stop, failed := r.control(ctx)
	defer stop()
	for {
		next := time.Duration(r.window.Start + int64(cfg.Window) - monotonic())
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-time.After(next): // at once when reading the last window took longer than a window
			if err := r.closeWindow(monotonic(), false); err != nil {
				return err
			}
		}
	}
}

// control runs the algorithms' own control loops (limits, thresholds) until stop is called.
func (r *runner) control(ctx context.Context) (stop func(), failed <-chan error) {
	ctx, cancel := context.WithCancel(ctx)
	errs := make(chan error, len(r.members))
	done := make(chan struct{})
	running := 0
	for _, m := range r.members {
		c, ok := m.instance.(algo.Controller)
		if !ok {
			continue
		}
		running++
		go func() {
			if err := tick(ctx, c); err != nil {
				errs <- fmt.Errorf("control %s: %w", m.selected.Descriptor.Name, err)
			}
			done <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for range running {
			<-done
		}
	}, errs
}

func tick(ctx context.Context, c algo.Controller) error {
	ticker := time.NewTicker(time.Duration(c.IntervalNS()))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := c.Tick(monotonic()); err != nil {
				return err
			}
		}
	}
}

// monotonic is the clock that bpf_ktime_get_ns reads.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("session: CLOCK_MONOTONIC cannot be read: " + err.Error()) // every Linux has it
	}
	return ts.Nano()
}
