// Package hhh is userspace's half of hierarchical heavy hitters: prefixes that send or receive too much.
package hhh

import (
	bpf "github.com/xdpmon/xdpmon/bpf/hhh"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Name of the algorithm.
const Name = "hhh"

func init() { algo.Register(descriptor()) }

// losses describe the entries of algo.Result.Lost.
var losses = map[string]string{
	"other_family":          "segments of the address family that is not measured",
	"recirculation_refused": "second passes that the budget refused: counts are too small",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Summary:  "which networks send or receive too much, at the level where the traffic is",
		Lost:     losses,
		Paper:    `Chen: "Designing Compact Data Structures for Network Measurement and Control", dissertation, Princeton University, 2023, section 3.4`,
		Doc:      doc,
		Params:   params,
		Twin:     twinForms,
		Spec:     bpf.LoadHhh,
		Config:   algo.Typed(newConfig),
		Layout:   2,
		Findings: findings,
	}
}

const doc = `A prefix is a hierarchical heavy hitter when its packets, without those of the heavy prefixes below it, are more than
hhh.threshold of all. A single busy host is reported as a host, a busy network of small hosts as the network.

hhh.method=random-prefix draws one level of the hierarchy for every packet and counts the packet's prefix of that level in
one PRECISION; counts are multiplied by the number of levels. Any dimension, family and level is possible; the error falls with the
number of packets: column "standard error".

hhh.method=stacking counts every packet at every level, in a PRECISION each: exactly down to 8 bits, more accurately than
random-prefix below. There is room for seven levels: one IPv4 address in bytes or nibbles, or with hhh.family=6 one IPv6 address in
bytes down to 64 bits. hhh.entries is divided among them.

hhh.method=whole stores whole addresses in one table and adds them up to prefixes of any length at the end of a window: one count a
packet, whatever the levels. A packet without an entry is worth half of the smallest counter, with such a probability that sums are unbiased; its key
replaces that entry's with a probability by their sizes. Exact while the addresses of a window have entries.

hhh.level=bit has 32 levels of an IPv4 address: prefixes of any length.

The initial value is subtracted before counts are multiplied, or every prefix that had luck once would stand there with
initial x levels. A heavy prefix loses as much: its count is low by up to hhh.initial times the number of levels, which is
part of the error. hhh.initial=auto begins with 1, and follows the load by windows (hhh.passes).

Two dimensions (hhh.dimension=both) have levels of both addresses: (4+1)^2 for the bytes of IPv4, (16+1)^2 of IPv6. The
more levels, the larger the error: prefer bytes to nibbles, and hhh.bits6 to what nobody looks at.`

var params = []algo.Param{
	{Key: "method", Type: algo.Enum, Default: auto, Choices: []string{auto, "random-prefix", "stacking", "whole"},
		Help: "one instance for a random level, or one for each, or one table of whole addresses; auto: whole for hhh.level=bit, else stacking where hhh.family is 4 or 6 and its levels fit"},
	{Key: "dimension", Type: algo.Enum, Default: "src", Choices: []string{"src", "dst", "both"}, Help: "address whose prefixes are counted"},
	{Key: "family", Type: algo.Enum, Default: "both", Choices: heavy.FamilyNames, Help: "IP versions that are counted; stacking counts IPv4 unless this is 6"},
	{Key: "level", Type: algo.Enum, Default: "byte", Choices: []string{"byte", "nibble", "bit"}, Help: "bits from one level to the next: 8, 4 or 1"},
	{Key: "exact8", Type: algo.Enum, Default: auto, Choices: []string{auto, "on", "off"},
		Help: "random-prefix, whole: count prefixes of up to 8 bits of one address in 256 counters a family, so that no level of theirs is drawn; auto: on, but for pairs of addresses and CRC"},
	{Key: "bits6", Type: algo.Int, Default: "64", Min: "8", Max: "128", Help: "longest IPv6 prefix that is counted"},
	{Key: "threshold", Type: algo.Float, Default: "1/100", Min: "0.00001", Max: "1", Help: "share of the traffic from which on a prefix is heavy"},
	{Key: "count", Type: algo.Enum, Default: "packets", Choices: []string{"packets", "bytes"}, Help: "what is heavy"},
	{Key: "ways", Type: algo.Int, Default: "4", Min: "1", Max: "4", Help: "random-prefix, whole: arrays that the entries are split into; stacking has 2 a level"},
	{Key: "entries", Type: algo.Int, Default: "4096", Min: "24", Max: "262144", Help: "prefixes that can be remembered, all levels together, on every CPU"},
	{Key: "admission", Type: algo.Enum, Default: "9/8", Choices: heavy.AdmissionNames[:3], Help: "who takes an entry over; whole: by size"},
	{Key: "initial", Type: algo.String, Default: auto,
		Help: "value that counters begin with: second passes are at most one in this many packets; bytes: times 1500; auto: 1, and as much more as hhh.passes asks for (stacking: 1 up to 4096 entries, else entries / 4096; CRC: 100). whole: a newcomer's least weight; auto: its packet"},
	{Key: "passes", Type: algo.Float, Default: "200000", Min: "1", Max: "1000000000", Unit: "a second",
		Help: "second passes, of all CPUs together, that hhh.initial=auto stays below from the third window on"},
	{Key: "recirculation", Type: algo.Float, Default: "0", Min: "0", Max: "1",
		Help: "largest share of packets that may pass twice; 0: twice what initial lets expect, with auto all. What is refused is counted"},
	{Key: "delay", Type: algo.Int, Default: "0", Min: "0", Max: "1000", Unit: "packets",
		Help: "replay only: packets that go by between a decision and its second pass"},
	{Key: "top", Type: algo.Int, Default: "50", Min: "1", Max: "1000", Help: "prefixes that are listed"},
}
