package twins

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// tape is what a pair did: packets with their coins, and what the bytecode's arrays held at the end of every window. A twin
// with a planted bug is played against it, without the kernel.
type tape struct{ steps []step }

// step is a packet, what there is to compare (words) at the end of a window or on the way, a register that is forgotten, or elements that
// are written.
type step struct {
	arrival
	words  map[string][]uint64
	counts []uint64
	sent   [][]uint64
	ends   bool
	forget string
	as     uint64
	pokes  []poke
	write  func(sw *run.Switch) error // a change by the control plane
}

// poke is an element that was written.
type poke struct {
	register string
	i        int
	v        uint64
}

func (t *tape) packet(a arrival) {
	a.data = bytes.Clone(a.data)
	t.steps = append(t.steps, step{arrival: a})
}

// poke notes an element that a driver has written, beside those that it wrote just before.
func (t *tape) poke(one poke) {
	if n := len(t.steps); n == 0 || t.steps[n-1].pokes == nil {
		t.steps = append(t.steps, step{})
	}
	last := &t.steps[len(t.steps)-1]
	last.pokes = append(last.pokes, one)
}

var errEnd = errors.New("the tape ends in the middle of a window")

// play runs a switch through what p recorded: an error is what the differential test would have reported.
func (p *pair) play(sw *run.Switch) error { return p.playWith(sw, nil) }

// playWith a control plane that has filled the switch; nil: this fills it, and ends windows.
func (p *pair) playWith(sw *run.Switch, by plane) error {
	twinOf, host := *p, *p.host
	q := &twinOf
	q.plane = by
	if by == nil {
		q.plane = byHand{q}
		if err := errors.Join(forward(sw), p.host.coordinate(sw), p.twin.SetBank(sw, 0)); err != nil {
			return err
		}
	}
	q.sw, q.host, q.met, q.reasons, q.tape, q.result = sw, &host, map[string]int{}, map[string]uint64{}, nil, run.Result{}
	q.sent, q.clones, q.records, q.fields, q.states = nil, 0, nil, nil, map[string]bool{}
	if q.twin.Start != nil {
		for _, name := range twin.Names(sw) {
			for i := range twin.Entries(sw, name) {
				if v := q.twin.Start(name, i); v != 0 {
					twin.SetElement(sw, name, i, v)
				}
			}
		}
	}
	bank := 0
	for _, s := range p.tape.steps {
		switch {
		case s.words != nil:
			if err := errors.Join(q.compare(s.words), q.compareCounts(s.counts), q.compareRecords(s.sent)); err != nil {
				return err
			}
			if s.ends {
				if err := q.turn(bank); err != nil {
					return err
				}
				bank ^= 1
			}
		case s.pokes != nil:
			for _, one := range s.pokes {
				twin.SetElement(sw, one.register, one.i, one.v)
			}
		case s.forget != "":
			forget(sw, s.forget, s.as)
		case s.write != nil:
			if err := s.write(sw); err != nil {
				return err
			}
		default:
			if err := q.process(s.arrival, coinsOf(s.coin)); err != nil {
				return err
			}
		}
	}
	if last := p.tape.steps[len(p.tape.steps)-1]; !last.ends {
		return errEnd
	}
	return nil
}

// full runs a fresh switch through the first window, with registers that saturate full from the beginning: they stay so. Most of the host's words
// cannot be as large.
func (p *pair) full(sw *run.Switch) error {
	before := map[string][]uint64{}
	for _, r := range sw.Arrays() {
		if !slices.Contains(p.twin.Saturating, r.Name) {
			continue
		}
		for i := range r.Data {
			r.Data[i] = 1<<r.Width - 1
		}
		before[r.Name] = slices.Clone(r.Data)
	}
	var result run.Result
	for _, s := range p.tape.steps {
		if s.ends {
			break
		}
		if s.data == nil {
			continue
		}
		if p.twin.Coins != nil {
			sw.Coins = p.twin.Coins(coinsOf(s.coin))
		}
		if err := sw.Process(run.Packet{Data: s.data, Port: port(s.time, s.data), Time: s.time, Queue: s.queue}, &result); err != nil {
			return err
		}
	}
	for _, r := range sw.Arrays() {
		if words := before[r.Name]; words != nil && !slices.Equal(words, r.Data) {
			return fmt.Errorf("full words do not stay full: %s", complaint(r.Name, words, r.Data))
		}
	}
	return nil
}

// stampTurn is the period of a switch's timestamps, ns.
const stampTurn = 1 << 48
