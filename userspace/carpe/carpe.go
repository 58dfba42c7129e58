// Package carpe is userspace's half of Carpe: flows that are heavy in the network and not at any single host. A host samples, counts
// and reports flows (Instance). The coordinator (Coordinator) declares elephants from the reports of all hosts, and sends each group
// of flows the parameters for the number of hosts that observe it. Harrison et al., "Carpe Elephants: Seize the Global Heavy
// Hitters", SPIN 2020.
package carpe

import (
	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Name of the algorithm.
const Name = "carpe"

func init() { algo.Register(descriptor()) }

// losses describe the entries of algo.Result.Lost.
var losses = map[string]string{
	"no_key":         "packets without the key's fields",
	"reports":        "reports of bundles that were dropped because the ring was full: counts are too small",
	"reports_late":   "reports that arrived after the answer of their window, or whose window got none: in earlier answers counts are too small",
	"collisions":     "sampled packets that found no free entry and are not counted: counts are too small; raise carpe.entries, or set carpe.handover",
	"handed_over":    "sampled packets that found no free entry, and none in the control plane's table either",
	"raced":          "sampled packets that lost their entry to another core: their flow is sampled again",
	"messages":       "messages of hosts that were lost in transit, with the reports in them: counts are too small",
	"groups_unheard": "groups that were not reported to the control plane, because the ring was full: reported again later",
	"groups_full":    "groups beyond carpe.groups: they use the parameters of unknown groups; raise carpe.groups",
	"flows_full":     "reports of flows beyond carpe.flows in the coordinator: raise carpe.flows",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Summary:  "which flows are heavy in the whole network, though light at every host",
		Lost:     losses,
		Paper:    `Harrison, Landau Feibish, Gupta, Teixeira, Muthukrishnan, Rexford: "Carpe Elephants: Seize the Global Heavy Hitters", SPIN 2020, sections 3 and 4`,
		Doc:      doc,
		Params:   params,
		Twin:     twinForms,
		Spec:     bpf.LoadCarpe,
		Config:   algo.Typed(newConfig),
		Layout:   1,
		Findings: findings,
	}
}

const doc = `Finds flows that reach carpe.threshold packets or bytes in the network within carpe.span windows. A flow is sampled
with probability carpe.s, and counted from then on. Every time that its count reaches tau = epsilon threshold / l, the host reports it with
probability 1/l, so that a report stands for epsilon threshold; 1/epsilon reports, from whatever hosts, make an elephant. l is how many
hosts observe the flow's group, a pair of prefixes (carpe.group): a group that few hosts observe needs few and coarse reports, one that many
hosts observe is counted finely by each. A group that a host has no parameters for uses those of very many hosts, since a new group may be
everywhere, and the host reports to the coordinator that it observes the group; the coordinator replies with l, and updates all observers
when their number has doubled.

On one host (attach, replay) it answers by itself, with l = 1 unless carpe.observers sets another number. With a coordinator the answer is the coordinator's:
the host sends reports as they occur, and its own windows hold counters only.

An estimate is the sum of what reports stand for. It is uncertain by the coin of each report, the wait for a first sample, and what is in
bundles that are not full: its bounds hold all three. Smaller epsilon makes it finer, and costs reports in proportion.

carpe.s is refused unless tau stays above 1/s, for every possible l: more observers are counted as the largest possible l, which makes
estimates no worse and reports more.`

var params = []algo.Param{
	{Key: "threshold", Type: algo.Int, Default: "10000", Min: "2", Max: "1000000000000", Help: "packets or bytes in the whole network, within carpe.span windows, that make an elephant"},
	{Key: "epsilon", Type: algo.Float, Default: "0.05", Min: "0.0001", Max: "1", Help: "share of the threshold that a report stands for: 1/epsilon reports make an elephant"},
	{Key: "s", Type: algo.Float, Default: "1/16", Min: "1/1048576", Max: "1", Help: "probability that a packet (or a byte) of a flow without an entry begins one: 1/n"},
	{Key: "declare", Type: algo.Float, Default: "1", Min: "0.1", Max: "10", Help: "share of the threshold at which a flow is declared: below 1 finds more, above 1 errs less"},
	{Key: "key", Type: algo.Enum, Default: "5tuple", Choices: heavy.KindNames, Help: "what makes a flow; service is destination, port and protocol"},
	{Key: "family", Type: algo.Enum, Default: "both", Choices: heavy.FamilyNames, Help: "IP versions that are counted"},
	{Key: "count", Type: algo.Enum, Default: "packets", Choices: []string{"packets", "bytes"}, Help: "what is heavy"},
	{Key: "group", Type: algo.String, Default: "src/16,dst/16,src6/32,dst6/32",
		Help: "prefix lengths of groups: src/N, dst/N for IPv4, src6/N, dst6/N for IPv6 (up to 64); what is left out is 0. Of addresses that the key has"},
	{Key: "groups", Type: algo.Int, Default: "4096", Min: "16", Max: "65536", Help: "groups that a host has parameters for, at most"},
	{Key: "observers", Type: algo.Int, Default: "0", Min: "0", Max: "65536",
		Help: "hosts that are assumed to observe an unknown group; 0: with a coordinator the most that carpe.s allows, else one"},
	{Key: "span", Type: algo.Int, Default: "1", Min: "1", Max: "64", Unit: "windows", Help: "length of the sliding window that the threshold is for; it slides by one window"},
	{Key: "age", Type: algo.Int, Default: "60", Min: "4", Max: "100000", Unit: "windows", Help: "after which an observer that sends nothing of a group is removed"},
	{Key: "ways", Type: algo.Int, Default: "2", Min: "1", Max: "3", Help: "arrays that the entries are split into, one after the other"},
	{Key: "entries", Type: algo.Int, Default: "16384", Min: "4", Max: "196608", Help: "flows that can be held, all ways together"},
	{Key: "handover", Type: algo.Bool, Default: "false", Help: "sampled packets that find no free entry are counted by the control plane: more accurate, at the cost of one event each"},
	{Key: "flows", Type: algo.Int, Default: "65536", Min: "16", Max: "4194304", Help: "reported flows that are stored, at most: on a host, and in the coordinator"},
	{Key: "top", Type: algo.Int, Default: "20", Min: "1", Max: "1000", Help: "elephants that are listed"},
}
