package fridge

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// services makes handshakes to ports 1001 to 1006, of which those from 1004 on answer later than 50 ms in 2 %, 12 % and
// 40 % of the cases.
func services(requests int) []packet.Packet {
	rng := rand.New(rand.NewPCG(1, 14))
	slow := []float64{0, 0, 0, 0.02, 0.12, 0.40}
	var packets []packet.Packet
	for n := range requests {
		service := n % len(slow)
		delay := msec + rng.Int64N(30*msec)
		if rng.Float64() < slow[service] {
			delay = 60*msec + rng.Int64N(60*msec)
		}
		at := int64(1e9) + int64(n)*20_000
		request, response := syn(at, n, false), syn(at+delay, n, true)
		request.DstPort, response.SrcPort = uint16(1001+service), uint16(1001+service)
		packets = append(packets, request, response)
	}
	return packets
}

// TestGroups: a distribution for each service from an over-subscribed fridge, and the verdict on an agreement.
func TestGroups(t *testing.T) {
	set := map[string]string{"fridges": "4096@1", "group": "dport", "sla": "50ms@95%"}
	l := trial{set: set, model: inTime(services(60_000)), seed: 5, truth: true}.last(t)
	table, truth := l.Report.Tables[0], l.Truth.Tables[0]
	if len(table.Rows) != 6 || len(truth.Rows) != 6 {
		t.Fatalf("%d and %d rows:\n%v\n%v", len(table.Rows), len(truth.Rows), table.Rows, truth.Rows)
	}
	column := map[string]int{}
	for i, c := range table.Columns {
		column[c.Name] = i
	}
	want := map[any][]any{}
	for _, row := range truth.Rows {
		want[row[0]] = row
	}
	for _, row := range table.Rows {
		true1 := want[row[0]]
		for name, bound := range map[string]float64{"estimated": 0.1, "p50_ns": 0.1} {
			got, exact := row[column[name]].(float64), true1[column[name]].(float64)
			if math.Abs(got/exact-1) > bound {
				t.Errorf("port %v: %s = %g, in truth %g", row[0], name, got, exact)
			}
		}
		if row[column["sla"]] != true1[column["sla"]] {
			t.Errorf("port %v: %v (%v of the responses are late), in truth %v", row[0], row[column["sla"]], row[column["over"]], true1[column["sla"]])
		}
		if low, high, over := row[column["over_low"]].(float64), row[column["over_high"]].(float64), true1[column["over"]].(float64); over < low || over > high {
			t.Errorf("port %v: %g late in truth, outside of %g .. %g", row[0], over, low, high)
		}
	}
	if first, second := table.Rows[0][0], table.Rows[1][0]; first != "1006" || second != "1005" {
		t.Errorf("the worst are not first: %v, %v", first, second)
	}
	if d := find(t, l.Report, "delay_ns"); math.Abs(d.Count/60_000-1) > 0.03 {
		t.Errorf("all groups together: %g of 60000", d.Count)
	}
}

// TestGroupsFull: groups that find their row taken are counted under others, and the report states it.
func TestGroupsFull(t *testing.T) {
	set := map[string]string{"fridges": "65536@1", "group": "src/32", "rows": "8"}
	l := trial{set: set, model: inTime(services(3000)), seed: 5}.last(t)
	if l.Lost["group_row_taken"] == 0 || len(l.Report.Notes) == 0 {
		t.Errorf("lost %v, notes %v", l.Lost, l.Report.Notes)
	}
	total, named := 0.0, false
	for _, row := range l.Report.Tables[0].Rows {
		total += row[2].(float64)
		named = named || row[0] == group.Others
	}
	if !named || math.Abs(total/3000-1) > 0.02 || len(l.Report.Tables[0].Rows) > 8 {
		t.Errorf("%d rows with %g of 3000 samples", len(l.Report.Tables[0].Rows), total)
	}
}

// TestGroupsByWindow: the first group in a window owns a row, so another window's groups get the same rows.
func TestGroupsByWindow(t *testing.T) {
	var packets []packet.Packet
	for w := range 4 {
		at := int64(1e9) + int64(w)*1000*msec
		for n := range 20 {
			request, response := syn(at+int64(n)*10*msec, 100*w+n, false), syn(at+int64(n)*10*msec+msec, 100*w+n, true)
			request.DstPort, response.SrcPort = uint16(1001+w), uint16(1001+w)
			packets = append(packets, request, response)
		}
	}
	lines := trial{set: map[string]string{"group": "dport", "rows": "2"}, model: inTime(packets), seed: 1, window: time.Second, truth: true}.run(t)
	for w, l := range lines[:4] {
		rows, want := l.Report.Tables[0].Rows, l.Truth.Tables[0].Rows
		if len(rows) != 1 || len(want) != 1 || rows[0][0] != want[0][0] {
			t.Errorf("window %d: groups %v, in truth %v", w, rows, want)
		}
		if taken := l.Lost["group_row_taken"]; taken != 0 {
			t.Errorf("window %d: %d samples found the only row taken", w, taken)
		}
	}
}

// The truth is certain of an agreement that is broken.
func TestTruthIsCertain(t *testing.T) {
	v, err := algo.NewValues("fridge", descriptor().Params, map[string]string{"group": "dport", "sla": "50ms@95%"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(v, algo.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{config: c, groups: map[uint64][]int64{1: {10 * msec, 90 * msec}, 2: {10 * msec, 10 * msec}}}
	if j := o.groupRow(1).judged; j.Verdict != delay.Broken || j.Confidence != 1 || j.Over != .5 {
		t.Errorf("broken: %+v", j)
	}
	if j := o.groupRow(2).judged; j.Verdict == delay.Broken || j.Confidence != 0 {
		t.Errorf("kept: %+v", j)
	}
}
