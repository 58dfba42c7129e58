package precision

import (
	"errors"
	"fmt"
	"io"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/precision/tap"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Run replays a stream through a contender alone. With arrivals it also compares what is said of every packet's flow, when the
// packet has been counted, with the flow's true count so far: a flow without an entry is estimated as 0.
func Run(c *Contender, stream *Stream, seed uint64, arrivals bool) (*Outcome, error) {
	inst, err := c.load(stream, seed, arrivals)
	if err != nil {
		return nil, err
	}
	defer inst.Close()
	if err := feed(inst, stream, seed); err != nil {
		return nil, err
	}
	return c.outcome(inst, stream, arrivals)
}

func (c *Contender) load(stream *Stream, seed uint64, arrivals bool) (*loader.Instance, error) {
	opts := loader.Options{Replay: true, Seed: seed, Unproven: !c.Rules, RecircDelay: c.Delay}
	objects := []loader.Object{c.Object}
	if arrivals {
		listener, err := tap.Object(len(stream.Order))
		if err != nil {
			return nil, err
		}
		objects = append(objects, listener)
		opts.Unproven = true // the tap
	}
	return loader.Load(objects, opts)
}

func feed(inst *loader.Instance, stream *Stream, seed uint64) error {
	replay, err := inst.NewReplayer(seed)
	if err != nil {
		return err
	}
	defer replay.Close()
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

func feedModel(replay *loader.Replayer, stream *Stream) error {
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
	said, err := tap.Read(set)
	if err != nil {
		return 0, err
	}
	counts, sum := make([]float64, len(stream.Keys)), 0.0
	for n, rank := range stream.Order {
		counts[rank]++
		off := float64(said[n])/c.Scale - counts[rank]
		sum += off * off
	}
	return sum / float64(len(stream.Order)), nil
}
