package session

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Repeated replays one stream after the other, each with its own seed, through programs that are loaded once, since a short replay spends
// most of its time on maps and the verifier. It is for studies with hundreds of seeds. It must be used on the goroutine, and so the core,
// that created it.
type Repeated struct {
	run  *runner
	feed *replay.Replayer
}

// NewRepeated loads the algorithms of cfg; Seed and Emit are passed to Replay.
func NewRepeated(ctx context.Context, cfg Config) (*Repeated, error) {
	cfg.Seed = 1
	loose, err := seeded(cfg)
	if err != nil {
		return nil, err
	}
	fresh := func([]loader.Object, *loader.Options) error { return nil }
	run, err := newRunner(cfg, report.Identity{}, loader.Options{Replay: true, Proven: cfg.Proven, Interrupted: ctx.Err, Loose: loose}, fresh)
	if err != nil {
		return nil, err
	}
	feed, err := replay.New(run.inst, cfg.Seed)
	if err != nil {
		run.close()
		return nil, err
	}
	return &Repeated{run, feed}, nil
}

// seeded are the constants that differ from seed to seed.
func seeded(cfg Config) ([]string, error) {
	names := []string{"hash_seed", "hash_keys"}
	one, _, err := Objects(cfg, true)
	if err != nil {
		return nil, err
	}
	cfg.Seed++
	other, _, err := Objects(cfg, true)
	if err != nil {
		return nil, err
	}
	for n, o := range one {
		for name, v := range o.Spec.Variables {
			if !bytes.Equal(v.Value, other[n].Spec.Variables[name].Value) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// Replay is ReplaySource with another seed.
func (r *Repeated) Replay(ctx context.Context, seed uint64, name string, source capture.Source, emit func(report.Line) error) error {
	r.run.cfg.Seed, r.run.cfg.Emit, r.run.who.Instance = seed, emit, name
	objects, instances, err := Objects(r.run.cfg, true)
	if err != nil {
		return err
	}
	if err := r.run.inst.Reseed(seed, objects); err != nil {
		return err
	}
	for n, m := range r.run.members {
		m.instance, m.oracle = instances[n], nil
		if err := r.run.bindFrom(r.run.inst.Set, m); err != nil {
			return fmt.Errorf("start %s: %w", m.selected.Descriptor.Name, err)
		}
	}
	r.feed.Restart(seed)
	r.run.begins(0)
	one := &replayer{runner: r.run, feed: r.feed, source: source, started: time.Now(), decode: r.run.oracles(), pacer: newPacer(r.run.members)}
	return one.run(ctx)
}

// Close frees the programs.
func (r *Repeated) Close() error {
	r.feed.Close()
	return r.run.close()
}
