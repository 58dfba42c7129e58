package main

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/queue/scene"
)

// cost is what a flood of one core passes through a veth, a second: alone, beside an interface of other namespaces that is watched, with its other end watched (which drops what its
// socket has no room for, and must tell these packets from its own), and watched itself.
func cost(p *page) (err error) {
	const rounds, span = 5, 1500 * time.Millisecond
	var flood [4][]float64
	names := []string{"nothing attached", "another interface is watched", "its other end is watched", "watched"}
	for range rounds {
		for n := range names {
			rate, err := flooded(n, span)
			if err != nil {
				return err
			}
			flood[n] = append(flood[n], rate)
		}
	}
	t := &figure.Table{Columns: []string{"", "packets/s, median", "of nothing attached", "lowest, highest"}}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	base := median(flood[0])
	for n, name := range names {
		m := median(flood[n])
		t.Add(name, fmt.Sprintf("%.0f", m), fmt.Sprintf("%.1f %%", 100*m/base), fmt.Sprintf("%.0f, %.0f", flood[n][0], flood[n][rounds-1]))
	}
	p.table(t)
	p.say("Small datagrams through a veth without a queue, %d rounds of %v, in turn: where another interface is watched %.1f %% pass (90 %% are wanted), where this one is %.1f %%.", rounds, span,
		100*median(flood[1])/base, 100*median(flood[3])/base)
	return nil
}

func flooded(what int, span time.Duration) (rate float64, err error) {
	network, err := netns.New(netns.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	other, err := netns.New(netns.Options{}) // always there, so that all cases differ in one thing
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	if what > 0 {
		at := [...]*netns.Host{1: other.A, network.B, network.A}[what]
		r, err := start(&scene.Scene{Device: at.Namespace}, at.Interface, "--set", "conquest.source=qdisc")
		if err != nil {
			return 0, err
		}
		defer func() { _, e := r.end(); err = errors.Join(err, e) }()
	}
	var stop atomic.Bool
	time.AfterFunc(span, func() { stop.Store(true) })
	began := time.Now()
	sent, err := scene.Flood(network, &stop)
	return float64(sent) / time.Since(began).Seconds(), err
}
