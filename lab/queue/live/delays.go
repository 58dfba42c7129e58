package main

import (
	"errors"
	"fmt"
	"log"
	"slices"
	"sort"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/queue/scene"
	"github.com/xdpmon/xdpmon/lab/queue/witness"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
)

// watched is the chain on the device's queue, with an algorithm that reports every packet.
type watched struct {
	inst *loader.Instance
	ring *maps.Ring
	at   *attach.Attachment
}

func watch(s *scene.Scene) (w *watched, err error) {
	object, err := departures.Object(true)
	if err != nil {
		return nil, err
	}
	w = &watched{}
	if w.inst, err = loader.Load([]loader.Object{object}, loader.Options{Seed: 7, Lazy: true}); err != nil {
		return nil, err
	}
	if w.ring, err = maps.NewRing(departures.Ring(w.inst)); err != nil {
		return nil, errors.Join(err, w.inst.Close())
	}
	err = s.Device.Run(func() (err error) {
		w.at, err = attach.Attach(w.inst, scene.Out, attach.Options{Direction: attach.Egress})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, w.inst.Close())
	}
	return w, nil
}

func (w *watched) take() (all []departures.Departure, err error) {
	err = w.ring.Drain(func(b []byte) { all = append(all, departures.Read(b)) })
	return all, err
}

func (w *watched) close() error { return errors.Join(w.at.Close(), w.inst.Close()) }

// busy counts how often programs of a name could not run because they ran already on that core.
func busy(name string) (n uint64) {
	for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
		prog, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		if info, err := prog.Info(); err == nil && info.Name == name {
			if stats, err := prog.Stats(); err == nil {
				n += stats.RecursionMisses
			}
		}
		prog.Close()
	}
	return n
}

// delays compares each packet's delay with what the trace points of the queue show.
func delays(p *page) (err error) {
	s, err := scene.New(scene.Options{Rate: rate, Limit: limit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w, err := watch(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	truth, err := newWitness(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, truth.Close()) }()
	skipped := busy("chain_tp_entry")
	if _, err := s.Send(traffic, *seconds); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond)
	logged, err := w.take()
	if err != nil {
		return err
	}
	seen, err := truth.Take()
	if err != nil {
		return err
	}
	counts, err := w.counts()
	if err != nil {
		return err
	}
	list := ways(seen)
	compare(p, list, logged)
	p.say("Handed over %d, sent %d, dropped %d, missed %d (%.3f %%); words of others %d, stale %d. The program at the start of transmission was skipped %d times because it ran already on that core.",
		counts.Carried, counts.Sent, counts.Dropped, counts.Missed, 100*float64(counts.Missed)/float64(max(1, counts.Carried)), counts.Foreign, counts.Stale, busy("chain_tp_entry")-skipped)
	return nil
}

func newWitness(s *scene.Scene) (w *witness.Witness, err error) {
	err = s.Device.Run(func() (err error) {
		w, err = witness.New(s.Out)
		return err
	})
	return w, err
}

func (w *watched) counts() (loader.QueueCounts, error) {
	bank, err := w.inst.Control().Flip()
	if err != nil {
		return loader.QueueCounts{}, err
	}
	c, err := w.inst.Counts(bank)
	if err != nil {
		return loader.QueueCounts{}, err
	}
	return *c.Queue, nil
}

// match finds each packet's record: TC egress was passed right before its qdisc_enqueue, by packets of a flow one after the other.
func match(list []packet, logged []departures.Departure) (pairs [][2]int64, without []packet) {
	byPort := map[uint16][]departures.Departure{}
	for _, d := range logged {
		byPort[uint16(d.Sport)] = append(byPort[uint16(d.Sport)], d)
	}
	for _, one := range byPort {
		slices.SortFunc(one, func(a, b departures.Departure) int { return int(max(-1, min(1, int64(a.Enqueued)-int64(b.Enqueued)))) })
	}
	previous := map[uint16]int64{} // enqueue of the packet before, by flow
	ordered := slices.Clone(list)
	slices.SortFunc(ordered, func(a, b packet) int { return int(max(-1, min(1, a.enqueue-b.enqueue))) })
	for _, p := range ordered {
		one := byPort[p.port]
		n := sort.Search(len(one), func(n int) bool { return int64(one[n].Enqueued) > p.enqueue }) - 1
		before := previous[p.port]
		previous[p.port] = p.enqueue
		switch {
		case p.start == 0: // dropped
		case n < 0 || int64(one[n].Enqueued) <= before:
			without = append(without, p)
		default:
			if p.dequeue > 0 {
				pairs = append(pairs, [2]int64{int64(one[n].Now) - int64(one[n].Enqueued), p.dequeue - p.enqueue})
			}
		}
	}
	return pairs, without
}

func compare(p *page, list []packet, logged []departures.Departure) {
	pairs, without := match(list, logged)
	errs := make([]float64, len(pairs))
	near := 0
	for n, pair := range pairs {
		off := float64(pair[0] - pair[1])
		errs[n] = max(off, -off)
		if errs[n] <= 10_000 {
			near++
		}
	}
	slices.Sort(errs)
	sent, idle, unseen := 0, 0, 0
	for _, one := range list {
		switch {
		case one.start == 0:
			unseen++
		case one.cpu&witness.Idle != 0:
			idle++
			fallthrough
		default:
			sent++
		}
	}
	at := func(q float64) string {
		return fmt.Sprintf("%.1f us", errs[min(len(errs)-1, int(q*float64(len(errs))))]/1e3)
	}
	if len(errs) == 0 {
		p.say("Nothing was seen.")
		return
	}
	t := &figure.Table{Columns: []string{"packets that left", "heads of bulks", "within 10 us", "median difference", "99 %", "99.9 %", "largest"}}
	t.Add(fmt.Sprint(sent), fmt.Sprint(len(pairs)), fmt.Sprintf("%.2f %%", 100*float64(near)/float64(len(pairs))), at(.5), at(.99), at(.999), at(1))
	p.table(t)
	p.say("%.2f %% of %d delays are within 10 us (99 %% are wanted): median %s, 99 %% %s. %d of %d packets that left have no record.", 100*float64(near)/float64(len(pairs)), len(pairs), at(.5), at(.99),
		len(without), sent)
	p.say("%d packets were queued and seen by no program at qdisc_dequeue or net_dev_start_xmit, the witness's neither. Of those that were seen, %d left while a core was idle.", unseen, idle)
	for n, one := range without {
		if n < 10 {
			log.Printf("no record: port %d, number %d, enqueued at %d, sent at %d on core %d", one.port, one.seq, one.enqueue, one.start, one.cpu&^witness.Idle)
		}
	}
}
