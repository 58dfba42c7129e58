package lean

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/exact"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// columns of the paper's sketch.
const columns = 2000

// medianOfFive is the standard deviation of the median of five normal variables of deviation 1.
const medianOfFive = 0.536

// left is what one flow leaves in its cell of a row.
type left struct {
	key    heavy.Key
	signed float64 // s: Algorithm 1
	walk   float64 // Algorithm 2
	ids    idClass
	sent   float64 // data packets
	tally  exact.Tally
}

// idClass is how a flow fills its IPv4 IDs.
type idClass int

const (
	counting idClass = iota // or random: with few packets the two look alike
	constant
	absent
	idClasses
)

// leftovers goes through a model and keeps what the paper's forms would add for every flow.
func leftovers(o traffic.LeanOptions) ([]left, error) {
	m, err := traffic.NewLean(o)
	if err != nil {
		return nil, err
	}
	all, flows := exact.NewTruth(exact.TruthOptions{Key: fiveTuple, ID: "ipid"}), map[heavy.Key]*left{}
	for p := (packet.Packet{}); m.Next(&p); {
		all.Packet(&p)
		add(flows, &p)
	}
	tallies, _ := all.Window()
	list := make([]left, 0, len(flows))
	for key, f := range flows {
		f.key, f.tally = key, tallies[key]
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b left) int { return a.key.Compare(b.key) })
	return list, nil
}

func add(flows map[heavy.Key]*left, p *packet.Packet) {
	seconds := float64(p.Time) / 1e9
	if p.Payload == 0 { // of the flow whose data it acknowledges
		if f := flows[keyOf(p, true)]; f != nil {
			f.signed += seconds
		}
		return
	}
	key := keyOf(p, false)
	f := flows[key]
	if f == nil {
		f = &left{ids: absent}
		flows[key] = f
		if p.Has(packet.IPID) {
			f.ids = constant
		}
	}
	f.signed -= seconds
	f.sent++
	if p.Has(packet.IPID) {
		f.walk += step(key, p.IPID)
		if p.IPID != 0 && f.ids == constant {
			f.ids = counting
		}
	}
}

func keyOf(p *packet.Packet, reverse bool) heavy.Key {
	turned := *p
	if reverse {
		turned.Src, turned.Dst, turned.SrcPort, turned.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	}
	key, _ := fiveTuple.Of(&turned)
	return key
}

// step of Algorithm 2: the two identifiers of a pair cancel each other. The sign is a fair one of pair and flow.
func step(key heavy.Key, id uint16) float64 {
	pair := uint64(id+1) / 2
	h := pair * 0x9e3779b97f4a7c15
	for _, w := range key {
		h = (h ^ w) * 0xbf58476d1ce4e5b9
		h ^= h >> 29
	}
	sign := 1.0
	if h>>32&1 == 1 {
		sign = -1
	}
	if id&1 == 1 {
		return sign
	}
	return -sign
}

// expect ranks all flows by what their cells would show, with normal noise of the calculated deviation, and returns the
// recall of the true list: what a form can reach at best, when every flow is a candidate.
func expect(list []left, statistic string, of func(*left) float64, deviation float64) float64 {
	type estimate struct{ truth, says float64 }
	rng := rand.New(rand.NewPCG(1, 1))
	all, truths := make([]estimate, len(list)), make([]float64, len(list))
	for i := range list {
		truths[i] = valueOf(list[i].tally, statistic)
		all[i] = estimate{truths[i], math.Abs(of(&list[i]) + deviation*rng.NormFloat64())}
	}
	slices.Sort(truths)
	last := max(truths[len(truths)-topFlows], math.SmallestNonzeroFloat64)
	slices.SortFunc(all, func(a, b estimate) int { return cmp.Compare(b.says, a.says) })
	hits := 0
	for _, e := range all[:topFlows] {
		if e.truth >= last {
			hits++
		}
	}
	return share(hits, topFlows)
}

func sum(list []left, of func(*left) float64) (total float64) {
	for i := range list {
		total += of(&list[i])
	}
	return total
}

func variance(_ context.Context, p *eval.Page) error {
	warn(p)
	list, err := leftovers(model(p, bar, 1))
	if err != nil {
		return err
	}
	signedVariance(p, list)
	walkVariance(p, list)
	distinctVariance(p, list)
	countersVariance(p, list)
	return nil
}

// signedVariance explains Algorithm 1.
func signedVariance(p *eval.Page, list []left) {
	total := func(f *left) float64 { return float64(f.tally.Latency) / 1e9 }
	residue := func(f *left) float64 { return f.signed - total(f) }
	squares := func(of func(*left) float64) float64 {
		return sum(list, func(f *left) float64 { return of(f) * of(f) })
	}
	cell := math.Sqrt(squares(func(f *left) float64 { return f.signed }) / columns)
	clean := math.Sqrt(squares(total) / columns)
	last := rankOf(list, "latency").last / 1e9
	p.Text("### Algorithm 1, signed times")
	p.Text(`A segment adds -t to its flow's cells, its ACK +t, so a flow leaves its total delay D less the time t of every segment that was not
acknowledged: one in a hundred here, and none of them small, since t is a time of day. Theorem 6 has Var = sum D^2 / B only. With
U for the sum of those times it is Var = sum (D - U)^2 / B.`)
	p.Text(`Noise also lifts flows of every size above the limit, so tens of thousands are reported; once the Bloom filter is full of them, a flow
that comes later is taken for reported. Where the bars' table has less than what follows, that is why.`)
	t := &figure.Table{Columns: []string{"B = 2000, seed 1", "seconds"}}
	t.Add("100th true value", fmt.Sprintf("%.0f", last))
	t.Add("deviation of a cell if all were answered, root of sum D^2 / B", fmt.Sprintf("%.0f", clean))
	t.Add("deviation of a cell as it is, root of sum (D - U)^2 / B", fmt.Sprintf("%.0f", cell))
	t.Add("root of the mean U^2 of the true top 100, what their own cells are wrong by", fmt.Sprintf("%.0f", rootMean(list, "latency", residue)))
	p.Table(t)
	for _, b := range []int{columns, 4 * columns} {
		deviation := medianOfFive * math.Sqrt(squares(func(f *left) float64 { return f.signed })/float64(b))
		p.Text("With %d columns the median of five errs by %.0f s: recall %s at best, when all flows are candidates. What is found is found because "+
			"elephants have the most segments without an ACK, and the largest totals too: the list is one of sizes.", b, deviation,
			figure.Percent(expect(list, "latency", func(f *left) float64 { return f.signed }, deviation)))
	}
}

// rankOf orders a statistic of leftovers.
func rankOf(list []left, statistic string) *ranking {
	tallies := map[heavy.Key]exact.Tally{}
	for i := range list {
		tallies[list[i].key] = list[i].tally
	}
	return rank(tallies, statistic)
}

// rootMean of a residue over the true list.
func rootMean(list []left, statistic string, of func(*left) float64) float64 {
	last, n, squares := rankOf(list, statistic).last, 0.0, 0.0
	for i := range list {
		if valueOf(list[i].tally, statistic) >= last {
			n++
			squares += of(&list[i]) * of(&list[i])
		}
	}
	return math.Sqrt(squares / n)
}

// walkVariance explains Algorithm 2.
func walkVariance(p *eval.Page, list []left) {
	var n, squares [idClasses]float64
	for i := range list {
		f := &list[i]
		n[f.ids]++
		squares[f.ids] += f.walk * f.walk
	}
	r := rankOf(list, "loss")
	p.Text("### Algorithm 2, a walk over identifiers")
	p.Text(`The two identifiers of a pair cancel each other. What a flow that loses nothing leaves is the pair at its beginning and the one at its end,
where only one of the two came by: a variance of about 1 for every flow, in every row. Constant identifiers add the same sign with
every packet, random ones walk all the time. Var = sum over flows of their walk squared / B.`)
	t := &figure.Table{Columns: []string{"IPv4 IDs", "flows", "sum of squared walks", "deviation of a cell, B = 2000"}}
	total := 0.0
	for class, label := range []string{"count packets, or are random", "always 0", "none (IPv6)"} {
		total += squares[class]
		t.Add(label, fmt.Sprintf("%.0f", n[class]), fmt.Sprintf("%.0f", squares[class]), fmt.Sprintf("%.1f", math.Sqrt(squares[class]/columns)))
	}
	t.Add("all", fmt.Sprint(len(list)), fmt.Sprintf("%.0f", total), fmt.Sprintf("%.1f", math.Sqrt(total/columns)))
	p.Table(t)
	walk := func(f *left) float64 { return f.walk }
	few := math.Sqrt(float64(len(list)) / columns)
	p.Text(`The 100th flow of the true list lost %.0f packets and walks %.1f (root of 2 m / pi), the tenth lost %.0f and walks %.1f. Were all identifiers
counters and nothing lost elsewhere, a cell would still deviate by the root of %d / 2000 = %.1f. Expected recall %s; with the
residue of the ends alone %s; and with a counter for every flow and no sketch at all %s, since constant and random
identifiers lead the list by themselves.`,
		r.last, walkOf(r.last), r.at(10), walkOf(r.at(10)), len(list), few,
		figure.Percent(expect(list, "loss", walk, medianOfFive*math.Sqrt(total/columns))),
		figure.Percent(expect(list, "loss", func(f *left) float64 { return walkOf(float64(max(0, f.tally.Lost))) }, medianOfFive*few)),
		figure.Percent(expect(list, "loss", walk, 0)))
}

// walkOf is the expected distance of a walk of m steps.
func walkOf(m float64) float64 { return math.Sqrt(2 * m / math.Pi) }

// The paper's form of retrans at 40 KB: so many elephants in a list, and the relative error of 64 registers of HyperLogLog.
const (
	elephants     = 128
	hyperLogLog   = 0.13
	registerBytes = 2 * 64
)

// distinctVariance explains Algorithm 4.
func distinctVariance(p *eval.Page, list []left) {
	const b = 8 * registerBytes
	p.Text("### Algorithm 4, packets over distinct packets")
	p.Text(`An elephant of n packets of which a share r are sent again has n (1 - r) distinct ones. Kane, Nelson and Woodruff's estimate is a
2-approximation; the bytecode has 64 registers of HyperLogLog for each of %d elephants, which err by 13 %%. The same %d bytes as a
bitmap (linear counting, variance b (e^(d/b) - 1 - d/b) with b = %d bits) are better for small elephants and useless for
large ones. The signal is 1 %% of n.`, elephants, registerBytes, b)
	t := &figure.Table{Columns: []string{"n", "signal", "deviation, 64 registers", "signal / deviation", "deviation, bitmap", "signal / deviation"}}
	for _, n := range []float64{500, 1000, 2000, 5000, 10_000, 50_000} {
		bitmap := bitmapDeviation(n, b)
		t.Add(fmt.Sprintf("%.0f", n), fmt.Sprintf("%.0f", n/100), fmt.Sprintf("%.0f", hyperLogLog*n), fmt.Sprintf("%.2f", 0.01/hyperLogLog),
			atMost(n, bitmap), fmt.Sprintf("%.2f", n/100/bitmap))
	}
	p.Table(t)
	total := sum(list, func(f *left) float64 { return f.sent })
	large := 0
	for i := range list {
		if list[i].sent*elephants >= total {
			large++
		}
	}
	p.Text(`An elephant is a flow with 1/%d of all packets, so that no more than %d can be at a time; %d flows end with as much, and the others in the
list had it early in the minute only.`, elephants, elephants, large)
	p.Text(`The signal is below the deviation at every size, so chance orders the list. Recall with the %d largest flows in it %s at best (entries are found by
a hash, so of two elephants that want one the first has it), and with an exact count for each of them %s: the others suffer
unseen, for they are no elephants.`, elephants,
		figure.Percent(distinctRecall(list, hyperLogLog)), figure.Percent(distinctRecall(list, 0)))
}

// atMost writes a deviation; one above the size itself means that nothing is known.
func atMost(n, deviation float64) string {
	if deviation > n {
		return fmt.Sprintf("above %.0f", n)
	}
	return fmt.Sprintf("%.0f", deviation)
}

// bitmapDeviation of linear counting.
func bitmapDeviation(n, b float64) float64 {
	load := n / b
	return math.Sqrt(b * (math.Exp(load) - 1 - load))
}

// distinctRecall ranks the largest flows by packets less distinct ones, which err by a share of the packets. What seems to have
// less than nothing is not in the list.
func distinctRecall(list []left, relative float64) float64 {
	bySize := slices.Clone(list)
	slices.SortFunc(bySize, func(x, y left) int { return cmp.Compare(y.sent, x.sent) })
	last, rng := rankOf(list, "retrans").last, rand.New(rand.NewPCG(2, 2))
	type estimate struct{ truth, says float64 }
	var all []estimate
	for i := range bySize[:min(elephants, len(bySize))] {
		truth := float64(bySize[i].tally.Again)
		if says := truth + relative*bySize[i].sent*rng.NormFloat64(); says > 0 {
			all = append(all, estimate{truth, says})
		}
	}
	slices.SortFunc(all, func(x, y estimate) int { return cmp.Compare(y.says, x.says) })
	hits := 0
	for _, e := range all[:min(topFlows, len(all))] {
		if e.truth >= last {
			hits++
		}
	}
	return share(hits, topFlows)
}

// countersVariance is about Algorithm 3.
func countersVariance(p *eval.Page, list []left) {
	events := sum(list, func(f *left) float64 { return float64(f.tally.OutOfOrder) })
	p.Text("### Algorithm 3, Misra-Gries counters")
	p.Text(`m counters err by at most sum / (m + 1). There are %.0f events and the 100th flow has %.0f, so %.0f counters that all can be
scanned are enough. A switch and a host touch one counter a packet: what stands in the tables above is the form that does.`,
		events, rankOf(list, "ooo").last, math.Ceil(events/rankOf(list, "ooo").last))
}
