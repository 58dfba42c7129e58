package p4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
)

// Twins as they are on a tap: no forwarding, coins that always win, and a port that loops.

func tap(t *testing.T, twin string, form Form, target run.Target) *run.Switch {
	t.Helper()
	program, err := run.Read(Sources, twin+"/top.p4", target, form)
	if err != nil {
		t.Fatal(err)
	}
	sw, err := run.New(program, target)
	if err != nil {
		t.Fatal(err)
	}
	loop := map[run.Target]uint16{run.Tofino1: 68, run.Tofino2: 6}[target]
	sw.Sessions = map[uint64]run.Session{1: {Port: loop, Bytes: 128}}
	sw.Loops = map[uint16]bool{loop: true}
	return sw
}

func pass(t *testing.T, sw *run.Switch, frame []byte, ns uint64) run.Result {
	t.Helper()
	var r run.Result
	if err := sw.Process(run.Packet{Data: frame, Port: 1, Time: ns}, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// segment is a TCP packet with 100 bytes of payload in an IPv4 header of so many words.
func segment(host byte, words int, sport uint16, seq uint32) []byte {
	f := make([]byte, 14+4*words+20+100)
	copy(f[12:], []byte{8, 0, byte(0x40 | words), 0})
	ip, tcp := f[14:], f[14+4*words:]
	binary.BigEndian.PutUint16(ip[2:], uint16(len(f)-14))
	ip[8], ip[9] = 64, 6
	copy(ip[12:], []byte{192, 0, 2, host, 198, 51, 100, 1})
	binary.BigEndian.PutUint16(tcp, sport)
	binary.BigEndian.PutUint16(tcp[2:], 443)
	binary.BigEndian.PutUint32(tcp[4:], seq)
	tcp[12], tcp[13] = 0x50, 0x10
	return f
}

// written are the registers that hold anything else than they began with.
func written(sw *run.Switch) (names []string) {
	for _, r := range sw.Registers {
		for i := range r.Data {
			if r.Data[i] != r.Initial[i%r.Words] {
				names = append(names, r.Name)
				break
			}
		}
	}
	return names
}

// TestSecondPassOnATap: a packet that is dropped after it was measured is still admitted, by its clone.
func TestSecondPassOnATap(t *testing.T) {
	for _, c := range []struct {
		twin, method string
		want         []string
	}{
		{"precision", "", []string{"precision_k00", "precision_k01", "precision_c0"}},
		{"hhh", "", []string{"hhh_k00", "hhh_k01", "hhh_c0"}},
		{"reorder", "1", []string{"reorder_id0", "reorder_prefix0", "reorder_seq0", "reorder_count0"}},
		{"reorder", "2", []string{"reorder_id0", "reorder_prefix0", "reorder_seq0", "reorder_count0"}},
	} {
		for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
			form := Form{}
			if c.method != "" {
				form = Form{"REORDER_METHOD": c.method, "REORDER_DEFINITION": "1"}
			}
			sw := tap(t, c.twin, form, target)
			r := pass(t, sw, segment(1, 5, 1000, 7), 1e9)
			if !r.Dropped || r.Passes != 2 {
				t.Errorf("%s %s, Tofino %d: dropped %v after %d passes, want dropped after 2", c.twin, form, target, r.Dropped, r.Passes)
			}
			have := written(sw)
			for _, register := range c.want {
				if !slices.Contains(have, register) && register != c.want[len(c.want)-1] { // a counter may hold 0
					t.Errorf("%s %s, Tofino %d: %s was not written; written are %v", c.twin, form, target, register, have)
				}
			}
			if n := counted(t, sw, "reasons.reason"); n != 1 {
				t.Errorf("%s %s, Tofino %d: a packet and its clone are counted %d times as parsed or not", c.twin, form, target, n)
			}
		}
	}
}

// counted adds up the direct counters of a table.
func counted(t *testing.T, sw *run.Switch, name string) (n uint64) {
	t.Helper()
	table := sw.Table(name)
	if table == nil {
		t.Fatalf("there is no table %s", name)
	}
	for _, row := range append(table.Rows, table.Default) {
		n += row.Packets
	}
	return n
}

// TestUnreadHeaders: a packet whose IP header is not parsed is not measured, but counted.
func TestUnreadHeaders(t *testing.T) {
	ah := segment(1, 5, 1000, 7)
	ah[14+9] = 51
	hop := append(append([]byte{}, ah[:12]...), 0x86, 0xdd, 0x60, 0, 0, 0, 0, 100, 0, 64)
	hop = append(hop, make([]byte, 32+100)...)
	frames := map[string][]byte{"options": segment(1, 6, 1000, 7), "authentication header": ah, "hop-by-hop options": hop}
	for _, twin := range twins(t) {
		forms := Forms(twin)
		form := forms[len(forms)-1] // the fullest
		for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
			sw := tap(t, twin, form, target)
			for name, frame := range frames {
				before := actionCount(t, sw, "reasons.reason", "unread")
				for i := range 3 {
					pass(t, sw, frame, 1e9+uint64(i)*1e6)
				}
				if have := written(sw); len(have) > 0 {
					t.Errorf("%s %s, Tofino %d: %s: %v were written", twin, form, target, name, have)
				}
				if n := actionCount(t, sw, "reasons.reason", "unread") - before; n != 3 {
					t.Errorf("%s %s, Tofino %d: %s: %d of 3 packets are counted as unread", twin, form, target, name, n)
				}
			}
		}
	}
}

func actionCount(t *testing.T, sw *run.Switch, table, action string) (n uint64) {
	t.Helper()
	for _, row := range sw.Table(table).Rows {
		if row.Action == action {
			n += row.Packets
		}
	}
	return n
}

// TestMoveReports: a flow that moves from its bucket to a way sends what the bucket held, at once and once.
func TestMoveReports(t *testing.T) {
	for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
		sw := tap(t, "reorder", Form{"REORDER_METHOD": "2", "REORDER_DEFINITION": "1"}, target)
		for _, name := range []string{"reorder_id0", "reorder_id1"} {
			for i, data := 0, sw.Register(name).Data; i < len(data); i += 2 {
				data[i+1] = 2 // its size: an empty record admits every flow
			}
		}
		coin := uint64(1) // no way takes the flow
		sw.Coins = func(string, int) uint64 { return coin }
		pass(t, sw, segment(1, 5, 1000, 5000), 1e9)
		pass(t, sw, segment(1, 5, 1000, 4900), 1e9+1000)
		coin = 0 // one does
		moved := pass(t, sw, segment(1, 5, 1000, 5100), 1e9+2000).Digests
		if len(moved) != 1 {
			t.Fatalf("Tofino %d: %d digests of a flow that moves, want 1", target, len(moved))
		}
		const prefix, count = 0xc0000200, 1<<24 - 1
		if v := moved[0].Values; v[0] != prefix || v[1]&count != 2 || v[2] != 1 || v[4]&count != 0 {
			t.Errorf("Tofino %d: {prefix, n, o} of the bucket and of the way are %#x, want %#x, 2, 1 and an empty record", target, v, prefix)
		}
		coin = 1
		for _, d := range pass(t, sw, segment(1, 5, 2000, 1), 5e9).Digests { // another flow takes the bucket
			t.Errorf("Tofino %d: %#x is reported again", target, d.Values)
		}
	}
}

// TestEverySetReports: whichever statistics of lean are compiled, a flow that suffers from one of them is reported, with its bit.
func TestEverySetReports(t *testing.T) {
	for set := 1; set <= 15; set++ {
		for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
			sw := tap(t, "lean", Form{"LEAN_STATS": fmt.Sprint(set)}, target)
			seen := uint64(0)
			for _, p := range suffering() {
				for _, d := range pass(t, sw, p.frame, p.ns).Digests {
					seen |= d.Value("stats")
				}
			}
			if seen != uint64(set) {
				t.Errorf("LEAN_STATS %d, Tofino %d: statistics %#b were reported", set, target, seen)
			}
		}
	}
}

type timed struct {
	frame []byte
	ns    uint64
}

// suffering are flows with late ACKs, identifiers left out, and packets late by 1 ms and by 20 ms.
func suffering() (all []timed) {
	const ms = 1_000_000
	add := func(ns uint64, host byte, sport uint16, seq uint32, id uint16) {
		f := segment(host, 5, sport, seq)
		binary.BigEndian.PutUint16(f[14+4:], id)
		all = append(all, timed{f, ns})
	}
	for flow := range uint16(200) { // one of 32 segments is followed
		at := 10_000*ms + uint64(flow)*ms/10
		add(at, 1, 1000+flow, 1000, 0)
		ack := segment(1, 5, 443, 1)[:14+40]
		binary.BigEndian.PutUint16(ack[14+2:], 40)
		copy(ack[14+12:], []byte{198, 51, 100, 1, 192, 0, 2, 1})
		binary.BigEndian.PutUint16(ack[14+22:], 1000+flow)
		binary.BigEndian.PutUint32(ack[14+28:], 1100)
		all = append(all, timed{ack, at + 50*ms})
	}
	for i := range uint32(20) { // identifiers 7, 9, ... leave one out each
		id := uint16(1 + i)
		if i > 8 {
			id = uint16(2*i - 7)
		}
		add(11_000*ms+uint64(i)*ms, 2, 2000, 1000+100*i, id)
	}
	for i, seq := range []uint32{1000, 1100, 1200, 1400, 1300} {
		add(12_000*ms+uint64(i)*ms/2, 3, 3000, seq, 0)
	}
	for i, seq := range []uint32{1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1200} {
		add(13_000*ms+uint64(i)*5*ms, 4, 4000, seq, 0)
	}
	return all
}

// TestLimitsAndWeights: what a control plane writes decides, limits in both directions and what a delay is worth, which a dump of
// `xdpmon p4 rules lean` says.
func TestLimitsAndWeights(t *testing.T) {
	for _, limit := range []uint64{1, 300, 1 << 30} {
		sw := tap(t, "lean", Form{"LEAN_STATS": "1"}, run.Tofino1)
		for _, p := range sw.Params {
			if p.Value = limit; strings.HasSuffix(p.Name, "at_most") {
				p.Value = -limit & (1<<32 - 1)
			}
		}
		values := sw.Table("lean.lat_values.values")
		if err := errors.Join(values.Clear(), values.Add([]run.Match{{Mask: 1<<32 - 1}}, "none")); err != nil {
			t.Fatal(err)
		}
		const weight = 299 // and the delay's own ticks, which are many
		if err := values.Add([]run.Match{{}}, "weigh", weight); err != nil {
			t.Fatal(err)
		}
		reports, sum := 0, int64(0)
		for _, p := range suffering()[:400] {
			reports += len(pass(t, sw, p.frame, p.ns).Digests)
		}
		for _, v := range sw.Register("lean_lat_0").Data {
			sum += max(int64(int32(v)), -int64(int32(v)))
		}
		if (reports > 0) != (limit < 1<<30) {
			t.Errorf("limit %d: %d reports", limit, reports)
		}
		const delay = 50_000_000 / 8192 // ticks
		if n := sum / (delay + weight); n < 1 || sum < n*(delay+weight-1) || sum > n*(delay+weight+2) {
			t.Errorf("the sketch holds %d, which is no multiple of %d ticks and a weight of %d", sum, delay, weight)
		}
	}
}

// TestFullCounters: a flow that would replace a full counter is admitted as rarely as its value requires, and a full one is not replaced by 0.
func TestFullCounters(t *testing.T) {
	const full = 1<<32 - 1
	for _, twin := range []string{"precision", "hhh"} {
		for _, c := range []struct {
			c0, c1, coin uint64
			passes       int
		}{
			{full, full, 0, 1}, {0, full, 0, 1}, // by the sign of their difference the second is smaller
			{1000, 1000, 1 << 20, 2},
			{full - 50, full - 50, 1 << 21, 1}, {0, full - 50, 1 << 21, 1},
		} {
			sw := tap(t, twin, Form{}, run.Tofino1)
			sw.Coins = func(string, int) uint64 { return c.coin }
			for _, r := range sw.Registers {
				for i := range r.Data {
					switch r.Name {
					case twin + "_c0":
						r.Data[i] = c.c0
					case twin + "_c1":
						r.Data[i] = c.c1
					}
				}
			}
			if r := pass(t, sw, segment(1, 5, 1000, 7), 1e9); r.Passes != c.passes {
				t.Errorf("%s %+v: %d passes", twin, c, r.Passes)
			}
			if c.passes == 2 {
				continue
			}
			for _, r := range sw.Registers {
				want, counter := map[string]uint64{twin + "_c0": c.c0, twin + "_c1": c.c1}[r.Name]
				if i := slices.IndexFunc(r.Data, func(v uint64) bool { return v != want }); counter && i >= 0 {
					t.Errorf("%s %+v: %s[%d] is %d", twin, c, r.Name, i, r.Data[i])
				}
			}
		}
	}
}
