package lean

import (
	"cmp"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/exact"
	"github.com/xdpmon/xdpmon/userspace/lean/rates"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	i.judged = true
	return &oracle{instance: i, truth: exact.NewTruth(i.truthOptions())}
}

func (c *config) truthOptions() exact.TruthOptions {
	o := exact.TruthOptions{Key: c.spec, Bytes: c.bytes, ID: lossIDs[0]}
	if l, ok := c.statistics[loss].(*losses); ok {
		o.ID = lossIDs[l.id]
	}
	return o
}

// oracle is the truth of a window.
type oracle struct {
	instance *instance
	truth    *exact.Truth
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) { o.truth.Packet(p) }

// Window implements algo.Oracle.
func (o *oracle) Window(report.Window) report.Body {
	tallies, seen := o.truth.Window()
	b := report.Body{Values: o.values(seen)}
	for _, s := range o.instance.on {
		b.Tables = append(b.Tables, o.instance.trueTable(s, tallies))
	}
	return b
}

// values are the totals of all flows.
func (o *oracle) values(seen exact.Seen) []report.Value {
	unit := report.PacketUnit
	if o.instance.bytes {
		unit = report.Bytes
	}
	all := [stats][]report.Value{
		latency: {
			counter("latency_examined", seen.Requests, report.Segments, "segments that ask for an ACK"),
			counter("all_answered", seen.Answered, report.Segments, "segments whose last byte was acknowledged"),
		},
		loss: {
			counter("loss_examined", seen.Numbered, report.PacketUnit, "packets with an identifier"),
			gauge("all_lost", seen.Lost, o.instance.lostUnit(), "identifiers that were left out"),
		},
		ooo: {
			counter("all_out_of_order", seen.OutOfOrder, unit, "packets below the largest number within 3 ms of it"),
		},
		retrans: {
			counter("all_again", seen.Again, unit, "packets of which a byte was passed more than 3 ms ago"),
			counter("all_duplicates", seen.Duplicates, report.PacketUnit, "second copies from a mirror: in neither"),
		},
	}
	var list []report.Value
	for _, s := range o.instance.on {
		list = append(list, all[s]...)
	}
	return list
}

func (c *config) lostUnit() report.Unit {
	if c.truthOptions().ID == lossIDs[2] {
		return report.Bytes
	}
	return report.PacketUnit
}

// trueTable lists the most affected flows. Ties for the last places are broken by the order of keys.
func (i *instance) trueTable(s stat, tallies map[heavy.Key]exact.Tally) report.Table {
	t := report.Table{Name: s.String(), Title: titles[s], Whole: true, Limit: i.top, Help: "most affected first",
		Columns: append(i.spec.Columns(), i.statistics[s].value())}
	if i.rate {
		t.Title, t.Help, t.Columns = rateTitles[s], rates.Help, append(i.spec.Columns(), rateColumns[s])
	}
	for _, f := range i.asked(s, tallies) {
		cell := i.cell(s, f.value)
		if i.rate {
			cell = rateCell(s, f.value)
		}
		t.Rows = append(t.Rows, append(i.spec.Cells(f.key), cell))
	}
	return t
}

// asked are the most affected flows, followed by the other flows that the instance has listed, so that every listed flow can be
// compared with the truth.
func (i *instance) asked(s stat, tallies map[heavy.Key]exact.Tally) []flow {
	list, valueOf := largest(s, tallies, i.top), amountOf
	if i.rate {
		list, valueOf = fastest(s, tallies, i.top, uint64(i.least)), func(t *exact.Tally, s stat) float64 { value, _ := t.Rate(s.String()); return value }
	}
	known := map[heavy.Key]bool{}
	for _, f := range list {
		known[f.key] = true
	}
	for _, key := range i.found[s] {
		if t := tallies[key]; !known[key] {
			list = append(list, flow{key: key, value: valueOf(&t, s)})
		}
	}
	return list
}

// largest are the top flows of a statistic whose value is above 0.
func largest(s stat, tallies map[heavy.Key]exact.Tally, top int) []flow {
	var list []flow
	for key, t := range tallies {
		if v := amountOf(&t, s); v > 0 {
			list = append(list, flow{key: key, value: v})
		}
	}
	slices.SortFunc(list, func(a, b flow) int {
		return cmp.Or(cmp.Compare(b.value, a.value), a.key.Compare(b.key))
	})
	return list[:min(top, len(list))]
}

// fastest are the top flows by rate among those with least packets or more.
func fastest(s stat, tallies map[heavy.Key]exact.Tally, top int, least uint64) []flow {
	var list []flow
	for key, t := range tallies {
		if v, packets := t.Rate(s.String()); v > 0 && packets >= least {
			list = append(list, flow{key: key, value: v})
		}
	}
	slices.SortFunc(list, func(a, b flow) int {
		return cmp.Or(cmp.Compare(b.value, a.value), a.key.Compare(b.key))
	})
	return list[:min(top, len(list))]
}

// amountOf is a statistic's value of a flow, in the report's unit.
func amountOf(t *exact.Tally, s stat) float64 {
	switch s {
	case latency:
		return float64(t.Latency)
	case loss:
		return float64(t.Lost)
	case ooo:
		return float64(t.OutOfOrder)
	}
	return float64(t.Again)
}
