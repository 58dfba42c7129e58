package hhh

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Oracle implements algo.OracleProvider: it counts address pairs and adds them up to prefixes at the end of a window.
func (i *instance) Oracle() algo.Oracle {
	i.judged = true
	return &oracle{instance: i, pairs: map[[2]netip.Addr]float64{}}
}

type oracle struct {
	*instance
	pairs map[[2]netip.Addr]float64
	total uint64
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	if _, ok := o.ways.Spec.Of(p); !ok {
		return
	}
	units := uint64(p.Segs)
	if o.bytes {
		units = uint64(p.Len)
	}
	o.total += units
	pair := [2]netip.Addr{p.Src, p.Dst}
	if o.ways.Spec.Fields&heavy.Src == 0 {
		pair[0] = p.Dst
	}
	if o.ways.Spec.Fields&heavy.Dst == 0 {
		pair[1] = p.Src
	}
	o.pairs[pair] += float64(units)
}

// judged is the table of the exact heavy prefixes, followed by other listed ones. Prefixes of the estimate are conditioned on its
// other prefixes: otherwise one that misses the threshold by a packet would change its ancestors' counts by all of it.
func (o *oracle) judged(found []heavy.Heavy, exact map[heavy.Prefix]float64) report.Table {
	rows, in := found[:min(o.top, len(found))], map[heavy.Prefix]int{}
	for n, h := range rows {
		in[h.Prefix] = n
	}
	for _, h := range o.instance.found[:min(o.top, len(o.instance.found))] {
		given := heavy.Given(exact, o.instance.found, h.Prefix)
		if n, ok := in[h.Prefix]; ok {
			rows[n] = given
		} else {
			rows = append(rows, given)
		}
	}
	t := o.table(nil, o.total)
	t.Limit = 2 * o.top
	for _, h := range rows {
		t.Rows = append(t.Rows, o.row(h, o.total))
	}
	return t
}

// Window implements algo.Oracle.
func (o *oracle) Window(report.Window) report.Body {
	exact := map[heavy.Prefix]float64{}
	for pair, n := range o.pairs {
		o.ancestors(pair[0], pair[1], func(p heavy.Prefix) { exact[p] += n })
	}
	found := heavy.Hierarchical(exact, o.threshold*float64(o.total))
	b := report.Body{Values: []report.Value{
		{Name: "total", Value: o.total, Unit: o.unit(), Kind: report.Counter, Help: "of all prefixes"},
		{Name: "heavy", Value: len(found), Unit: report.Prefixes, Help: "prefixes above the threshold"},
	}, Tables: []report.Table{o.judged(found, exact)}}
	clear(o.pairs)
	o.total = 0
	return b
}
