package conquest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// queued sends traffic through a link that stands still for a while now and then, as one whose host is held up does. What leaves has its delay.
func queued(s *standing, stands time.Duration, r *rand.Rand) (list []packet.Packet) {
	model, late := conquest.NewModel(s.rate, int64(s.rate/8*stands.Seconds())), int64(0)
	var p packet.Packet
	for s.Next(&p) {
		w := model.Pass(p.Time, p.Len)
		if w.Dropped {
			continue
		}
		if r.IntN(1500) == 0 {
			late += int64(r.IntN(int(stands))) / 2
		}
		p.Enqueued, p.Time = p.Time, w.Departure+late
		if n := len(list); n > 0 && p.Time <= list[n-1].Time {
			p.Time = list[n-1].Time + 1
		}
		late = max(0, late-int64(p.Len)*4e9/int64(s.rate)) // the queue empties more slowly than it would
		list = append(list, p)
	}
	return list
}

// rows of a report's table, by column.
func rows(t *testing.T, b report.Body, name string) (list []map[string]any) {
	for _, table := range b.Tables {
		if table.Name != name {
			continue
		}
		for _, row := range table.Rows {
			m := map[string]any{}
			for i, c := range table.Columns {
				m[c.Name] = row[i]
			}
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		t.Fatalf("no %s", name)
	}
	return list
}

// largest is the truth of a burst: what of the largest flow left since its first packet that waited tau arrived.
func largest(list []packet.Packet, begin, length int64) (share float64) {
	from, all, flow := int64(0), 0.0, 0.0
	for _, p := range list {
		if p.Time == begin {
			from = p.Enqueued
		}
	}
	for _, p := range list {
		if p.Time >= from && p.Time <= begin+length {
			all += float64(p.Len)
			if p.SrcPort == 1 {
				flow += float64(p.Len)
			}
		}
	}
	return flow / all
}

// TestWholeBursts: the largest flow's share of all that left in a burst is between its ends, of bytecode and userspace together, where packets are as rare as snapshots and where
// the link stands still at times. The lower end is of use: most of what it is.
func TestWholeBursts(t *testing.T) {
	testutil.NeedRoot(t)
	bursts, outside := 0, 0
	for n, c := range []struct {
		rate    float64
		stands  time.Duration
		packets int
		least   float64 // of the share that is proven
	}{{50e6, 11 * time.Millisecond, 8000, .6}, {20e6, 100 * time.Millisecond, 8000, .8}, {4e6, 60 * time.Millisecond, 3000, .5}} {
		r := rand.New(rand.NewPCG(9, uint64(n)))
		list := queued(&standing{Rand: r, rate: c.rate, part: 0.15, packets: c.packets}, c.stands, r)
		line := reported(t, map[string]string{"source": "qdisc"}, &carried{sighted{packets: list}})
		for _, row := range rows(t, line.Report, "log") {
			length := row["length_ns"].(int64)
			if length < 20e6 {
				continue
			}
			share, low, high := largest(list, row["begin_ns"].(int64), length), row["share_at_least"].(float64), row["share_at_most"].(float64)
			bursts++
			if text := fmt.Sprintf("%.0f Mbit/s, %v: a burst of %v: %.4f in %.4f to %.4f (%v)", c.rate/1e6, c.stands, time.Duration(length), share, low, high, row["culprit"]); share < low || share > high {
				outside++
				t.Log(text)
			} else if low < c.least*share && length > 2e8 {
				t.Error(text)
			}
		}
	}
	t.Logf("%d bursts", bursts)
	if bursts < 5 || 20*outside > bursts {
		t.Errorf("of %d bursts %d have shares outside of their ends", bursts, outside)
	}
}
