package main

import (
	"testing"

	"github.com/xdpmon/xdpmon/tests/queue/departures"
	"github.com/xdpmon/xdpmon/tests/queue/scene"
	"github.com/xdpmon/xdpmon/tests/queue/witness"
)

const us = 1000

// Bursts begin with the first packet that waited tau and end before one that waited less than half of it, half of tau behind the last that waited tau; they
// are a bursty flow's that has half of them.
func TestTrueBursts(t *testing.T) {
	var list []packet
	at := int64(1e9)
	leave := func(port uint16, delay int64) {
		at += 60 * us
		list = append(list, packet{port: port, enqueue: at - delay, start: at})
	}
	leave(scene.FirstPort, 10*us)
	for delay := range 20 {
		leave(scene.BurstPort+1, int64(delay)*50*us)
	}
	leave(scene.FirstPort, 300*us) // neither long nor short
	leave(scene.BurstPort+1, 700*us)
	leave(scene.FirstPort, 100*us) // of another class: too soon
	leave(scene.BurstPort+1, 700*us)
	at += 200 * us
	leave(scene.FirstPort, 100*us)
	for range 8 {
		leave(scene.FirstPort+3, 600*us)
	}
	got := trueBursts(list)
	if len(got) != 2 || got[0].culprit() != scene.BurstPort+1 || got[0].peak != 950*us || got[1].culprit() != 0 {
		t.Errorf("%+v", got)
	}
}

// A packet's record is the one that was handed over last before it was queued, behind the packet of its flow before it.
func TestMatch(t *testing.T) {
	list := ways([]witness.Sighting{
		{Time: 110, Port: scene.FirstPort, Seq: 1, Kind: witness.Enqueue}, {Time: 210, Port: scene.FirstPort, Seq: 2, Kind: witness.Enqueue},
		{Time: 310, Port: scene.FirstPort, Seq: 3, Kind: witness.Enqueue}, {Time: 320, Port: scene.FirstPort, Seq: 1, Kind: witness.Dequeue},
		{Time: 321, Port: scene.FirstPort, Seq: 1, Kind: witness.Start}, {Time: 420, Port: scene.FirstPort, Seq: 2, Kind: witness.Dequeue},
		{Time: 421, Port: scene.FirstPort, Seq: 2, Kind: witness.Start}, {Time: 5, Port: 7, Seq: 1, Kind: witness.Start},
	})
	pairs, without := match(list, []departures.Departure{{Enqueued: 100, Now: 322, Sport: scene.FirstPort}})
	if len(list) != 3 || len(pairs) != 1 || pairs[0] != [2]int64{222, 210} || len(without) != 1 || without[0].seq != 2 {
		t.Errorf("%+v: %v, without %+v", list, pairs, without)
	}
}
