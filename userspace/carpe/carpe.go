// Package carpe is userspace's half of Carpe: flows that are heavy in the network and not at any one place. A host holds, counts and
// reports (Instance); where many hosts come together their reports make elephants, and groups of flows get the parameters that
// suit how many hosts see them (Coordinator). Harrison et al., "Carpe Elephants: Seize the Global Heavy Hitters", SPIN 2020.
package carpe

import (
	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Name of the algorithm.
const Name = "carpe"

func init() { algo.Register(descriptor()) }

// losses are what a window can lack, by the names of algo.Result.Lost.
var losses = map[string]string{
	"no_key":         "packets without the key's fields",
	"reports":        "reports of bundles that found the ring full: counts are too small",
	"reports_late":   "reports that arrived after the answer of their window, or whose window got none: in earlier answers counts are too small",
	"collisions":     "sampled packets that found no place, and that nobody counts: counts are too small; more carpe.entries, or carpe.handover",
	"handed_over":    "sampled packets that found no place, nor room where the control plane counts them",
	"raced":          "sampled packets that lost their place to another core: their flow is sampled again",
	"messages":       "messages of hosts that were lost in transit, with the reports in them: counts are too small",
	"groups_unheard": "groups that were not reported to the control plane, because the ring was full: reported again later",
	"groups_full":    "groups that found no room: they keep the parameters of unknown ones; more carpe.groups",
	"flows_full":     "reports of flows that found no room in the coordinator: more carpe.flows",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:     Name,
		Summary:  "which flows are heavy in the whole network, though light at every host",
		Lost:     losses,
		Paper:    `Harrison, Landau Feibish, Gupta, Teixeira, Muthukrishnan, Rexford: "Carpe Elephants: Seize the Global Heavy Hitters", SPIN 2020, sections 3 and 4`,
		Doc:      doc,
		Params:   params,
		Spec:     bpf.LoadCarpe,
		Config:   algo.Typed(newConfig),
		Layout:   1,
		Findings: findings,
	}
}

const doc = `Finds flows that reach carpe.threshold packets or bytes in the network within carpe.span windows. A flow is sampled
with probability carpe.s, and counted from then on. Every time that its count reaches tau = epsilon threshold / l, the host reports it with
probability 1/l, so that a report stands for epsilon threshold; 1/epsilon reports, from whatever hosts, make an elephant. l is how many
hosts observe the flow's group, a pair of prefixes (carpe.group): what few hosts see needs few and coarse reports, what many hosts
see is counted finely by each. A group that a host has no parameters for uses those of very many hosts, since what just begins may be
everywhere, and the host says to the coordinator that it observes it; the coordinator answers, and tells all observers when their number has doubled.

On one host (attach, replay) it answers by itself, with l = 1 unless carpe.observers says otherwise. With a coordinator the answer is the coordinator's: host
and coordinator speak of reports as they come, and a window of a host has counts alone.

An estimate is the sum of what reports stand for. It is uncertain by the coin of each report, the wait for a first sample, and what is in
bundles that are not full: its bounds hold all three. Smaller epsilon makes it finer, and costs reports in proportion.

carpe.s is refused unless tau stays above 1/s, for every l that there can be: observers beyond that count as fewer, which makes estimates
no worse and reports more.`

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
		Help: "hosts that are taken to observe a group that nobody has counted; 0: with a coordinator as many as carpe.s lets there be, else one"},
	{Key: "span", Type: algo.Int, Default: "1", Min: "1", Max: "64", Unit: "windows", Help: "length of the sliding window that the threshold is for; it slides by one window"},
	{Key: "age", Type: algo.Int, Default: "60", Min: "4", Max: "100000", Unit: "windows", Help: "after which an observer that sends nothing of a group is removed"},
	{Key: "ways", Type: algo.Int, Default: "2", Min: "1", Max: "3", Help: "arrays that the entries are split into, one after the other"},
	{Key: "entries", Type: algo.Int, Default: "16384", Min: "4", Max: "196608", Help: "flows that can be held, all ways together"},
	{Key: "handover", Type: algo.Bool, Default: "false", Help: "sampled packets that find no place are counted by the control plane: more accurate, at an event each"},
	{Key: "flows", Type: algo.Int, Default: "65536", Min: "16", Max: "4194304", Help: "reported flows that are kept, at most: on a host, and in the coordinator"},
	{Key: "top", Type: algo.Int, Default: "20", Min: "1", Max: "1000", Help: "elephants that are listed"},
}
