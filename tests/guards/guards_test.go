package guards

import (
	"math"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/loaded"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge"
	"github.com/xdpmon/xdpmon/userspace/lean"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/reorder"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/rttarray"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const (
	start = int64(1<<32 + 1<<30) // a multiple of every tick, and not of a period of 16 bits of them
	apart = int64(1<<33 + 1<<31) // from one case to the next
	msec  = int64(1e6)
)

func number(t *testing.T, r algo.Result, name string) float64 {
	t.Helper()
	for _, v := range r.Body.Values {
		if v.Name == name {
			f, _ := report.Number(v.Value)
			return f
		}
	}
	t.Fatalf("no value %s", name)
	return 0
}

// A request's insertions may be another core's: then the tag is another's, or the number is that of a future insertion.
// Its answer counts with 0 survived insertions, whatever the word contains: with 1,000 survived insertions into 256 slots, it would
// represent 50.
func TestTornInsertions(t *testing.T) {
	testutil.NeedRoot(t)
	for _, c := range []struct {
		name, inserts, survived string
		set                     map[string]string
		counted                 bool // the report contains the number of torn records
	}{
		{fridge.Name, "fridge_inserts", "fridge_survived", map[string]string{"fridges": "256@1", "legs": "false"}, true},
		{rttarray.Name, "rtt_inserts", "rtt_survived", map[string]string{"entries": "256", "evict": "cascade", "stages": "1"}, false},
	} {
		for name, torn := range map[string]struct {
			change  func(word uint64) uint64
			stands  float64
			another bool
		}{
			"its own":       {func(word uint64) uint64 { return word }, math.Pow(1-1.0/256, -1000), false},
			"another's":     {func(word uint64) uint64 { return word ^ 1 }, 1, true},
			"of the future": {func(word uint64) uint64 { return word + 2000<<8 }, 1, false},
		} {
			r := loaded.Replay(t, c.name, c.set)
			r.Packets(t, traffic.SYN(start, 1, false))
			counter, inserts := r.Only(t, c.inserts)
			slot, word := r.Only(t, c.survived)
			r.Put(t, c.inserts, counter, inserts+1000)
			r.Put(t, c.survived, slot, torn.change(word))
			r.Packets(t, traffic.SYN(start+msec, 1, true))
			result := r.Window(t)
			if got := number(t, result, "estimated"); number(t, result, "matched") != 1 || math.Abs(got/torn.stands-1) > 0.01 {
				t.Errorf("%s, %s: %g answers that represent %g, want 1 for %g", c.name, name, number(t, result, "matched"), got, torn.stands)
			}
			if c.counted && (result.Lost["torn"] == 1) != torn.another {
				t.Errorf("%s, %s: %d torn", c.name, name, result.Lost["torn"])
			}
		}
	}
}

// data is a segment of 100 bytes.
func data(at int64, host byte, seq uint32) packet.Packet {
	return packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.ACK, Seq: seq, Ack: 1, Payload: 100, Len: 154,
		Src: netip.AddrFrom4([4]byte{10, 0, 0, host}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, 1}), SrcPort: 443, DstPort: 5000}
}

// A record of another flow is replaced when it is older than T, not when it is as old, and not by a packet that a core had
// before the record was written. Flows of one prefix share a bucket.
func TestStaleRecords(t *testing.T) {
	testutil.NeedRoot(t)
	const tick = 1 << 10
	r := loaded.Replay(t, reorder.Name, map[string]string{"T": "1024us", "buckets": "2", "report": "all"})
	for n, c := range []struct {
		after   int64 // ticks
		watched float64
	}{{1, 1}, {1000, 1}, {1001, 0}, {-500, 1}, {-1024, 1}, {-1025, 0}} {
		at := start + int64(n)*apart
		r.Packets(t, data(at, 1, 1000), data(at+c.after*tick, 2, 1000), data(at+max(0, c.after)*tick, 1, 1100))
		if got := number(t, r.Window(t), "watched"); got != c.watched {
			t.Errorf("another flow's packet %d ticks after a record with T of 1000: %g packets of the record's flow are watched, want %g", c.after, got, c.watched)
		}
	}
}

// A packet below its flow's largest number is out of order within 3 ms (11,718 ticks), and so is one that another core had a little
// before the largest arrived.
func TestLateByTicks(t *testing.T) {
	testutil.NeedRoot(t)
	const tick = 1 << 8
	r := loaded.Replay(t, lean.Name, map[string]string{"stat": "ooo"})
	for n, c := range []struct {
		after     int64 // ticks
		out, late float64
	}{{11718, 1, 0}, {11719, 0, 1}, {-4000, 1, 0}} {
		at := start + int64(n)*apart
		r.Packets(t, data(at-msec, byte(n), 1000), data(at, byte(n), 1200), data(at+c.after*tick, byte(n), 1100))
		result := r.Window(t)
		if out, late := number(t, result, "out_of_order"), number(t, result, "ooo_behind"); out != c.out || late != c.late {
			t.Errorf("%d ticks after the largest: %g out of order and %g too late, want %g and %g", c.after, out, late, c.out, c.late)
		}
	}
}

// The delay of an acknowledgement is known up to 2^19 ticks; one that a core received slightly earlier has a delay of 0, and one
// that is later is counted as such.
func TestAcknowledgedByTicks(t *testing.T) {
	testutil.NeedRoot(t)
	const tick = 1 << 13
	r := loaded.Replay(t, lean.Name, map[string]string{"stat": "latency", "p": "1"})
	for n, c := range []struct {
		after         int64 // ticks
		events, stale float64
	}{{1, 1, 0}, {1 << 19, 1, 0}, {1<<19 + 1, 0, 1}, {-100, 0, 0}, {-200, 0, 1}} {
		at := start + int64(n)*apart
		ack := data(at+c.after*tick, 1, 1)
		ack.Src, ack.Dst, ack.SrcPort, ack.DstPort, ack.Ack, ack.Payload, ack.Len = ack.Dst, ack.Src, ack.DstPort, ack.SrcPort, 1100, 0, 54
		r.Packets(t, data(at, 1, 1000), ack)
		result := r.Window(t)
		if events, stale := number(t, result, "latency_events"), float64(result.Lost["latency_stale"]); events != c.events || stale != c.stale {
			t.Errorf("acknowledged after %d ticks: %g delays and %g too late, want %g and %g", c.after, events, stale, c.events, c.stale)
		}
	}
}

// A request's earlier occurrence may be another core's word: then the time since it is not known.
func TestTornRepetition(t *testing.T) {
	testutil.NeedRoot(t)
	for flip, want := range map[uint64]uint64{0: 1, 1: 0} {
		r := loaded.Replay(t, fridge.Name, map[string]string{"fridges": "256@1", "legs": "false"})
		r.Packets(t, traffic.SYN(start, 1, false))
		slot, word := r.Only(t, "fridge_survived")
		r.Put(t, "fridge_survived", slot, word^flip)
		r.Packets(t, traffic.SYN(start+msec, 1, false))
		if got := r.Sum(t, "fridge_repeats"); got != want {
			t.Errorf("its word changed by %d: %d repetitions reported, want %d", flip, got, want)
		}
	}
}

// Words of a record that another core has written meanwhile are not compared or reported.
func TestTornRecords(t *testing.T) {
	testutil.NeedRoot(t)
	for _, c := range []struct {
		name, register string
		flip           uint64
		out, reported  float64
	}{
		{"its own", "reorder_seq_array", 0, 1, 1}, {"another's number", "reorder_seq_array", 1 << 56, 0, 0}, {"another's prefix", "reorder_prefix_array", 1 << 48, 1, 0},
	} {
		r := loaded.Replay(t, reorder.Name, map[string]string{"T": "1024us", "buckets": "2", "report": "all"})
		r.Packets(t, data(start, 1, 1000))
		slot, word := r.Only(t, c.register)
		r.Put(t, c.register, slot, word^c.flip)
		r.Packets(t, data(start+1000, 1, 900), data(start+10*msec, 2, 1000))
		result := r.Window(t)
		if out, reported := number(t, result, "out_of_order"), number(t, result, "reported"); out != c.out || reported != c.reported {
			t.Errorf("%s: %g out of order and %g packets reported, want %g and %g; lost %v", c.name, out, reported, c.out, c.reported, result.Lost)
		}
	}
}

// A segment that is seen a second time within 3 ms (46 ticks) is a copy, and so is one that another core had a little before.
func TestCopiesByTicks(t *testing.T) {
	testutil.NeedRoot(t)
	const tick = 1 << 16
	r := loaded.Replay(t, lean.Name, map[string]string{"stat": "ooo"})
	for n, c := range []struct {
		after  int64 // ticks
		copies float64
	}{{0, 1}, {46, 1}, {47, 0}, {-16, 1}, {-17, 0}} {
		at := start + int64(n)*apart
		r.Packets(t, data(at, 1, 1000), data(at+c.after*tick, 1, 1000))
		if got := number(t, r.Window(t), "ooo_copies"); got != c.copies {
			t.Errorf("the same segment %d ticks later: %g copies, want %g", c.after, got, c.copies)
		}
	}
}
