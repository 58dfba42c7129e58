// Package fridge is userspace's half of the fridge: parameters, the correction of the data plane's counts, exact oracle,
// planning, correction tables for the data plane and for the P4 twin.
//
// Zheng, Braverman, Chen, Rexford, "Unbiased Delay Measurement in the Data Plane" (APOCS 2022).
package fridge

import (
	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/findings"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
)

// Name of the algorithm.
const Name = "fridge"

// auto is the value of parameters that are derived from others.
const auto = layout.Auto

func init() { algo.Register(descriptor()) }

// losses are what a window can lack, by the names of algo.Result.Lost.
var losses = map[string]string{
	"evicted":         "records that were overwritten, whether they would have been answered or not",
	"too_long":        "responses after more than the longest measurable delay",
	"torn":            "samples whose record another core wrote in the same instant",
	"samples_refused": "single samples beyond the rate of the stream, with fridge.samples",
	"samples_lost":    "single samples that found the ring full, since the reader was stalled, with fridge.samples",
	"stale":           "responses to requests of three or more settings ago, with fridge.fridges=auto",
	"group_row_taken": `samples counted under "others", since another group has their row`,
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Pairs:    true,
		Summary:  "delays between requests and responses: unbiased percentiles from a small table",
		Lost:     losses,
		Paper:    `Zheng, Braverman, Chen, Rexford: "Unbiased Delay Measurement in the Data Plane", APOCS 2022, sections 3, 4.2, 5.2, 6`,
		Doc:      doc,
		Params:   params,
		Twin:     twinForms,
		Spec:     bpf.LoadFridge,
		Config:   algo.Typed(newConfig),
		Layout:   3,
		Findings: findings.Of,
	}
}

const doc = `A request enters a table of M slots with probability p and overwrites what is there; its response takes it out again.
Slow responses find their request overwritten more often, so a plain table counts them too rarely. The fridge notes how
many insertions x each request has survived and lets the sample stand for 1/p * (1 - 1/M)^-x requests: what was lost is
made up for by what was not, and the distribution is unbiased whatever M is. What M buys is a smaller error, which
the intervals show.

Rules (fridge.match): tcp-handshake (SYN, SYN-ACK and the ACK after it, with both legs and their sum), tcp-data (a
segment and the ACK of its last byte), tcp-timestamp, dns, ntp, icmp-echo, tcp-duration (a flow from its SYN to the first
FIN or RST, with its bytes and packets).

Fitting (report.fit): M/p is how many requests pass before a record is overwritten. It should be about what passes within
the longest delay that matters. "under-used": less memory would do, or a larger p; "over-subscribed": the slow
responses rest on few samples with large weights; take a smaller p or more memory. ` + "`xdpmon plan fridge`" + ` calculates both.

Planning: --rate is requests per second, --max-delay the longest delay that matters. --extra answered=0.4 is the share of
requests that get an answer, --extra window=10s the time over which a report adds up, --extra cpus=2 the CPUs that each have
a histogram.

Limits: with fridge.retransmit=keep a request that is repeated after its record was overwritten counts once, but with the
delay from the repetition on (a note states how many). Delays above 2^32 ticks (275 s with the default tick) are
counted under lost.too_long.`

var params = []algo.Param{
	{Key: "fridges", Type: algo.String, Default: "65536@1",
		Help: "entries@probability of each fridge, up to 4: 65536@1, or 32768@1/2,32768@1/64; @P:SHARE routes a share of the requests there; auto or auto:ENTRIES: " +
			"probabilities follow load and delays from window to window"},
	{Key: "match", Type: algo.Enum, Default: "tcp-handshake", Choices: delay.KindNames, Help: "which packets are requests and responses"},
	{Key: "side", Type: algo.Enum, Default: "any", Choices: delay.SideNames,
		Help: "tcp-data, tcp-timestamp: requests are segments with payload (any: a tap) or what this host sends (egress) or receives (ingress)"},
	{Key: "retransmit", Type: algo.Enum, Default: auto, Choices: []string{auto, "restart", "keep"},
		Help: "a repeated request starts the clock again, or keeps the first one's time (what the user felt); auto: restart, tcp-timestamp keep"},
	{Key: "legs", Type: algo.Enum, Default: auto, Choices: []string{auto, "true", "false"},
		Help: "tcp-handshake: also SYN-ACK to ACK, and the sum; auto: when there are no groups"},
	{Key: "counter", Type: algo.Enum, Default: "recorded", Choices: []string{"recorded", "inferred"},
		Help: "survived insertions are recorded with each request, or inferred from its delay and the rate of insertions"},
	{Key: "correction", Type: algo.Enum, Default: auto, Choices: []string{auto, "exact", "table"},
		Help: "factors are applied when the histogram is read, or added up in the data plane from a table, as on a switch; auto: exact, with groups table"},
	{Key: "combine", Type: algo.Enum, Default: combineInverse, Choices: []string{combineInverse, combineFixed, combineSampled},
		Help: "several fridges: weighted for each delay by the variance to expect, by fixed shares, or by the variance found in the samples (section 4.2)"},
	{Key: "group", Type: algo.String, Default: "none", Help: "one distribution for each src/LEN, dst/LEN (IPv4 prefix length), dport or vlan"},
	{Key: "group6", Type: algo.Int, Default: "48", Min: "1", Max: "60", Unit: "bits", Help: "IPv6 prefix length of src and dst groups"},
	{Key: "rows", Type: algo.Int, Default: "64", Min: "2", Max: "4096", Help: "rows for groups; groups whose row is taken are counted under others"},
	{Key: "sla", Type: algo.String, Default: "none", Help: "delay that a share of the responses must keep, like 50ms@95%: groups that break it are named"},
	{Key: "samples", Type: algo.Int, Default: "0", Min: "0", Max: "256",
		Help: "slowest responses of a window to list by connection, beside up to three at each percentile; 0: none, and none is sent"},
	{Key: "resolution", Type: algo.Enum, Default: auto, Choices: []string{auto, "4", "8", "16", "32"},
		Help: "delay bins an octave; auto: as many as the histogram has room for"},
	{Key: "tick", Type: algo.String, Default: auto,
		Help: "unit of stored times, a power of two ns up to 1.048576ms; auto: 64ns, tcp-duration 65.536us; 2^32 ticks can be measured"},
	{Key: "shards", Type: algo.String, Default: auto, Help: "insertion counters of each fridge, so that cores do not share one; auto: one for 256 entries"},
}
