// Package precision is userspace's half of PRECISION: the heaviest flows by partial recirculation.
package precision

import (
	bpf "github.com/xdpmon/xdpmon/bpf/precision"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Name of the algorithm.
const Name = "precision"

func init() { algo.Register(descriptor()) }

// losses describe the entries of algo.Result.Lost.
var losses = map[string]string{
	"no_key":                "segments without the key's fields",
	"recirculation_refused": "second passes that the budget refused: counts are too small",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Summary:  "which flows are the heaviest, by name, in a fixed memory",
		Lost:     losses,
		Paper:    `Chen: "Designing Compact Data Structures for Network Measurement and Control", dissertation, Princeton University, 2023, chapter 3`,
		Doc:      doc,
		Params:   params,
		Twin:     twinForms,
		Spec:     bpf.LoadPrecision,
		Config:   algo.Typed(newConfig),
		Layout:   1,
		Findings: findings,
	}
}

const doc = `Keeps whole keys with counters in d arrays. A packet whose flow is there adds to its counter. One whose flow is not there
looks at the smallest of d counters, and with probability 1/(that counter + 1) passes the program a second time
and takes that entry over. Large flows try again and again until they are in; small flows do not push them out.

Every packet of a flow that has no entry adds one to its estimate on average, so what a flow sent before it was admitted is
in its count, and a flow that keeps its entry is estimated without bias. Admission is luck: every entry notes with which
value it was taken, which makes the 95 % interval of a row; what arrived since is exact ("counted"). A row of which less
than half was counted is marked ("may be half or less"). A flow that lost its entry starts again, and one that is not listed is
estimated as 0: with 95 % probability it had fewer packets than "unseen_below".

Second passes cost time. With N packets and E entries there are sqrt(2 N E) of them at most, which is a small share where there is
much traffic. precision.initial=auto begins with 1, which is best for the answer, and raises it for as long as there were more second
passes a second than precision.passes. With precision.initial=100 they are below 1 % from the first packet on; the price is that
a table which has room stays empty until flows have arrived 100 times, and that every flow that is listed has more than 100.

precision.admission: exact needs a division; pow2 and 9/8 are what a switch can do, 9/8 is as good as exact; deterministic
admits every n-th packet without chance, which somebody can exploit who knows it.

Counters are per CPU, because a key is longer than a word that can be written at once. Estimates of a flow are added up over
the CPUs and stay right on average; but the memory of every CPU is its own.`

var params = []algo.Param{
	{Key: "key", Type: algo.Enum, Default: "5tuple", Choices: heavy.KindNames, Help: "what makes a flow; service is destination, port and protocol"},
	{Key: "family", Type: algo.Enum, Default: "both", Choices: heavy.FamilyNames, Help: "IP versions that are counted; IPv4 alone takes less memory"},
	{Key: "count", Type: algo.Enum, Default: "packets", Choices: []string{"packets", "bytes"}, Help: "what is heavy"},
	{Key: "ways", Type: algo.Int, Default: "2", Min: "1", Max: "4", Help: "arrays that the entries are split into, d of the paper"},
	{Key: "entries", Type: algo.Int, Default: "4096", Min: "8", Max: "262144", Help: "flows that can be remembered, all ways together, on every CPU"},
	{Key: "admission", Type: algo.Enum, Default: "9/8", Choices: heavy.AdmissionNames, Help: "who takes an entry over"},
	{Key: "initial", Type: algo.String, Default: auto,
		Help: "value that counters begin with: second passes are at most one in this many packets; bytes: times 1500; auto: 1, and as much more as precision.passes asks for"},
	{Key: "passes", Type: algo.Float, Default: "200000", Min: "1", Max: "1000000000", Unit: "a second",
		Help: "second passes, of all CPUs together, that precision.initial=auto stays below from the third window on"},
	{Key: "recirculation", Type: algo.Float, Default: "0", Min: "0", Max: "1",
		Help: "largest share of packets that may pass twice; 0: twice what initial lets expect, with auto all. What is refused is counted"},
	{Key: "delay", Type: algo.Int, Default: "0", Min: "0", Max: "1000", Unit: "packets",
		Help: "replay only: packets that go by between a decision and its second pass"},
	{Key: "top", Type: algo.Int, Default: "20", Min: "1", Max: "1000", Help: "flows that are listed"},
}
