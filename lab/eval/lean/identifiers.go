package lean

import (
	"context"
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/lean/exact"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// lossIDs that TCP traffic has.
var lossIDs = []string{"ipid", "tcp-bytes"}

// identifiers compares what loss is read from, where lost segments stay lost and where they are sent again.
func identifiers(ctx context.Context, p *eval.Page) error {
	warn(p)
	table := &figure.Table{Columns: []string{"lost segments are", "loss.id", "recall of its own truth", "victims in the list, of 100", "true sum, segments"}}
	runs := eval.Pick(p, studySeeds, 1)
	for _, repair := range []bool{false, true} {
		traces := seeds(p, bar, runs)
		results := make([][]seenLoss, runs)
		err := bytecode.Parallel(ctx, runs, func(ctx context.Context, i int) (err error) {
			traces[i].Repair = repair
			results[i], err = lossBy(ctx, traces[i])
			return err
		})
		if err != nil {
			return err
		}
		for n, id := range lossIDs {
			table.Add(append([]string{map[bool]string{false: "never seen again", true: "sent again"}[repair], id}, joined(results, n)...)...)
		}
	}
	p.Text(`IPv4 IDs count packets, so a segment that is sent again has one of its own and the gap of the first stays; they see the flows that have counting
ones (85 of 100 here, none of IPv6). TCP's bytes see all TCP flows. What is sent again gives nothing back: its ID is larger than that
of the packet that made the hole, or it comes later than 3 ms.`)
	p.Table(table)
	return nil
}

// seenLoss is what one identifier shows of a trace.
type seenLoss struct{ recall, victims, lost float64 }

func joined(results [][]seenLoss, n int) []string {
	var recall, victims, lost []float64
	for _, r := range results {
		recall, victims, lost = append(recall, r[n].recall), append(victims, r[n].victims), append(lost, r[n].lost)
	}
	v := spreadOf(victims)
	return []string{spreadOf(recall).String(), fmt.Sprintf("%.0f (%.0f to %.0f)", v.median, v.low, v.high), fmt.Sprintf("%.0f", spreadOf(lost).median)}
}

// segmentPayload of the model, bytes.
const segmentPayload = 1448

func lossBy(ctx context.Context, o traffic.LeanOptions) ([]seenLoss, error) {
	var configs []bytecode.Config
	for _, id := range lossIDs {
		configs = append(configs, bytecode.Config{Algorithm: "lean", Set: map[string]string{"stat": "loss", "loss.id": id, "top": fmt.Sprint(topFlows)}})
	}
	m, err := traffic.NewLean(o)
	if err != nil {
		return nil, err
	}
	lines, err := bytecode.Replay(ctx, traffic.Frames(m), o.Seed, configs)
	if err != nil {
		return nil, err
	}
	var all []seenLoss
	for n, id := range lossIDs {
		t, sum, err := lossTruth(o, id)
		if err != nil {
			return nil, err
		}
		s, err := t.judge(lines[n], "loss")
		if err != nil {
			return nil, err
		}
		all = append(all, seenLoss{s.recall, float64(victimsIn(lines[n], m)), sum})
	}
	return all, nil
}

// lossTruth is the exact count by one identifier, and its sum in segments.
func lossTruth(o traffic.LeanOptions, id string) (*truth, float64, error) {
	m, err := traffic.NewLean(o)
	if err != nil {
		return nil, 0, err
	}
	exact := exact.NewTruth(exact.TruthOptions{Key: fiveTuple, ID: id})
	for p := (packet.Packet{}); m.Next(&p); {
		exact.Packet(&p)
	}
	tallies, seen := exact.Window()
	sum := float64(seen.Lost)
	if id == "tcp-bytes" {
		sum /= segmentPayload
	}
	return &truth{of: map[string]*ranking{"loss": rank(tallies, "loss")}}, sum, nil
}

// victimsIn counts the victims of loss in a list.
func victimsIn(l report.Line, m *traffic.Lean) (n int) {
	victims := map[string]bool{}
	for _, rank := range m.Victims(traffic.LeanLoss) {
		p := m.Flow(rank)
		p.Valid = packet.IP | packet.Ports
		if key, ok := fiveTuple.Of(&p); ok {
			victims[nameOf(key)] = true
		}
	}
	i := slices.IndexFunc(l.Report.Tables, func(t report.Table) bool { return t.Name == "loss" })
	for _, row := range l.Report.Tables[i].Rows {
		if victims[name(row[:len(fiveTuple.Columns())])] {
			n++
		}
	}
	return n
}
