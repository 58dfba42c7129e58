// Package coverage asks of every enclosure that a report prints (percentiles, values, counts, rows of tables) how often it
// held the truth, over many seeds of the same traffic through the real bytecode. What is read is what an operator reads: the
// report's own model, so that an enclosure that is printed cannot be left out.
package coverage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Cell is traffic, and the configurations that look at it together. Configurations of one cell cost one replay.
type Cell struct {
	Name string
	// Open makes the traffic. A model takes the seed; a capture is the same for every seed, then only hashes and coins differ.
	Open    func(seed uint64) (capture.Source, error)
	Window  time.Duration // 0: one window
	Configs []Config
}

// title is what -cells is matched with.
func (c Cell) title() string {
	if len(c.Configs) == 0 {
		return c.Name
	}
	return c.Name + ", " + c.Configs[0].Name
}

// Config is a named configuration of an algorithm.
type Config struct {
	Name string
	bytecode.Config
}

// atOnce is how many seeds of a cell go through one loading of its programs.
const atOnce = 25

// Run replays every cell with n seeds from first on, on all cores, and tallies what the reports promised. Programs are loaded once for
// some seeds, and proven once. What is in the folder pieces from an interrupted run is taken over; "" for none.
func Run(ctx context.Context, cells []Cell, first uint64, n int, pieces string) (*Study, error) {
	s, keeper := newStudy(), keep(pieces)
	var lock sync.Mutex
	proven := make([]sync.Once, len(cells))
	each := (n + atOnce - 1) / atOnce
	err := bytecode.Parallel(ctx, len(cells)*each, func(ctx context.Context, task int) error {
		c, from, most := cells[task/each], first+uint64(task%each*atOnce), min(atOnce, n-task%each*atOnce)
		emit := func(config int, list []outcome.Outcome) {
			lock.Lock()
			defer lock.Unlock()
			s.add(Place{Algorithm: c.Configs[config].Algorithm, Cell: c.Name, Config: c.Configs[config].Name}, list)
		}
		err := keeper.run(c, from, most, emit, func(emit func(int, []outcome.Outcome)) error {
			prove := false
			proven[task/each].Do(func() { prove = true })
			return c.run(ctx, from, most, !prove, emit)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		return nil
	})
	return s, err
}

// run is n seeds: what each configuration reported, in all windows.
func (c Cell) run(ctx context.Context, first uint64, n int, proven bool, emit func(config int, list []outcome.Outcome)) error {
	list := make([]bytecode.Config, len(c.Configs))
	for i, one := range c.Configs {
		list[i] = one.Config
	}
	r, err := bytecode.NewRepeated(ctx, session.Config{Window: c.Window, Truth: true, Proven: proven}, list)
	if err != nil {
		return err
	}
	defer r.Close()
	for seed := first; seed < first+uint64(n); seed++ {
		if err := c.seed(ctx, r, seed, emit); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

func (c Cell) seed(ctx context.Context, r *bytecode.Repeated, seed uint64, emit func(config int, list []outcome.Outcome)) error {
	source, err := c.Open(seed)
	if err != nil {
		return err
	}
	defer source.Close()
	lines, err := r.Replay(ctx, seed, source)
	if err != nil {
		return err
	}
	for i, l := range lines {
		if l.Truth == nil {
			return fmt.Errorf("%s has no oracle", l.Algorithm)
		}
		emit(i%len(c.Configs), outcome.Of(l.Report, *l.Truth))
	}
	return nil
}
