package waits

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/waits/cause"
	"github.com/xdpmon/xdpmon/userspace/waits/exact"
)

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	i.judged = true
	return &oracle{i, exact.New(exact.Options{Small: i.small, Late: i.late, Slow: i.slow})}
}

type oracle struct {
	*instance
	truth *exact.Truth
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) { o.truth.Packet(p) }

// Window implements algo.Oracle: the longest waits, and those that the instance has listed.
func (o *oracle) Window(report.Window) report.Body {
	b := report.Body{Values: []report.Value{
		counter("zero_windows", o.truth.Zero, report.PacketUnit, "ACKs without data that announce a window of zero"),
		counter("small_windows", o.truth.Small, report.PacketUnit, "ACKs without data that announce a small window"),
	}}
	var rows []row
	o.truth.Window(func(c *exact.Connection) { rows = append(rows, o.rowsOf(c)...) })
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(a.flow.Compare(b.flow), cmp.Compare(a.kind, b.kind)) })
	list := o.judge(rows)
	listed := map[any]bool{}
	for n, j := range o.judge(o.found) {
		listed[j.flow] = n < o.top
	}
	kept := list[:0:0]
	for n, j := range list {
		if n < o.top || listed[j.flow] {
			kept = append(kept, j)
		}
	}
	waits := o.waits(rows)
	waits.Rows = append(waits.Rows, o.others(rows)...)
	b.Tables = []report.Table{o.causes(kept), waits}
	return b
}

// others are the true rows of what the instance has listed and the truth has not.
func (o *oracle) others(rows []row) (list [][]any) {
	type name struct {
		flow any
		kind cause.Kind
	}
	in, asked := map[name]bool{}, map[name]bool{}
	for _, r := range longest(rows, o.top) {
		in[name{r.flow, r.kind}] = true
	}
	for _, r := range longest(o.found, o.top) {
		asked[name{r.flow, r.kind}] = true
	}
	for _, r := range rows {
		if k := (name{r.flow, r.kind}); asked[k] && !in[k] {
			list = append(list, o.waits([]row{r}).Rows...)
		}
	}
	return list
}

func (o *oracle) rowsOf(c *exact.Connection) (rows []row) {
	for kind := range cause.Kinds {
		for role := range cause.Roles {
			w := c.Waits[kind][role]
			if w.Number == 0 {
				continue
			}
			src, dst := c.Client, c.Server
			if role == cause.Client {
				src, dst = dst, src
			}
			r := row{kind: kind, server: role == cause.Server, wait: w}
			r.flow, _ = o.spec.Of(flowOf(src, dst))
			for role, ns := range c.Legs {
				if r.legs[role] = float64(ns); ns < 0 {
					r.legs[role] = math.NaN()
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func flowOf(src, dst netip.AddrPort) *packet.Packet {
	return &packet.Packet{Valid: packet.IP | packet.Ports, Src: src.Addr(), SrcPort: src.Port(), Dst: dst.Addr(), DstPort: dst.Port(), Proto: 6}
}
