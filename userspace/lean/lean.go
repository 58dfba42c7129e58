// Package lean is userspace's half of the lean algorithms: which flows suffer most from latency, loss, reordering or
// retransmission, from Count Sketches of finished events; and the exact answer to compare with.
package lean

import (
	_ "embed"
	"strings"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean/findings"
)

// Name of the algorithm.
const Name = "lean"

func init() { algo.Register(Descriptor()) }

// Descriptor of the algorithm.
func Descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:    Name,
		Summary: "which flows suffer most: latency, loss, reordering, retransmission, in 40 KB each",
		Lost: map[string]string{
			"latency_stale":         "ACKs that arrived too late to measure their delay",
			"loss_not_followed":     "packets of flows whose table entry another flow holds",
			"ooo_not_watched":       "segments of flows whose table entry another flow holds",
			"retrans_not_watched":   "segments of flows whose table entry another flow holds",
			"latency_reports":       "reports of flows that were dropped because the ring to userspace was full",
			"loss_reports":          "reports of flows that were dropped because the ring to userspace was full",
			"ooo_reports":           "reports of flows that were dropped because the ring to userspace was full",
			"retrans_reports":       "reports of flows that were dropped because the ring to userspace was full",
			"latency_without_place": "by rate: long delays of flows that found no place in the table",
			"loss_without_place":    "by rate: gaps of flows that found no place in the table",
			"ooo_without_place":     "by rate: packets out of order of flows that found no place in the table",
			"retrans_without_place": "by rate: packets sent again of flows that found no place in the table",
			"latency_unnamed":       "by rate: counts of flows whose report was dropped",
			"loss_unnamed":          "by rate: counts of flows whose report was dropped",
			"ooo_unnamed":           "by rate: counts of flows whose report was dropped",
			"retrans_unnamed":       "by rate: counts of flows whose report was dropped",
		},
		Paper:    `Liu, Zhou, Rottenstreich, Braverman, Rexford: "Memory-Efficient Performance Monitoring on Programmable Switches with Lean Algorithms", APOCS 2020, sections 2 to 6`,
		Doc:      strings.TrimSpace(doc),
		Params:   params,
		Twin:     twinForms,
		Spec:     bpf.LoadLean,
		Config:   algo.Typed(newConfig),
		Layout:   1,
		Findings: findings.Of,
		PlanFrom: algo.PlanArgs{MemoryBytes: baseMemory},
	}
}

//go:embed doc.txt
var doc string

var params = []algo.Param{
	{Key: "stat", Type: algo.String, Default: "latency,loss,ooo,retrans", Help: "statistics, one or several: latency, loss, ooo, retrans"},
	{Key: "key", Type: algo.Enum, Default: "5tuple", Choices: []string{"5tuple", "pair"}, Help: "what a flow is: 5-tuple, or source and destination address"},
	{Key: "by", Type: algo.Enum, Default: "count", Choices: []string{"count", "rate"}, Help: "what ranks flows: sums, or events by packets and mean delays; a rate needs the default forms"},
	{Key: "least", Type: algo.Int, Default: "100", Min: "1", Max: "1000000", Help: "by=rate: packets that a listed flow must have"},
	{Key: "count", Type: algo.Enum, Default: "packets", Choices: []string{"packets", "bytes"}, Help: "what ooo and retrans count: packets, or their payload bytes"},
	{Key: "memory", Type: algo.Size, Default: "40kB", Min: "2500", Max: "640kB", Help: "of each statistic, one bank: tables, sketch and filter; powers of two times 40 kB are used whole"},
	{Key: "latency", Type: algo.Enum, Default: "matched", Choices: []string{"matched", "signed"}, Help: "match segments and ACKs first, or Algorithm 1"},
	{Key: "p", Type: algo.String, Default: "auto", Help: "latency=matched: share of the segments that are sampled, 1/1024 to 1; auto follows the load"},
	{Key: "mean", Type: algo.Bool, Default: "false", Help: "latency=matched: count the delays, too, for each flow's mean; half as much memory again, and without retrans"},
	{Key: "loss", Type: algo.Enum, Default: "gaps", Choices: []string{"gaps", "walk"}, Help: "a table of last identifiers, or Algorithm 2"},
	{Key: "loss.id", Type: algo.Enum, Default: "tcp-bytes", Choices: lossIDs, Help: "what loss is read from: TCP's sequence numbers, IPv4 identification, RTP's numbers"},
	{Key: "ooo", Type: algo.Enum, Default: "sketch", Choices: []string{"sketch", "misra-gries"}, Help: "what holds the counts of packets out of order: Count Sketch, or keyed counters (section 4.3)"},
	{Key: "retrans", Type: algo.Enum, Default: "sequence", Choices: []string{"sequence", "distinct"}, Help: "what calls a packet sent again: the flow's sequence numbers, or Algorithm 4"},
	{Key: "keys", Type: algo.Enum, Default: "bloom", Choices: []string{"bloom", "bits"}, Help: "flows are named by reports, each once, or from sub-buckets, one a bit of the key (IPv4, one statistic, few large flows)"},
	{Key: "agree", Type: algo.Int, Default: "3", Min: "3", Max: "5", Help: "rows of five that must pass the limit: 3 is the median"},
	{Key: "candidates", Type: algo.Int, Default: "2048", Min: "16", Max: "65536", Help: "a flow is reported when it has this part of all flows' sum, so about as many are; a power of two"},
	{Key: "top", Type: algo.Int, Default: "100", Min: "1", Max: "10000", Help: "flows in each table"},
	{Key: "ring", Type: algo.Size, Default: "1MiB", Min: "4KiB", Max: "1GiB", Help: "ring of reports, a power of two; at least 4MiB in a replay"},
	{Key: "switch.rate", Type: algo.String, Default: "0", Help: "for `xdpmon p4 rules` only: segments a second that a switch followed, which delays' weights depend on"},
	{Key: "switch.limit", Type: algo.String, Default: "1", Help: "for `xdpmon p4 rules` only: what a flow must reach to be reported, for all statistics or as latency=N,ooo=N; latency in 8.192 us"},
}
