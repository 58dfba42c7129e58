// Package conquest is userspace's half of ConQuest: parameters, bursts and their culprits from what the data plane reports, the exact
// contents of the queue to compare with, planning, and the parameters of the P4 twin.
//
// Chen, "Designing Compact Data Structures for Network Measurement and Control", dissertation, Princeton University, 2023, chapter 5.
package conquest

import (
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Name of the algorithm.
const Name = "conquest"

const auto = "auto"

func init() { algo.Register(descriptor()) }

// losses are what a window can lack, by the names of algo.Result.Lost.
var losses = map[string]string{
	"unmatched": "packets that left and whose arrival is unknown: counted as departures only",
	"blocked":   "packets before the queue whose entry another packet holds (tap): unmatched after it",
	"repeated":  "packets before the queue that look like one that still waits (tap)",
	"raced":     "departures that a counter lacks, since another core began the snapshot in the same instant",
	"late":      "departures that another core's clock had overtaken by a snapshot: not counted",
	"reports":   "reports for which the ring to userspace had no room",
	"unlisted":  "reports of bursts and flows beyond what a window keeps",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Summary:  "who fills the queue, now: bursts of a millisecond and the flows that cause them",
		Lost:     losses,
		Enforces: true,
		Paper:    `Chen: "Designing Compact Data Structures for Network Measurement and Control", dissertation, Princeton University, 2023, chapter 5`,
		Doc:      doc,
		Params:   params,
		Twin:     twinForms,
		Spec:     bpf.LoadConquest,
		Config:   algo.Typed(newConfig),
		Layout:   2,
		Findings: findings,
		PlanFrom: algo.PlanArgs{MaxDelayNS: 8e6}, // four of its snapshots
	}
}

const doc = `Every packet that leaves a queue is counted, by flow, in the snapshot of the moment: a small sketch that is written for
conquest.interval and then read until it is needed again. A packet that has waited conquest.tau or longer asks the snapshots of the time that it
waited how much of what left meanwhile was of its own flow. A flow with more than conquest.alpha of it is a culprit.

Source of the times (conquest.source):
  qdisc   the queues of this host. TC egress writes a packet's time and flow hash where the queueing discipline leaves room, the start of
          transmission (a trace point, which needs CAP_PERFMON) reads them
  tap     any device: interfaces before it and one after it (conquest.egress), packets matched by digest; in a replay
          captures of both (--merge)
  replay  a queue that does not exist: one capture through a model of conquest.rate and conquest.buffer, to see what would be
The default is replay in a replay; on interfaces tap where conquest.egress is set, else qdisc. A tap needs two interfaces.

The report lists bursts (from the first packet that waited conquest.tau to the last one, after which for half of conquest.tau nobody waited it
and then somebody waited less than half of it): start, length, peak, who. "at_least" and "at_most" of a share allow for what the oldest snapshot holds from before the packet arrived, and for collisions.

Keys: 5tuple; srcdst; dst, for incast; class, the DS field's code point. Where a class can wait for ever, conquest.history bounds what is
looked at. conquest.delay=longest asks for the longest delay of late instead of the packet's own: where several classes share a link, those
who wait least may be those who make others wait.

conquest.reading: overlap counts the snapshot that is being written as well, and the oldest one by how much of it lies in the packet's wait,
and compares with all flows in the same snapshots; nearest takes the oldest wholly or not at all, which is what the switch does; inner and outer are the
paper's two roundings, which compare with the length of the queue (conquest.rate times the delay) and miss what is being written.

conquest.action does something about the next packets of culprits, and only theirs (source=qdisc): ecn, drop, mark or class. Nothing is
done by default; what is done to a flow ends conquest.hold after it was last found to fill the queue, and at once with the process. Of
conquest.chance, threshold acts on all of a culprit's packets, linear and quadratic the more the larger its share is, steps like a switch. With
conquest.weight culprits are flows with so much in the queue, whatever their share: conquest.tau=1ms conquest.interval=500us
conquest.snapshots=16 conquest.weight=1500B conquest.chance=linear keeps a queue of 100 Mbit/s near conquest.tau. Snapshots are to be
shorter than conquest.tau: a wait inside of one is no evidence.

Planning: --rate is packets a second, --max-delay the longest delay of the queue, --memory what snapshots may take.`

var params = slices.Concat([]algo.Param{
	{Key: "source", Type: algo.Enum, Default: auto, Choices: []string{auto, "qdisc", "tap", "replay"}, Help: "where arrival and departure are known from; auto: replay in a replay, tap where conquest.egress is set, else qdisc"},
	{Key: "rate", Type: algo.String, Default: "1Gbit", Help: "of the link after the queue: 10Gbit, 100Mbit (source=replay; reading=inner, outer)"},
	{Key: "buffer", Type: algo.Size, Default: "1MB", Min: "1500B", Max: "4GB", Help: "source=replay: what the queue holds; what arrives when it is full is dropped"},
	{Key: "egress", Type: algo.String, Default: auto, Help: "source=tap: the interface after the queue (in a replay its number); auto: what leaves this host, in a merged replay the last capture"},
	{Key: "digests", Type: algo.Int, Default: "65536", Min: "16", Max: "65536", Help: "source=tap: packets that can be in the device at a time, a power of two"},
	{Key: "expire", Type: algo.String, Default: auto, Help: "source=tap: a packet that takes longer through the device is given up; auto: four times conquest.longest"},
	{Key: "longest", Type: algo.String, Default: auto, Help: "longest delay of the queue; auto: of a full one (source=replay), else 8ms"},
	{Key: "snapshots", Type: algo.Int, Default: "4", Min: "2", Max: "16", Help: "a power of two; more are finer"},
	{Key: "interval", Type: algo.String, Default: auto, Help: "length of a snapshot, rounded up to a power of two ns; auto: so that all of them reach back conquest.longest"},
	{Key: "rows", Type: algo.Int, Default: "2", Min: "1", Max: "2", Help: "of each sketch"},
	{Key: "columns", Type: algo.Int, Default: "2048", Min: "2", Max: "16384", Help: "of each row, a power of two"},
	{Key: "queues", Type: algo.Int, Default: "1", Min: "1", Max: "256", Help: "transmit queues that have snapshots of their own, a power of two; those beyond share"},
	{Key: "tau", Type: algo.String, Default: auto, Help: "delay from which the queue is congested; auto: an eighth of conquest.longest"},
	{Key: "alpha", Type: algo.Float, Default: "1/16", Min: "1/1048576", Max: "1", Help: "share of the queue from which a flow is a culprit"},
	{Key: "key", Type: algo.Enum, Default: "5tuple", Choices: []string{"5tuple", "srcdst", "dst", "class"}, Help: "what makes a flow"},
	{Key: "count", Type: algo.Enum, Default: "bytes", Choices: []string{"bytes", "packets"}, Help: "what a share is a share of"},
	{Key: "reading", Type: algo.Enum, Default: "overlap", Choices: []string{"overlap", "nearest", "inner", "outer"}, Help: "which snapshots are read, and what with is compared"},
	{Key: "history", Type: algo.Duration, Default: "0s", Min: "0s", Max: "10s", Help: "a packet looks no further back than this; 0: as long as it waited"},
	{Key: "delay", Type: algo.Enum, Default: "own", Choices: []string{"own", "longest"}, Help: "how long a packet looks back: as it waited itself, or the longest delay of late (several classes)"},
	{Key: "ramp", Type: algo.Size, Default: "0", Max: "4GB", Help: "flows that grow by more than this from one snapshot to the next are listed, whoever waits (bytes or packets, as conquest.count); 0: none"},
	{Key: "bursts", Type: algo.Int, Default: "100", Min: "1", Max: "1000", Help: "bursts that a report lists, the last ones"},
	{Key: "top", Type: algo.Int, Default: "20", Min: "1", Max: "1000", Help: "flows that are listed"},
}, actionParams)
