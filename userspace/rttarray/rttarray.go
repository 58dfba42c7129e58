// Package rttarray is userspace's half of rtt-array: the baseline arrays of the fridge.
package rttarray

import (
	bpf "github.com/xdpmon/xdpmon/bpf/rttarray"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

// Name of the algorithm.
const Name = "rtt-array"

func init() { algo.Register(descriptor()) }

// losses describe the entries of algo.Result.Lost.
var losses = map[string]string{
	"evicted":  "records that were overwritten, whether they would have been answered or not",
	"rejected": "requests that found no slot",
	"too_long": "responses after more than the longest measurable delay",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Pairs:    true,
		Summary:  "delays from a plain table of requests: the biased baselines of the fridge",
		Lost:     losses,
		Paper:    `Zheng, Braverman, Chen, Rexford: "Unbiased Delay Measurement in the Data Plane", APOCS 2022, sections 2.1, 4.1, 5.1, 5.3`,
		Doc:      doc,
		Params:   params,
		Spec:     bpf.LoadRttArray,
		Config:   algo.Typed(newConfig),
		Layout:   1,
		Findings: findings,
	}
}

const doc = `What one would build first, and what the fridge is compared with. Slow responses find their request overwritten more often
than fast ones, and no correction is applied: percentiles are too small.

overwrite: a request overwrites what is in its slot. expiry: it is only put where a slot is empty or holds a request older
than rtt-array.expiry; too long a threshold fills the table with unanswered requests, too short a one loses the
slow ones. cascade: what is evicted from one stage moves on to the next and is corrected for what it survived in the
last; unbiased, but the more stages, the fewer slow responses survive (section 4.1): never build it.

Use the fridge for answers, and this to see on your own traffic what it is worth.`

var params = []algo.Param{
	{Key: "entries", Type: algo.Int, Default: "65536", Min: "4", Max: "4194304", Help: "slots of all stages together, a power of two"},
	{Key: "stages", Type: algo.Enum, Default: "1", Choices: []string{"1", "2", "4"}, Help: "arrays that the entries are split into"},
	{Key: "evict", Type: algo.Enum, Default: "overwrite", Choices: evictions, Help: "what becomes of a request when its slot is taken"},
	{Key: "expiry", Type: algo.Duration, Default: "512ms", Help: "evict=expiry: age from which on a request may be replaced; the paper takes the 99th percentile"},
	{Key: "match", Type: algo.Enum, Default: "tcp-handshake", Choices: delay.KindNames, Help: "which packets are requests and responses, as in the fridge"},
	{Key: "side", Type: algo.Enum, Default: "any", Choices: delay.SideNames,
		Help: "tcp-data, tcp-timestamp: requests are segments with payload (any) or what this host sends (egress) or receives (ingress)"},
	{Key: "resolution", Type: algo.Enum, Default: "32", Choices: []string{"4", "8", "16", "32"}, Help: "delay bins an octave"},
}

// evictions in the order of enum rtt_evict_kind.
var evictions = []string{"overwrite", "expiry", "cascade"}
