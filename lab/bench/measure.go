package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/xdpmon/xdpmon/tests/mutator"
)

// Case is a column of the table: packets of one kind.
type Case struct {
	Name    string
	What    string
	shape   mutator.Shape
	traffic mutator.Traffic
}

// Cases are the columns.
var Cases = []Case{
	{"request", "TCP SYN", mutator.TCP4, mutator.Requests},
	{"response", "SYN-ACK, 16,384 packets behind its SYN", mutator.TCP4, mutator.Bursts},
	{"mixed", "SYN and SYN-ACK in turn", mutator.TCP4, mutator.Mixed},
	{"untouched", "TCP segment with payload", mutator.TCP4, mutator.Data},
	{"udp", "UDP datagram", mutator.UDP4, mutator.Data},
	{"request6", "TCP SYN over IPv6", mutator.TCP6, mutator.Requests},
}

// Options of a measurement. The zero value is what the figures of the project are: best of 5 runs of 2 million packets,
// 100,000 flows.
type Options struct {
	Packets uint32
	Rounds  int
	Flows   uint32
	// Progress is called with every round.
	Progress func(format string, args ...any)
}

func (o Options) withDefaults() Options {
	if o.Packets == 0 {
		o.Packets = 2_000_000
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Flows == 0 {
		o.Flows = 100_000
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	return o
}

// Cell is what one kind of packet costs one subject.
type Cell struct {
	NS      float64 `json:"ns"`                // over the mutator with an empty program behind it
	Total   float64 `json:"total_ns"`          // with the mutator
	Matched float64 `json:"matched,omitempty"` // share of the responses, where the algorithm matches any
}

// Row is a subject with its costs by case.
type Row struct {
	Subject string          `json:"subject"`
	Group   string          `json:"group"`
	What    string          `json:"what"`
	Cells   map[string]Cell `json:"cells"`
}

// bench holds what is loaded: one mutator a case, so that sequence numbers never repeat.
type bench struct {
	opts     Options
	subjects []*loaded
	mutators map[string]*mutator.Mutator
	rows     []Row
}

// Run measures. Subjects take turns within each round, so that a disturbance hits all of them; the best round counts.
func Run(subjects []Subject, opts Options) (*Result, error) {
	b := &bench{opts: opts.withDefaults(), mutators: map[string]*mutator.Mutator{}}
	defer b.close()
	if err := b.load(subjects); err != nil {
		return nil, err
	}
	cpus, err := mutator.CPUs()
	if err != nil {
		return nil, err
	}
	undo, err := mutator.Pin(cpus[len(cpus)-1])
	if err != nil {
		return nil, err
	}
	defer undo()
	for round := range b.opts.Rounds {
		started := time.Now()
		if err := b.round(); err != nil {
			return nil, err
		}
		b.opts.Progress("round %d of %d: %s", round+1, b.opts.Rounds, time.Since(started).Round(time.Millisecond))
	}
	return b.result()
}

func (b *bench) load(subjects []Subject) error {
	for _, s := range subjects {
		l, err := s.load()
		if err != nil {
			return err
		}
		b.subjects = append(b.subjects, l)
		b.rows = append(b.rows, Row{Subject: s.Name, Group: s.Group, What: s.What, Cells: map[string]Cell{}})
	}
	for _, c := range Cases {
		m, err := mutator.New(mutator.Options{Shape: c.shape, Traffic: c.traffic, Flows: b.opts.Flows})
		if err != nil {
			return err
		}
		b.mutators[c.Name] = m
	}
	return nil
}

func (b *bench) close() {
	for _, l := range b.subjects {
		_ = l.close()
	}
	for _, m := range b.mutators {
		m.Close()
	}
}

func (b *bench) round() error {
	for _, c := range Cases {
		for n, l := range b.subjects {
			cell, err := b.measure(c, l)
			if err != nil {
				return fmt.Errorf("measure %s with %s packets: %w", l.Name, c.Name, err)
			}
			if best, ok := b.rows[n].Cells[c.Name]; !ok || cell.Total < best.Total {
				b.rows[n].Cells[c.Name] = cell
			}
		}
	}
	return nil
}

// measure is one timed run of one subject. What the chain has counted must be what was sent.
func (b *bench) measure(c Case, l *loaded) (Cell, error) {
	m := b.mutators[c.Name]
	if err := l.aim(m); err != nil {
		return Cell{}, err
	}
	before, err := m.Sent()
	if err != nil {
		return Cell{}, err
	}
	cell, err := timed(m, c, b.opts.Packets)
	if err != nil {
		return Cell{}, err
	}
	after, err := m.Sent()
	if err != nil || l.inst == nil {
		return cell, err
	}
	seen, matched, err := l.finish()
	if err != nil {
		return Cell{}, err
	}
	if sent := after.Packets() - before.Packets(); seen != sent {
		return Cell{}, fmt.Errorf("%d packets sent, %d counted", sent, seen)
	}
	if responses := after.Responses - before.Responses; responses > 0 && matched >= 0 {
		cell.Matched = matched / float64(responses)
	}
	return cell, nil
}

func timed(m *mutator.Mutator, c Case, packets uint32) (Cell, error) {
	if c.traffic == mutator.Bursts {
		burst, err := m.TimedBursts(max(packets, 6*mutator.BurstSize))
		return Cell{Total: float64(burst) / mutator.BurstSize}, err
	}
	warm := max(packets/20, 1)
	if c.traffic == mutator.Mixed {
		if err := prime(m, warm); err != nil {
			return Cell{}, err
		}
	}
	if _, err := m.Timed(warm); err != nil {
		return Cell{}, err
	}
	taken, err := m.Timed(packets)
	return Cell{Total: float64(taken) / float64(packets)}, err
}

// prime sends requests, so that each response of mixed traffic belongs to a request that many flows ago.
func prime(m *mutator.Mutator, lag uint32) error {
	if err := m.Forget(); err != nil {
		return err
	}
	if err := m.Switch(mutator.Requests); err != nil {
		return err
	}
	if _, err := m.Timed(min(lag, 1000)); err != nil {
		return err
	}
	return m.Switch(mutator.Mixed)
}

// result subtracts the mutator: the row of the empty program of the same hook.
func (b *bench) result() (*Result, error) {
	type column struct {
		name   string
		egress bool
	}
	base := map[column]float64{}
	for n, l := range b.subjects {
		if l.bare {
			for name, cell := range b.rows[n].Cells {
				base[column{name, l.egress}] = cell.Total
			}
		}
	}
	for n, row := range b.rows {
		for name, cell := range row.Cells {
			zero, ok := base[column{name, b.subjects[n].egress}]
			if !ok {
				zero = math.NaN()
			}
			cell.NS = cell.Total - zero
			row.Cells[name] = cell
		}
	}
	return newResult(b.opts, b.rows), nil
}
