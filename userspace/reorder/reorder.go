// Package reorder is userspace's half of reorder: which prefixes have many packets out of order, from the reports of
// the data plane; and the exact answer to compare with.
package reorder

import (
	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Name of the algorithm.
const Name = "reorder"

func init() { algo.Register(descriptor()) }

// losses are what a window can lack, by the names of algo.Result.Lost.
var losses = map[string]string{
	"not_watched":   "segments that found another flow's record, or were the first of their record",
	"recirculation": "second passes that the budget refused: those flows are not watched",
	"reports":       "reports that were dropped because the ring to userspace was full",
	"torn":          "records with words of two flows, because two cores wrote a bucket at once",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Summary:  "source prefixes whose TCP packets arrive out of order",
		Lost:     losses,
		Paper:    `Zheng, Yu, Rexford: "Detecting TCP Packet Reordering in the Data Plane", arXiv:2301.00058, 2023, sections 2, 3, 4.4`,
		Doc:      doc,
		Params:   params,
		Spec:     bpf.LoadReorder,
		Config:   algo.Typed(newConfig),
		Layout:   1,
		Findings: findings,
	}
}

const doc = `Which networks send packets that arrive out of order, because a path loses, retransmits or reorders them? Flows of one
prefix share a path, so watching a few flows of each for some packets is enough: a handful of buckets finds the worst
prefixes among thousands, where a table of flows would need a record for each.

sampling: one bucket watches one flow after the other, for T or C packets or until R were out of order. Finds prefixes of
many small flows. precision: keeps the largest flows of each prefix; fewer reports, blind for prefixes without a large
flow. hybrid: a share x of the buckets for precision, the rest for sampling of the flows that precision does not watch.

Definitions of "out of order" (only packets with TCP payload count): 1 a sequence number below the predecessor's; 2 one
above the number expected after the predecessor; 3 one below the largest so far. A retransmission is 1 and 3, a packet that
follows a loss is 2. The three do not agree with each other, nor with what other tools call out of order.

A prefix is listed when at least alpha packets of its flows were watched and, with report=all, more than c*epsilon of them
were out of order. With report=reorder only records with reordering are reported, which costs few reports and finds most
prefixes, but also lists prefixes with a single event: the share that it prints is of watched flows with reordering, too
large for the prefix.`

var methods = []string{"sampling", "precision", "hybrid"} // in the order of enum reorder_method_kind

var reports = []string{"reorder", "all"}

var params = []algo.Param{
	{Key: "method", Type: algo.Enum, Default: "sampling", Choices: methods, Help: "what is watched: samples of all flows, the largest flows, or both"},
	{Key: "definition", Type: algo.Enum, Default: "1", Choices: []string{"1", "2", "3"},
		Help: "out of order: 1 below the predecessor, 2 after what was expected, 3 below the largest number so far"},
	{Key: "report", Type: algo.Enum, Default: "reorder", Choices: reports, Help: "records that are reported: those with reordering, or all, from which the share follows"},
	{Key: "buckets", Type: algo.Int, Default: "1024", Min: "2", Max: "32768", Unit: "records", Help: "records of all arrays together; a switch register holds no more in two banks"},
	{Key: "x", Type: algo.Float, Default: "0.2", Min: "0.01", Max: "0.99", Help: "method=hybrid: share of the buckets that keeps large flows"},
	{Key: "ways", Type: algo.Int, Default: "2", Min: "1", Max: "5", Help: "d: places that a large flow has (precision, hybrid)"},
	{Key: "T", Type: algo.Duration, Default: "30518ns", Min: "0s", Max: "4m", Help: "age from which on a sampled record may be replaced"},
	{Key: "C", Type: algo.Int, Default: "16", Min: "0", Max: "16777214", Unit: "packets", Help: "packets after which a sampled record may be replaced"},
	{Key: "R", Type: algo.Int, Default: "1", Min: "1", Max: "16777215", Unit: "packets", Help: "out-of-order packets after which a sampled record may be replaced, and is reported"},
	{Key: "Rshare", Type: algo.Float, Default: "0.01", Min: "0", Max: "1", Help: "share of out-of-order packets above which a large flow's record is reported"},
	{Key: "alpha", Type: algo.Int, Default: "16", Min: "1", Max: "1000000000", Unit: "packets", Help: "watched packets from which on a prefix may be listed"},
	{Key: "beta", Type: algo.Int, Default: "128", Min: "1", Max: "1000000000", Unit: "packets", Help: "packets of a prefix that should not be missed (--truth)"},
	{Key: "epsilon", Type: algo.Float, Default: "0.01", Min: "0", Max: "1", Help: "share of out-of-order packets above which a prefix is heavily reordered; 0.02 suits definition 2"},
	{Key: "c", Type: algo.Float, Default: "0.5", Min: "0.001", Max: "1", Help: "report=all: prefixes above c times epsilon are listed, since only a part of their packets was watched"},
	{Key: "prefix", Type: algo.Int, Default: "24", Min: "1", Max: "32", Unit: "bits", Help: "length of IPv4 source prefixes"},
	{Key: "prefix6", Type: algo.Int, Default: "48", Min: "17", Max: "48", Unit: "bits", Help: "length of IPv6 source prefixes"},
	{Key: "recirculate", Type: algo.Float, Default: "0.1", Min: "0.001", Max: "1", Help: "largest share of packets that pass twice"},
	{Key: "ring", Type: algo.Size, Default: "1MiB", Min: "4KiB", Max: "1GiB", Help: "ring of reports, a power of two; it is emptied ten times a second"},
	{Key: "top", Type: algo.Int, Default: "100", Min: "1", Max: "10000", Help: "prefixes in the table, most out-of-order packets first"},
}
