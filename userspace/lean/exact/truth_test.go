package exact

import (
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

var fiveTuple = heavy.Spec{Fields: heavy.Src | heavy.Dst | heavy.SrcPort | heavy.DstPort | heavy.Proto}

// sees a whole model.
func sees(t *testing.T, o traffic.LeanOptions, id string) (*traffic.Lean, map[heavy.Key]Tally, Seen) {
	t.Helper()
	m, err := traffic.NewLean(o)
	if err != nil {
		t.Fatal(err)
	}
	truth := NewTruth(TruthOptions{Key: fiveTuple, ID: id})
	for p := (packet.Packet{}); m.Next(&p); {
		truth.Packet(&p)
	}
	tallies, seen := truth.Window()
	return m, tallies, seen
}

func modelOptions() traffic.LeanOptions {
	return traffic.LeanOptions{Packets: 200_000, Flows: 10_000, Heavy: 100, Victims: 20, Span: 10 * time.Second,
		Delay: 50 * time.Millisecond, Loss: 0.04, Late: 0.04, Again: 0.01, Seed: 9}
}

// The model knows what it did to every flow. Delays, late packets and repeated ones are the same to the ns and the packet.
// Gaps are but for what no observer can know: the first three packets of a flow only prove that its numbers advance, and nobody
// sees what is lost after the last.
func TestTruthOfModel(t *testing.T) {
	m, tallies, _ := sees(t, modelOptions(), "ipid")
	done, found := 0.0, 0.0
	for rank := range 10_000 {
		p := m.Flow(rank)
		p.Valid = packet.IP | packet.Ports
		key, _ := fiveTuple.Of(&p)
		got, want := tallies[key], m.Tally(rank)
		if got.Latency != want.Delay || got.Answered != uint64(want.Acked) || got.OutOfOrder != uint64(want.Count[traffic.LeanLate]) ||
			got.Again != uint64(want.Count[traffic.LeanAgain]) || got.Duplicates != 0 {
			t.Errorf("flow %d: %+v, but by construction %+v", rank, got, want)
		}
		if !m.Counted(rank) {
			if got.Lost != 0 {
				t.Errorf("flow %d has no counting IDs, but %d packets lost", rank, got.Lost)
			}
			continue
		}
		missed := int64(want.Count[traffic.LeanLoss]) - got.Lost
		if missed < 0 || missed > 4 {
			t.Errorf("flow %d: %d lost of %d", rank, got.Lost, want.Count[traffic.LeanLoss])
		}
		if want.Sent > 100 {
			done, found = done+float64(want.Count[traffic.LeanLoss]), found+float64(got.Lost)
		}
	}
	if found < 0.97*done {
		t.Errorf("%.0f of %.0f losses of large flows are seen", found, done)
	}
}

// Bytes show the same losses as identifiers, a segment's payload each, of every flow; and what is lost stays lost where it is
// sent again. (Of flows with random identifiers one repetition in 16 is taken for a late packet.)
func TestTruthOfBytes(t *testing.T) {
	const payload = 1448
	o := modelOptions()
	o.Late, o.Again, o.Background = 0, 0, -1
	m, tallies, seen := sees(t, o, "tcp-bytes")
	done := uint32(0)
	for rank := range 10_000 {
		done += m.Tally(rank).Count[traffic.LeanLoss]
	}
	if lost := seen.Lost / payload; seen.Lost%payload != 0 || lost > int64(done) || lost < int64(done)*9/10 {
		t.Errorf("%d bytes lost of %d segments", seen.Lost, done)
	}
	o.Repair = true
	_, _, repaired := sees(t, o, "tcp-bytes")
	again := int64(repaired.Again) * payload
	if repaired.Lost > again || repaired.Lost < again*98/100 || again == 0 {
		t.Errorf("with repair %d bytes lost, but %d bytes again", repaired.Lost, again)
	}
	if len(tallies) == 0 {
		t.Error("no flow has anything")
	}
}

// A mirror's second copies change nothing but the count of duplicates. (Identifiers alone cannot tell the copy of a late packet from
// another late packet, so loss is compared where nothing is late.)
func TestTruthOfMirror(t *testing.T) {
	o := modelOptions()
	plain, twice := mirrored(t, o)
	if twice.Duplicates < 50_000 || twice.Again != plain.Again || twice.OutOfOrder != plain.OutOfOrder {
		t.Errorf("seen %+v, with every packet twice %+v", plain, twice)
	}
	o.Late, o.Background = 0, -1
	if plain, twice := mirrored(t, o); twice.Lost != plain.Lost || plain.Lost == 0 {
		t.Errorf("%d lost, with every packet twice %d", plain.Lost, twice.Lost)
	}
}

func mirrored(t *testing.T, o traffic.LeanOptions) (plain, twice Seen) {
	t.Helper()
	_, _, plain = sees(t, o, "ipid")
	o.Mirror, o.Packets = 1, 2*o.Packets
	_, _, twice = sees(t, o, "ipid")
	return plain, twice
}

func TestNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		ids  []uint16
		lost []int
	}{
		"proof first":    {[]uint16{10, 13, 14, 16}, []int{0, 0, 0, 1}},
		"wrap":           {[]uint16{65533, 65534, 65535, 1, 2}, []int{0, 0, 0, 1, 0}},
		"late":           {[]uint16{1, 2, 3, 5, 4, 6}, []int{0, 0, 0, 1, -1, 0}},
		"constant":       {[]uint16{0, 0, 0, 0, 0, 0}, []int{0, 0, 0, 0, 0, 0}},
		"jump":           {[]uint16{1, 2, 3, 1000, 1005, 1006, 1008}, []int{0, 0, 0, 0, 0, 0, 1}},
		"largest gap":    {[]uint16{1, 2, 3, 67, 132}, []int{0, 0, 0, 63, 0}},
		"mirrored, lost": {[]uint16{1, 1, 2, 2, 4, 4}, []int{0, 0, 0, 0, 1, 0}},
	} {
		var n numbers
		for i, id := range c.ids {
			if got := n.next(id, 1); got != c.lost[i] {
				t.Errorf("%s: identifier %d of %v: %d lost, want %d", name, i, c.ids, got, c.lost[i])
			}
		}
	}
}

// seg is a data packet at a time in us.
func seg(at int64, seq, payload uint32, id uint16) *packet.Packet {
	return &packet.Packet{Time: at * 1000, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, TCPFlags: packet.ACK,
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), SrcPort: 1, DstPort: 2, Seq: seq, Payload: payload,
		IPID: id, Segs: 1}
}

func TestOrder(t *testing.T) {
	const (
		none = iota
		late
		again
		both
		twice
	)
	type step struct {
		p    *packet.Packet
		want int
	}
	for name, steps := range map[string][]step{
		"in order":            {{seg(0, 100, 10, 1), none}, {seg(1, 110, 10, 2), none}, {seg(5000, 120, 10, 3), none}},
		"swapped":             {{seg(0, 100, 10, 1), none}, {seg(1, 120, 10, 3), none}, {seg(2, 110, 10, 2), late}},
		"3 ms are in":         {{seg(0, 100, 10, 1), none}, {seg(1, 120, 10, 3), none}, {seg(3001, 110, 10, 2), late}},
		"later":               {{seg(0, 100, 10, 1), none}, {seg(1, 120, 10, 3), none}, {seg(3002, 110, 10, 2), again}},
		"in a running train":  {{seg(0, 100, 10, 1), none}, {seg(1, 110, 10, 2), none}, {seg(5000, 120, 10, 3), none}, {seg(5001, 100, 10, 4), both}},
		"the last one":        {{seg(0, 100, 10, 1), none}, {seg(9000, 100, 10, 2), again}},
		"part of it":          {{seg(0, 100, 10, 1), none}, {seg(9000, 105, 10, 2), again}},
		"keep-alive":          {{seg(0, 100, 10, 1), none}, {seg(9000, 109, 1, 2), none}},
		"mirror":              {{seg(0, 100, 10, 1), none}, {seg(0, 100, 10, 1), twice}, {seg(9, 120, 10, 3), none}, {seg(10, 110, 10, 2), late}, {seg(11, 110, 10, 2), twice}},
		"wrap":                {{seg(0, 0xfffffff0, 10, 1), none}, {seg(1, 4, 10, 3), none}, {seg(2, 0xfffffffa, 10, 2), late}},
		"port is used again":  {{seg(0, 1<<31, 10, 1), none}, {seg(9000, 100, 10, 2), none}, {seg(9001, 110, 10, 3), none}},
		"begins with its SYN": {{seg(0, 100, 10, 1), none}, {syn(8000, 50), none}, {seg(9000, 51, 10, 2), none}},
	} {
		var o order
		for i, s := range steps {
			v := o.packet(s.p)
			got := none
			switch {
			case v.duplicate:
				got = twice
			case v.late && v.again:
				got = both
			case v.late:
				got = late
			case v.again:
				got = again
			}
			if got != s.want {
				t.Errorf("%s: packet %d is %d, want %d", name, i, got, s.want)
			}
		}
	}
}

func syn(at int64, seq uint32) *packet.Packet {
	p := seg(at, seq, 0, 9)
	p.TCPFlags = packet.SYN
	return p
}

// Flows continue over windows, their events do not; pairs add up the flows between two addresses.
func TestTruthWindows(t *testing.T) {
	truth := NewTruth(TruthOptions{Key: heavy.Spec{Fields: heavy.Src | heavy.Dst}, ID: "ipid", Bytes: true})
	for _, port := range []uint16{1, 7} {
		for i, p := range []*packet.Packet{seg(0, 100, 10, 1), seg(1, 120, 10, 3), seg(2, 110, 10, 2)} {
			p.SrcPort = port
			truth.Packet(p)
			if i == 1 && port == 7 {
				truth.Window()
			}
		}
	}
	tallies, seen := truth.Window()
	if seen.OutOfOrder != 10 || len(tallies) != 1 {
		t.Errorf("seen %+v of %d pairs in the second window, want 10 bytes of one", seen, len(tallies))
	}
	if tallies, _ := truth.Window(); len(tallies) != 0 {
		t.Errorf("an empty window has %d flows", len(tallies))
	}
}

// Missing bytes of a connection, to its edges: nothing before its first packet or its SYN, and each hole once, by the late packet.
func TestStream(t *testing.T) {
	fin := func(p *packet.Packet) *packet.Packet { p.TCPFlags |= packet.FIN; return p }
	type step struct {
		p    *packet.Packet
		lost int
	}
	for name, steps := range map[string][]step{
		"begins in the middle":      {{seg(0, 1000, 10, 1), 0}, {seg(1, 1010, 10, 2), 0}, {seg(2, 1030, 10, 4), 10}},
		"the port is used again":    {{seg(0, 1000, 10, 1), 0}, {seg(1, 1020, 10, 3), 10}, {syn(2, 1100), 0}, {seg(3, 1101, 10, 4), 0}, {seg(4, 1010, 10, 5), 0}},
		"SYN and FIN count":         {{syn(0, 99), 0}, {fin(seg(1, 100, 10, 1)), 0}, {seg(2, 111, 10, 2), 0}, {seg(3, 122, 10, 2), 1}},
		"as many as may be":         {{seg(0, 1000, 10, 1), 0}, {seg(1, 1010+smallBytes, 10, 2), smallBytes}},
		"more":                      {{seg(0, 1000, 10, 1), 0}, {seg(1, 1011+smallBytes, 10, 2), 0}, {seg(2, 1021+smallBytes, 10, 3), 0}},
		"late":                      {{seg(0, 1000, 10, 1), 0}, {seg(1, 1020, 10, 3), 10}, {seg(2, 1010, 10, 2), -10}, {seg(3, 1010, 10, 2), 0}},
		"repeated":                  {{seg(0, 1000, 10, 1), 0}, {seg(1, 1020, 10, 3), 10}, {seg(2, 1010, 10, 4), 0}, {seg(3, 1010, 10, 2), 0}},
		"the front of it":           {{seg(0, 1000, 10, 1), 0}, {seg(1, 1030, 10, 4), 20}, {seg(2, 1010, 5, 2), -5}, {seg(3, 1005, 10, 2), 0}, {seg(4, 1015, 15, 3), -15}},
		"the end of it":             {{seg(0, 1000, 10, 1), 0}, {seg(1, 1030, 10, 4), 20}, {seg(2, 1025, 10, 3), -5}, {seg(3, 1010, 15, 2), -15}},
		"the middle of it":          {{seg(0, 1000, 10, 1), 0}, {seg(1, 1040, 10, 5), 30}, {seg(2, 1020, 10, 3), -10}, {seg(3, 1010, 30, 4), -20}},
		"two holes":                 {{seg(0, 1000, 10, 1), 0}, {seg(1, 1020, 10, 3), 10}, {seg(2, 1040, 10, 5), 10}, {seg(3, 1010, 30, 2), -20}},
		"far below":                 {{seg(0, 1<<31, 10, 1), 0}, {seg(1, 1000, 10, 2), 0}, {seg(2, 1020, 10, 4), 10}},
		"a hole stays":              {{seg(0, 1<<30, 10, 1), 0}, {seg(1, 1<<30+40, 10, 5), 30}, {seg(2, 1<<30, 10, 6), 0}, {seg(3, 1<<30+10, 30, 4), -30}},
		"without identifiers, 3 ms": {{seg(0, 1000, 10, 0), 0}, {seg(1, 1020, 10, 0), 10}, {seg(3001, 1010, 10, 0), -10}},
		"... and later":             {{seg(0, 1000, 10, 0), 0}, {seg(1, 1020, 10, 0), 10}, {seg(3002, 1010, 10, 0), 0}},
		"an identifier just before": {{seg(0, 1000, 10, 1), 0}, {seg(1, 1020, 10, near+9), 10}, {seg(9000, 1010, 10, 10), -10}},
		"too far before":            {{seg(0, 1000, 10, 1), 0}, {seg(1, 1020, 10, near+9), 10}, {seg(2, 1010, 10, 9), 0}},
		"the same":                  {{seg(0, 1000, 10, 1), 0}, {seg(1, 1020, 10, 9), 10}, {seg(2, 1010, 10, 9), 0}},
	} {
		var s stream
		for n, one := range steps {
			if got := s.gap(one.p); got != one.lost {
				t.Errorf("%s: packet %d: %d bytes, want %d", name, n, got, one.lost)
			}
		}
	}
}
