package main

import (
	"testing"

	"github.com/xdpmon/xdpmon/lab/queue/scene"
	"github.com/xdpmon/xdpmon/lab/queue/witness"
	judge "github.com/xdpmon/xdpmon/tests/conquest"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
)

const us = 1000

// Bursts begin with the first packet that waited tau and end before one that waited less than half of it, half of tau after the last that waited tau; they
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

// A packet's record is the one that was handed over last before it was queued, after the packet of its flow before it.
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

// A packet's answer is the one of its flow at its time; its truth is what left while it waited.
func TestPair(t *testing.T) {
	const first, other = scene.FirstPort, scene.FirstPort + 1
	list := []packet{
		{port: first, enqueue: 1000 * us, start: 1100 * us}, {port: other, enqueue: 1000 * us, start: 1200 * us}, // did not wait
		{port: first, enqueue: 1150 * us, start: 1700 * us}, // the second of other and itself not
		{port: other, enqueue: 1150 * us, start: 1760 * us}, // nothing is reported of it
		{port: first, enqueue: 1200 * us, start: 1820 * us},
		{port: first, enqueue: 1300 * us}, // dropped
	}
	logged := map[uint16][]judge.Answer{first: {{Departure: 1700*us + 3*us, Size: 7}, {Departure: 1820*us - 2*us, Size: 8}}, other: {{Departure: 1820 * us, Size: 9}}}
	s, answers, silent := pair(list, logged)
	if len(s.Truth) != 3 || len(answers) != 3 || silent != 1 {
		t.Fatalf("%+v: %+v, %d without", s.Truth, answers, silent)
	}
	for n, want := range []struct{ size, total, answer uint64 }{{0, 1, 7}, {1, 2, 0}, {1, 3, 8}} {
		if got := s.Truth[n]; got.Size != want.size || got.Total != want.total || answers[n].Size != want.answer {
			t.Errorf("packet %d: %+v, and %+v is logged; want %+v", n, got, answers[n], want)
		}
	}
}

// Parts that are not run again stay as they are.
func TestSection(t *testing.T) {
	const text = "# page\n\n## One\n\nfirst\n\n*date*\n\n## Two\n\nsecond\n"
	for title, want := range map[string]string{"One": "first\n\n*date*\n\n", "Two": "second\n\n", "Three": "Not run.\n\n"} {
		if got := section(text, title); got != want {
			t.Errorf("%s: %q", title, got)
		}
	}
}
