package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"gonum.org/v1/plot/vg"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/queue/scene"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/maps"
	judge "github.com/xdpmon/xdpmon/tests/conquest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// shares are the alphas of figure 5.15.
var shares = []float64{.001, .003, .01, .03, .1, .2, .3}

// asked is ConQuest on the device's queue, which answers for every packet that waited tau.
type asked struct {
	inst    *loader.Instance
	ring    *maps.Ring
	at      *attach.Attachment
	answers map[uint16][]judge.Answer // by port, in the order of departure
}

func ask(s *scene.Scene, set map[string]string) (a *asked, err error) {
	d, err := algo.Lookup(conquest.Name)
	if err != nil {
		return nil, err
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return nil, err
	}
	objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 7}, false)
	if err != nil {
		return nil, err
	}
	if err := maps.SetConstants(objects[0].Spec, map[constant.Name]any{constant.ConquestEvery: true}); err != nil {
		return nil, err
	}
	a = &asked{answers: map[uint16][]judge.Answer{}}
	if a.inst, err = loader.Load(objects, loader.Options{Seed: 7, Lazy: true}); err != nil {
		return nil, err
	}
	if err := a.begin(s); err != nil {
		return nil, errors.Join(err, a.inst.Close())
	}
	return a, nil
}

func (a *asked) begin(s *scene.Scene) error {
	set, err := a.inst.Set(conquest.Name)
	if err != nil {
		return err
	}
	events, err := set.Array("conquest_events")
	if err != nil {
		return err
	}
	if a.ring, err = maps.NewRing(events.Map()); err != nil {
		return err
	}
	return s.Device.Run(func() (err error) {
		a.at, err = attach.Attach(a.inst, scene.Out, attach.Options{Direction: attach.Egress})
		return err
	})
}

func (a *asked) close() error { return errors.Join(a.at.Close(), a.inst.Close()) }

// hear empties the ring.
func (a *asked) hear() error {
	return a.ring.Drain(func(record []byte) {
		e := (*bpf.ConquestConquestEvent)(unsafe.Pointer(unsafe.SliceData(record)))
		if e.Kind != uint32(bpf.ConquestConquestEventKindEVENT_PACKET) {
			return
		}
		port := uint16(e.Key[1] >> 48)
		a.answers[port] = append(a.answers[port], judge.Answer{Departure: int64(e.Time), Delay: int64(e.Delay), Size: e.Size, Total: e.Total})
	})
}

// listen empties the ring until stop is closed.
func (a *asked) listen(stop chan struct{}) (err error) {
	for {
		select {
		case <-stop:
			return errors.Join(err, a.hear())
		case <-time.After(50 * time.Millisecond):
			err = errors.Join(err, a.hear())
		}
	}
}

// contents returns what left between two times, by port: all datagrams are of one size.
type contents struct {
	all  []int64
	port map[uint16][]int64
}

func newContents(list []packet) contents {
	c := contents{port: map[uint16][]int64{}}
	for _, p := range list {
		if p.start > 0 {
			c.all, c.port[p.port] = append(c.all, p.start), append(c.port[p.port], p.start)
		}
	}
	return c
}

func between(times []int64, from, to int64) uint64 {
	low, _ := slices.BinarySearch(times, from)
	high, _ := slices.BinarySearch(times, to)
	return uint64(high - low)
}

// sightingsApart is less than half of the time that a packet takes on the link, and more than lies between two programs at one trace point.
const sightingsApart = int64(25 * time.Microsecond)

// pair finds for each packet that waited tau, and 10 us more, what was reported of it; nothing was of some. Those that only just reach tau may fall below
// it by what lies between the places where times are taken.
func pair(list []packet, logged map[uint16][]judge.Answer) (s judge.Stream, answers []judge.Answer, silent int) {
	const clear = int64(tau + 10*time.Microsecond)
	all := newContents(list)
	for _, p := range list {
		if p.start == 0 || p.start-p.enqueue < clear {
			continue
		}
		s.Truth = append(s.Truth, judge.Truth{Departure: p.start, Delay: p.start - p.enqueue,
			Size: between(all.port[p.port], p.enqueue, p.start), Total: between(all.all, p.enqueue, p.start)})
		one := logged[p.port]
		n, _ := slices.BinarySearchFunc(one, p.start-sightingsApart, func(a judge.Answer, t int64) int { return int(max(-1, min(1, a.Departure-t))) })
		if n == len(one) || one[n].Departure > p.start+sightingsApart {
			silent++
			answers = append(answers, judge.Answer{})
			continue
		}
		answers = append(answers, one[n])
	}
	return s, answers, silent
}

// live asks about all packets of a run.
func live(set map[string]string) (stream judge.Stream, answers []judge.Answer, silent int, err error) {
	s, err := scene.New(scene.Options{Rate: rate, Limit: limit})
	if err != nil {
		return stream, nil, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	a, err := ask(s, set)
	if err != nil {
		return stream, nil, 0, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	truth, err := newWitness(s)
	if err != nil {
		return stream, nil, 0, err
	}
	defer func() { err = errors.Join(err, truth.Close()) }()
	stop := make(chan struct{})
	var listener sync.WaitGroup
	var heard error
	listener.Go(func() { heard = a.listen(stop) })
	_, err = s.Send(traffic, *seconds/2)
	time.Sleep(200 * time.Millisecond)
	close(stop)
	listener.Wait()
	if err = errors.Join(err, heard); err != nil {
		return stream, nil, 0, err
	}
	seen, err := truth.Take()
	if err != nil {
		return stream, nil, 0, err
	}
	stream, answers, silent = pair(ways(seen), a.answers)
	return stream, answers, silent, nil
}

// alphas is figure 5.15 with a real queue.
func alphas(p *page) error {
	t := &figure.Table{Columns: []string{"snapshots", "alpha", "packets of contributing flows", "said to be", "precision", "recall"}}
	var curves, recalls, precisions []figure.Series
	for _, b := range []struct {
		snapshots int
		longest   string
	}{{4, "6ms"}, {16, "16ms"}} {
		s, answers, silent, err := live(map[string]string{"source": "qdisc", "tau": tau.String(), "snapshots": fmt.Sprint(b.snapshots), "longest": b.longest})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("b = %d", b.snapshots)
		curve, recall, precision := figure.Series{Name: name, Style: figure.Style{Marks: true}}, figure.Series{Name: "recall, " + name}, figure.Series{Name: "precision, " + name}
		for _, alpha := range shares {
			score := s.Judge(answers, alpha, judge.Relative(alpha))
			t.Add(fmt.Sprint(b.snapshots), fmt.Sprintf("%g", alpha), fmt.Sprint(score.True), fmt.Sprint(score.Said), fmt.Sprintf("%.3f", score.Precision()), fmt.Sprintf("%.3f", score.Recall()))
			curve.Points = append(curve.Points, figure.Point{X: score.Recall(), Y: score.Precision()})
			recall.Points = append(recall.Points, figure.Point{X: alpha, Y: score.Recall()})
			precision.Points = append(precision.Points, figure.Point{X: alpha, Y: score.Precision()})
		}
		curves, recalls, precisions = append(curves, curve), append(recalls, recall), append(precisions, precision)
		p.say("b = %d, for waits of %s: of %d packets that waited tau (and 10 us more) nothing was said of %d (they count as not said).", b.snapshots, b.longest, len(s.Truth), silent)
	}
	p.table(t)
	if *out == "" {
		return nil
	}
	f := figure.Figure{Width: 24 * vg.Centimeter, Panels: []figure.Panel{
		{Title: "alpha from 0.1 % to 30 %", X: figure.Axis{Label: "recall", Min: .8, Max: 1}, Y: figure.Axis{Label: "precision", Min: .8, Max: 1}, Series: curves, Legend: figure.BottomLeft},
		{X: figure.Axis{Label: "alpha", Base: 10}, Y: figure.Axis{Label: "share of packets", Min: .8, Max: 1}, Series: append(recalls, precisions...), Legend: figure.BottomLeft},
	}}
	text, err := f.Save(filepath.Dir(*out), strings.TrimSuffix(filepath.Base(*out), ".md")+"-alpha.svg", "figure 5.15: precision over recall, and both over alpha")
	if err != nil {
		return err
	}
	p.say("%s", text)
	return nil
}
