// Package coverage asks of every enclosure that a report prints (percentiles, values, counts, rows of tables) how often it
// held the truth, over many seeds of the same traffic through the real bytecode. What is read is what an operator reads: the
// report's own model, so that an enclosure that is printed cannot be left out.
package coverage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/tests/eval"
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
	eval.Config
}

// Run replays every cell with n seeds from first on, on all cores, and tallies what the reports promised. A cell's first replay has
// its programs proven; the others load the same ones with other seeds.
func Run(ctx context.Context, cells []Cell, first uint64, n int) (*Study, error) {
	s := newStudy()
	var lock sync.Mutex
	proven := make([]sync.Once, len(cells))
	err := eval.Parallel(ctx, len(cells)*n, func(ctx context.Context, task int) error {
		c, seed, prove := cells[task/n], first+uint64(task%n), false
		proven[task/n].Do(func() { prove = true })
		got, err := c.run(ctx, seed, !prove)
		if err != nil {
			return fmt.Errorf("%s, seed %d: %w", c.Name, seed, err)
		}
		lock.Lock()
		defer lock.Unlock()
		for k, list := range got {
			s.add(Place{Algorithm: c.Configs[k].Algorithm, Cell: c.Name, Config: c.Configs[k].Name}, list)
		}
		return nil
	})
	return s, err
}

// run is one seed: what each configuration said, in all windows.
func (c Cell) run(ctx context.Context, seed uint64, proven bool) ([][]Outcome, error) {
	source, err := c.Open(seed)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	list := make([]eval.Config, len(c.Configs))
	for i, one := range c.Configs {
		list[i] = one.Config
	}
	lines, err := eval.ReplayWith(ctx, source, session.Config{Seed: seed, Window: c.Window, Truth: true, Proven: proven}, list)
	if err != nil {
		return nil, err
	}
	said := make([][]Outcome, len(list))
	for i, l := range lines {
		if l.Truth == nil {
			return nil, fmt.Errorf("%s has no oracle", l.Algorithm)
		}
		said[i%len(list)] = append(said[i%len(list)], Outcomes(l.Report, *l.Truth)...)
	}
	return said, nil
}
