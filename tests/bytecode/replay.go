// Package bytecode runs frames through the bytecode of many configurations at once: one parse, one chain. Accuracy tests and studies ask it.
package bytecode

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Config is an algorithm with the parameters that differ from its defaults.
type Config struct {
	Algorithm string
	Set       map[string]string
}

// Replay runs frames through the bytecode of up to Room configurations at once: one parse, one chain, a line for each
// in the order of configs. The same algorithm may occur many times, each with separate registers.
func Replay(ctx context.Context, source capture.Source, seed uint64, configs []Config) ([]report.Line, error) {
	return ReplayWith(ctx, source, session.Config{Seed: seed}, configs)
}

// ReplayWith is Replay with further options of the session, like windows and truth: a line for each configuration in each
// window.
func ReplayWith(ctx context.Context, source capture.Source, cfg session.Config, configs []Config) ([]report.Line, error) {
	var lines []report.Line
	selected, err := choose(configs)
	if err != nil {
		return nil, err
	}
	cfg.Algorithms, cfg.Emit = selected, func(l report.Line) error {
		lines = append(lines, l)
		return nil
	}
	if err := session.ReplaySource(ctx, cfg, "model", source, nil); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // an interrupted replay reports what it has, which is no result here
	}
	return lines, nil
}

// Repeated is ReplayWith for one seed after the other, with programs that are loaded once.
type Repeated struct{ session *session.Repeated }

// NewRepeated loads the configurations; it stays on the goroutine that made it.
func NewRepeated(ctx context.Context, cfg session.Config, configs []Config) (*Repeated, error) {
	var err error
	if cfg.Algorithms, err = choose(configs); err != nil {
		return nil, err
	}
	s, err := session.NewRepeated(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Repeated{s}, nil
}

// Replay returns the lines of a stream.
func (r *Repeated) Replay(ctx context.Context, seed uint64, source capture.Source) (lines []report.Line, err error) {
	err = r.session.Replay(ctx, seed, "model", source, func(l report.Line) error {
		lines = append(lines, l)
		return nil
	})
	if err == nil {
		err = ctx.Err() // an interrupted replay reports what it has, which is no result here
	}
	return lines, err
}

// Close frees the programs.
func (r *Repeated) Close() error { return r.session.Close() }

// Room is the maximum of configurations in a chain.
const Room = maps.ChainSlots

// Batches cuts n configurations into as few chains as possible of about the same length: [from, to).
func Batches(n int) [][2]int {
	chains := int(math.Ceil(float64(n) / Room))
	list := make([][2]int, 0, chains)
	for i := range chains {
		list = append(list, [2]int{i * n / chains, (i + 1) * n / chains})
	}
	return list
}

// choose makes the algorithms of a chain. An instance finds its registers by name, so each gets a unique name.
func choose(configs []Config) ([]session.Selected, error) {
	list := make([]session.Selected, 0, len(configs))
	for n, c := range configs {
		d, err := algo.Lookup(c.Algorithm)
		if err != nil {
			return nil, err
		}
		own := *d
		own.Name = fmt.Sprintf("%s-%d", d.Name, n)
		v, err := algo.NewValues(d.Name, d.Params, c.Set)
		if err != nil {
			return nil, err
		}
		list = append(list, session.Selected{Descriptor: &own, Values: v})
	}
	return list, nil
}

// Distribution of a line, by name.
func Distribution(l report.Line, name string) (report.Distribution, error) {
	i := slices.IndexFunc(l.Report.Distributions, func(d report.Distribution) bool { return d.Name == name })
	if i < 0 {
		return report.Distribution{}, fmt.Errorf("read report of %s: no distribution %s", l.Algorithm, name)
	}
	return l.Report.Distributions[i], nil
}
