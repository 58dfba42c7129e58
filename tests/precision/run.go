package precision

import (
	"errors"
	"fmt"
	"io"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/tests/precision/tap"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Bench replays one contender after the other through one chain: the entry program, which takes longest to load, is loaded once.
// It stays on the goroutine that made it.
type Bench struct {
	seed   uint64
	inst   *loader.Instance
	replay *replay.Replayer
}

// NewBench makes a bench for contenders whose second passes are delayed by delay packets. It does not prove that they keep the rules:
// the tap does not, and baselines known to break them are compared.
func NewBench(seed uint64, delay int) (*Bench, error) {
	inst, err := loader.Load(nil, loader.Options{Replay: true, Fixed: true, Seed: seed, Unproven: true, RecircDelay: delay})
	if err != nil {
		return nil, err
	}
	b := &Bench{seed: seed, inst: inst}
	if b.replay, err = replay.New(inst, seed); err != nil {
		inst.Close()
		return nil, err
	}
	return b, nil
}

// Close frees it.
func (b *Bench) Close() {
	b.replay.Close()
	b.inst.Close()
}

// Run replays a stream through a contender alone. With arrivals it also compares the estimate of every packet's flow, when the
// packet has been counted, with the flow's true count so far: a flow without an entry is estimated as 0.
func (b *Bench) Run(c *Contender, stream *Stream, arrivals bool) (*Outcome, error) {
	objects := []loader.Object{c.Object}
	if arrivals {
		listener, err := tap.Object(len(stream.Order))
		if err != nil {
			return nil, err
		}
		objects = append(objects, listener)
	}
	if err := b.inst.Replace(objects); err != nil {
		return nil, err
	}
	b.replay.Restart(b.seed)
	if err := feed(b.replay, stream); err != nil {
		return nil, err
	}
	return c.outcome(b.inst, stream, arrivals)
}

// Run replays a stream through a contender alone, and first proves that the contender keeps the rules, if it claims so.
func Run(c *Contender, stream *Stream, seed uint64, arrivals bool) (*Outcome, error) {
	if c.Rules {
		if _, err := pisa.Prove(c.Object.Spec); err != nil {
			return nil, fmt.Errorf("prove memory rules of %s: %w", c.Name, err)
		}
	}
	b, err := NewBench(seed, c.Delay)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return b.Run(c, stream, arrivals)
}

func feed(replay *replay.Replayer, stream *Stream) error {
	for n := range stream.taken {
		if err := replay.Feed(&stream.taken[n]); err != nil {
			return err
		}
	}
	if stream.taken != nil {
		return replay.Flush()
	}
	return feedModel(replay, stream)
}

func feedModel(replay *replay.Replayer, stream *Stream) error {
	source, f := traffic.Frames(stream.Model()), packet.Frame{}
	for {
		if err := source.Next(&f); errors.Is(err, io.EOF) {
			return replay.Flush()
		} else if err != nil {
			return fmt.Errorf("make frames: %w", err)
		}
		if err := replay.Feed(&f); err != nil {
			return err
		}
	}
}

func (c *Contender) outcome(inst *loader.Instance, stream *Stream, arrivals bool) (*Outcome, error) {
	set, err := inst.Set(c.Object.Name)
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	if c.Object.RecircShare > 0 {
		if out.Recirculated, err = inst.Recirculations(c.Object.Name); err != nil {
			return nil, err
		}
	}
	if out.Counts, err = c.Read(set, inst.Control().Bank()); err != nil || !arrivals {
		return out, err
	}
	out.MSE, err = c.onArrival(inst, stream)
	return out, err
}

// onArrival is equation 3.1.
func (c *Contender) onArrival(inst *loader.Instance, stream *Stream) (float64, error) {
	set, err := inst.Set(tap.Name)
	if err != nil {
		return 0, err
	}
	choices, err := tap.Read(set)
	if err != nil {
		return 0, err
	}
	counts, sum := make([]float64, len(stream.Keys)), 0.0
	for n, rank := range stream.Order {
		counts[rank]++
		off := float64(choices[n])/c.Scale - counts[rank]
		sum += off * off
	}
	return sum / float64(len(stream.Order)), nil
}
