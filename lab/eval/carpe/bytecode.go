package carpe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	live "github.com/xdpmon/xdpmon/tests/carpe"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// lasts is how long a window is; talks how often hosts and coordinator exchange messages in it, as agents do.
const (
	lasts = 2 * time.Second
	talks = 20
)

// pass is what the data planes and the coordinator reported of one window.
type pass struct {
	flows    []believe
	bytes    float64
	state    float64 // entries of all switches, the most of the window, as a share of counting all
	collided float64 // of sampled packets, a share
}

// bytecode runs packets of the model through a data plane a switch and the coordinator's part, at parameters that accuracy finds best.
func packetByPacket(ctx context.Context, p *eval.Page) error {
	n := usual
	if p.Quick {
		n.flows, n.packets = n.flows/20, n.packets/20
	}
	all := make([]*window, eval.Pick(p, 4, 1))
	for i := range all {
		all[i] = n.window(uint64(i) + 1)
	}
	t := &figure.Table{Columns: []string{"threshold", "epsilon", "F1, model", "F1, first", "F1", "kB, model", "kB, first", "kB", "state, model", "state, first", "state", "collided"}}
	worst, most := 0., 0.
	for _, percentile := range percentiles {
		for _, epsilon := range []float64{.1026, .0351, .0090} {
			want, err := n.judge(ctx, all, method{name: "carpe", epsilon: epsilon, start: 8, locality: true}, percentile)
			if err != nil {
				return err
			}
			first, then, err := n.through(ctx, all, want.method, percentile)
			if err != nil {
				return err
			}
			p.Log("%s percentile, epsilon %.4f: F1 %.3f and %.3f, model %.3f", percentileName(percentile), epsilon, first.f1, then.f1, want.f1)
			worst, most = max(worst, want.f1-then.f1), max(most, first.state, then.state)
			t.Add(percentileName(percentile), fmt.Sprintf("%.4f", epsilon), fmt.Sprintf("%.3f", want.f1), fmt.Sprintf("%.3f", first.f1), fmt.Sprintf("%.3f", then.f1),
				fmt.Sprintf("%.1f", want.bytes/1e3), fmt.Sprintf("%.1f", first.bytes/1e3), fmt.Sprintf("%.1f", then.bytes/1e3),
				figure.Percent(want.state), figure.Percent(first.state), figure.Percent(then.state), figure.Percent(then.collided))
		}
	}
	p.Text(`Every packet of %d windows goes through the data plane of its switch; every message between hosts and coordinator is made, counted with its frames, and read, %d times a window. Beside
it the model of flows for the same windows. In the *first* window of a network nobody knows a group yet: bundles are those of as many observers as s lets there be, and hellos and updates are sent.
Behind it comes as much again of other flows in the same groups: entries of the first window that were not idle for a quarter of a window yet are still there, and no flow uses them, which is the worst case
for *state*: the most entries that were held. 65,536 entries a switch in 2 ways; *collided*: sampled packets that found no place.`, len(all), talks)
	p.Table(t)
	p.Bar("through the bytecode: F1 below that of the model", "0.03 at most", fmt.Sprintf("%.3f at most", worst), worst <= .03)
	p.Bar("through the bytecode: state below counting all, one window behind another", "45 % or more", figure.Percent(1-most), most <= mostState)
	return nil
}

// through runs each window twice through a network of its own.
func (n network) through(ctx context.Context, all []*window, m method, percentile float64) (first, then outcomes, err error) {
	list := make([][2]pass, len(all))
	err = bytecode.Parallel(ctx, len(all), func(ctx context.Context, i int) (err error) {
		list[i], err = all[i].through(ctx, m, percentile, uint64(i)+1)
		return err
	})
	for _, one := range list {
		first.add(one[0], len(all))
		then.add(one[1], len(all))
	}
	first.best(first.flows)
	then.best(then.flows)
	return first, then, err
}

// outcomes are passes of several windows.
type outcomes struct {
	score
	flows    []believe
	collided float64
}

func (o *outcomes) add(p pass, of int) {
	o.flows = append(o.flows, p.flows...)
	o.bytes += p.bytes / float64(of)
	o.state += p.state / float64(of)
	o.collided += p.collided / float64(of)
}

// through is two windows of the same packets.
func (w *window) through(ctx context.Context, m method, percentile float64, seed uint64) (list [2]pass, err error) {
	threshold := w.threshold(percentile)
	net, err := live.New(w.switches, map[string]string{"threshold": strconv.Itoa(int(threshold)), "epsilon": strconv.FormatFloat(m.epsilon, 'g', -1, 64),
		"s": fmt.Sprintf("1/%d", m.start), "family": "4", "group": "src/16", "entries": "65536", "top": "1000", "declare": strconv.FormatFloat(leastCut, 'g', -1, 64)}, lasts, seed)
	if err != nil {
		return list, err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	const epoch = 1000
	if err := net.Begin(epoch); err != nil {
		return list, err
	}
	order := w.order(rand.New(rand.NewPCG(seed, 0xb7)))
	for i := range list {
		frames, err := w.frames(uint16(i))
		if err != nil {
			return list, err
		}
		net.Up, net.Down = 0, 0
		if err := w.give(ctx, net, frames, order, (epoch+int64(i))*int64(lasts)); err != nil {
			return list, err
		}
		r, hosts, err := net.End()
		if err != nil {
			return list, err
		}
		if list[i], err = w.judge(r, hosts, float64(threshold)); err != nil {
			return list, err
		}
		list[i].bytes = float64(net.Up+net.Down) * framing
	}
	return list, nil
}

// give the packets of a window, evenly over its length.
func (w *window) give(ctx context.Context, net *live.Network, frames []packet.Frame, order []int32, start int64) error {
	for i, index := range order {
		p := w.parts[index]
		f := frames[p.flow]
		f.Time = start + int64(lasts)*int64(i)/int64(len(order))
		if err := net.Give(int(p.at), &f); err != nil {
			return err
		}
		if i%(len(order)/talks) == 0 {
			if err := errors.Join(ctx.Err(), net.Talk(f.Time)); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge what was answered.
func (w *window) judge(r algo.Result, hosts []*snapshot.Snapshot, threshold float64) (p pass, err error) {
	found := map[int]bool{}
	for _, row := range r.Body.Tables[0].Rows {
		flow := flowOf(row)
		found[flow] = true
		p.flows = append(p.flows, believe{row[estimateAt].(float64) / threshold, float64(w.size[flow]) > threshold})
	}
	for flow, size := range w.size {
		if float64(size) > threshold && !found[flow] {
			p.flows = append(p.flows, believe{0, true})
		}
	}
	begun, collided := uint64(0), uint64(0)
	for _, s := range hosts {
		one, err := algo.Report(s)
		if err != nil {
			return p, err
		}
		p.state += snapshottest.Value(one.Body, "held_most") / float64(len(w.parts))
		begun += s.Words["counters"][bpf.CarpeCarpeCounterCARPE_BEGUN]
		collided += s.Words["counters"][bpf.CarpeCarpeCounterCARPE_COLLIDED]
	}
	p.collided = float64(collided) / float64(begun+collided)
	return p, nil
}

// estimateAt is where the estimate stands in a row, after the flow's five numbers.
const estimateAt = 5

// flowOf a row, as frames has made it.
func flowOf(row []any) int {
	src := netip.MustParseAddr(row[0].(string)).As4()
	return int(row[1].(int64))<<16 | int(src[2])<<8 | int(src[3])
}

// frames of the flows, to a port: a source in the prefix of its group.
func (w *window) frames(port uint16) ([]packet.Frame, error) {
	var packer builder.Packer
	list := make([]packet.Frame, len(w.size))
	for flow := range list {
		p := packet.Packet{Time: 1, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: uint16(flow >> 16), DstPort: port, Segs: 1, Payload: 100, Len: 142,
			Src: netip.AddrFrom4([4]byte{10 + byte(w.group[flow]>>8), byte(w.group[flow]), byte(flow >> 8), byte(flow)}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
		if err := packer.Frame(&p, &list[flow]); err != nil {
			return nil, err
		}
		list[flow].Data = slices.Clone(list[flow].Data)
	}
	return list, nil
}

// order of a window's packets: indices of parts, mixed.
func (w *window) order(rng *rand.Rand) (list []int32) {
	for i, p := range w.parts {
		for range p.packets {
			list = append(list, int32(i))
		}
	}
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
