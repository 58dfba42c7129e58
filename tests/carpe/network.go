// Package carpe runs Carpe as a whole: data planes of many hosts with their userspace halves, and the coordinator's part, in one process and
// one clock. Messages are passed by the test, and counted.
package carpe

import (
	"errors"
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/carpe"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Network is hosts and a coordinator.
type Network struct {
	Coordinator algo.Coordinator
	Up, Down    int // bytes of messages
	hosts       []*host
	window      int64 // ns
	epoch       uint64
}

type host struct {
	name     string
	instance algo.Instance
	loaded   *loader.Instance
	feed     *replay.Replayer
}

// New makes a network of so many hosts, with windows of a length. Close it.
func New(hosts int, set map[string]string, window time.Duration, seed uint64) (*Network, error) {
	d, err := algo.Lookup(carpe.Name)
	if err != nil {
		return nil, err
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return nil, err
	}
	n := &Network{window: int64(window)}
	if n.Coordinator, err = d.Coordinate(v, algo.Env{Setup: algo.Setup{WindowNS: n.window}}); err != nil {
		return nil, err
	}
	for i := range hosts {
		h, err := n.host(i, session.Selected{Descriptor: d, Values: v}, seed)
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.hosts = append(n.hosts, h)
	}
	return n, nil
}

func (n *Network) host(number int, s session.Selected, seed uint64) (*host, error) {
	cfg := session.Config{Algorithms: []session.Selected{s}, Seed: seed, Window: time.Duration(n.window), Epoch: func(int64) uint64 { return n.epoch }}
	objects, instances, err := session.Objects(cfg, true)
	if err != nil {
		return nil, err
	}
	h := &host{name: fmt.Sprint("host", number), instance: instances[0]}
	if h.loaded, err = loader.Load(objects, loader.Options{Seed: seed, Replay: true, Fixed: true, Proven: number > 0}); err != nil {
		return nil, err
	}
	maps, err := h.loaded.Set(s.Descriptor.Name)
	if err == nil {
		err = h.instance.Bind(maps)
	}
	if err == nil {
		h.feed, err = replay.New(h.loaded, seed+uint64(number))
	}
	if err != nil {
		return nil, errors.Join(err, h.loaded.Close())
	}
	return h, nil
}

// Give a host a packet.
func (n *Network) Give(host int, f *packet.Frame) error { return n.hosts[host].feed.Feed(f) }

// Talk delivers pending messages, as agents do ten times a second. now is ns of Unix time.
func (n *Network) Talk(now int64) error {
	for _, h := range n.hosts {
		if err := h.feed.Flush(); err != nil {
			return err
		}
		if err := h.instance.(algo.Controller).Tick(now); err != nil {
			return err
		}
		messages, err := h.instance.(algo.Messenger).Send(now)
		if err != nil {
			return err
		}
		for _, m := range messages {
			n.Up += len(m)
			if err := n.Coordinator.Receive(algo.Incoming{Host: h.name, Time: now, Now: now, Data: m}); err != nil {
				return err
			}
		}
	}
	for _, message := range n.Coordinator.Send(now) {
		n.Down += len(message.Data)
		for _, h := range n.hosts {
			if h.name != message.Host {
				continue
			}
			if err := h.instance.(algo.Messenger).Receive(message.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// Begin sets the start of windows: an integer multiple of their length.
func (n *Network) Begin(epoch uint64) error {
	n.epoch = epoch
	for _, h := range n.hosts { // the first one was another
		if _, err := h.read(report.Window{}); err != nil {
			return err
		}
	}
	return n.Talk(int64(epoch) * n.window)
}

// End a window: the coordinator's answer, and the windows of all hosts.
func (n *Network) End() (algo.Result, []*snapshot.Snapshot, error) {
	w := report.Window{Start: int64(n.epoch) * n.window, End: int64(n.epoch+1) * n.window}
	if err := n.Talk(w.End - 1); err != nil {
		return algo.Result{}, nil, err
	}
	n.epoch++
	var all []*snapshot.Snapshot
	for _, h := range n.hosts {
		s, err := h.read(w)
		if err != nil {
			return algo.Result{}, nil, err
		}
		all = append(all, s)
	}
	if err := n.Talk(w.End - 1); err != nil {
		return algo.Result{}, nil, err
	}
	r, err := n.Coordinator.Report(w)
	return r, all, err
}

func (h *host) read(w report.Window) (*snapshot.Snapshot, error) {
	if err := h.feed.Flush(); err != nil {
		return nil, err
	}
	bank, err := h.loaded.Control().Flip()
	if err != nil {
		return nil, err
	}
	return algo.Read(h.instance, w, bank)
}

// Close ends it.
func (n *Network) Close() (err error) {
	for _, h := range n.hosts {
		err = errors.Join(err, h.feed.Close(), h.loaded.Close())
	}
	return err
}
