package beaucoup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// ordinaryTraffic is the capture that stands for it: 742 captures of test suites on top of each other.
const ordinaryTraffic = "composite_120s.pcap"

// openCapture opens it; as in tests, XDPMON_TRACES is its folder.
func openCapture() (capture.Source, error) {
	dir := os.Getenv("XDPMON_TRACES")
	if dir == "" {
		dir = filepath.Join("..", "shared", "traces")
	}
	list, err := capture.OpenAll([]string{filepath.Join(dir, ordinaryTraffic)}, nil)
	if err != nil {
		return nil, fmt.Errorf("open capture (set XDPMON_TRACES to the folder that has it): %w", err)
	}
	return list[0], nil
}

// packetsOf decodes the TCP packets of a capture, and keeps their addresses and ports.
func packetsOf(src capture.Source) (list []packet.Packet, err error) {
	defer src.Close()
	var d packet.Decoder
	for {
		var f packet.Frame
		if err := src.Next(&f); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		var p packet.Packet
		d.Decode(&f, packet.DecodeOptions{}, &p)
		if p.Has(packet.IP | packet.Ports | packet.TCP) {
			q := blank(0)
			q.Src, q.Dst, q.SrcPort, q.DstPort = p.Src, p.Dst, p.SrcPort, p.DstPort
			if p.Src.Is6() {
				q.Valid, q.Len = q.Valid&^packet.IPID, q.Len+20
			}
			list = append(list, q)
		}
	}
}

var windowOf = regexp.MustCompile(`in \S+`)

// memory is figure 4.11.
func memory(ctx context.Context, p *eval.Page) error {
	limits, windows := []float64{.1, .4}, []time.Duration{250, 500, 1000, 2000, 4000, 8000}
	p.Text("Collectors whose window is not over, of the 26 shipped queries with other windows, on a model: 200,000 flows with sizes proportional to " +
		"1/(rank + 10), 20,000 packets a second in trains. Means at the ends of the seconds from 20 on; the table has 65,536 places. The paper finds a " +
		"power of the window with an exponent of 0.80 on its trace.")
	var configs []bytecode.Config
	for _, limit := range limits {
		for _, w := range windows {
			text := windowOf.ReplaceAllString(compile.Ready("many"), fmt.Sprintf("in %v", w*time.Millisecond))
			configs = append(configs, bytecode.Config{Algorithm: beaucoup.Name, Set: map[string]string{"queries": oneLine(text), "budget": fmt.Sprint(limit / accessesOfCoupon)}})
		}
	}
	alive, err := aliveOf(ctx, configs, eval.Pick(p, 40, 24))
	if err != nil {
		return err
	}
	panel := figure.Panel{Title: "collectors", X: figure.Axis{Label: "window, s", Base: 2}, Y: figure.Axis{Label: "collectors", Base: 2, Every: 2}, Legend: figure.TopLeft}
	t := &figure.Table{Columns: []string{"window"}}
	for i, limit := range limits {
		s := figure.Series{Name: fmt.Sprintf("%g accesses a packet", limit)}
		for n, w := range windows {
			s.Points = append(s.Points, figure.Point{X: float64(w) / 1000, Y: alive[i*len(windows)+n]})
		}
		panel.Series = append(panel.Series, s)
		t.Columns = append(t.Columns, s.Name)
	}
	for n, w := range windows {
		t.Add((w * time.Millisecond).String(), fmt.Sprintf("%.0f", alive[n]), fmt.Sprintf("%.0f", alive[len(windows)+n]))
	}
	t.Add("exponent", fmt.Sprintf("%.2f", exponent(panel.Series[0].Points)), fmt.Sprintf("%.2f", exponent(panel.Series[1].Points)))
	p.Table(t)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{panel}}, "memory", "collectors against the window")
}

// exponent is the slope of the line through the points' logarithms.
func exponent(points []figure.Point) float64 {
	var n, x, y, xx, xy float64
	for _, p := range points {
		a, b := math.Log(p.X), math.Log(p.Y)
		n, x, y, xx, xy = n+1, x+a, y+b, xx+a*a, xy+a*b
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// aliveOf is the mean number of collectors that live, by configuration.
func aliveOf(ctx context.Context, configs []bytecode.Config, seconds int) ([]float64, error) {
	const rate = 20_000
	m, err := traffic.NewZipf(traffic.ZipfOptions{Packets: rate * seconds, Flows: 200_000, Skew: 1, Offset: 10, Rate: rate, Train: 5, Seed: 3})
	if err != nil {
		return nil, err
	}
	lines, err := bytecode.ReplayWith(ctx, traffic.Frames(m), session.Config{Seed: 1, Window: time.Second}, configs)
	if err != nil {
		return nil, err
	}
	mean, n := make([]float64, len(configs)), 0.0
	for i, l := range lines {
		if l.Window.Number >= 20 {
			mean[i%len(configs)] += value(&l.Report, "collectors_alive")
			n += 1 / float64(len(configs))
		}
	}
	for i := range mean {
		mean[i] /= n
	}
	return mean, nil
}

// verified is what the oracle has of one query's alerts.
type verified struct {
	keys, alerts, unconfirmed, abs, signed float64
}

// ordinary compares all alerts that ordinary traffic raises with the exact count.
func ordinary(ctx context.Context, p *eval.Page) error {
	seeds := eval.Pick(p, 6, 2)
	p.Text("%s through the shipped sets, %d seeds each, with reports every 30 s and with one report at the end. An alert is *confirmed* when the exact "+
		"number of distinct attributes, by the oracle of `--truth`, is what 9,999 of 10,000 alerts of such a collector have at least (exact distribution, no coupon lost to ties). "+
		"*Keys* are those above the threshold, in all runs together.", ordinaryTraffic, seeds)
	for _, set := range []string{"six", "many"} {
		all, names, err := verify(ctx, set, seeds)
		if err != nil {
			return err
		}
		t := &figure.Table{Columns: []string{"set " + set + ": query", "keys", "alerts", "error", "bias", "not confirmed"}}
		var total verified
		for _, name := range names {
			v := all[name]
			total.keys, total.alerts, total.unconfirmed = total.keys+v.keys, total.alerts+v.alerts, total.unconfirmed+v.unconfirmed
			if v.keys+v.alerts > 0 {
				t.Add(name, fmt.Sprint(v.keys), fmt.Sprint(v.alerts), figure.Percent(v.abs/v.alerts), figure.Percent(v.signed/v.alerts), fmt.Sprint(v.unconfirmed))
			}
		}
		p.Table(t)
		p.Bar(fmt.Sprintf("alerts of ordinary traffic, set %s, %d runs", set, 2*seeds), "all confirmed", fmt.Sprintf("%g of %g", total.alerts-total.unconfirmed, total.alerts),
			total.unconfirmed == 0 && total.alerts > 0)
	}
	return nil
}

// verify sums up a set's alerts by query, with the queries' names in order.
func verify(ctx context.Context, set string, seeds int) (all map[string]*verified, names []string, err error) {
	all = map[string]*verified{}
	var mu sync.Mutex
	err = bytecode.Parallel(ctx, 2*seeds, func(ctx context.Context, n int) error {
		src, err := openCapture()
		if err != nil {
			return err
		}
		defer src.Close()
		cfg := session.Config{Seed: seed(n / 2), Truth: true, Window: time.Duration(n%2) * 30 * time.Second}
		lines, err := bytecode.ReplayWith(ctx, src, cfg, []bytecode.Config{{Algorithm: beaucoup.Name, Set: map[string]string{"set": set}}})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, l := range lines {
			t, err := table(l.Truth, "queries")
			if err != nil {
				return err
			}
			names = names[:0]
			for _, row := range t.Rows {
				name := row[0].(string)
				names = append(names, name)
				if all[name] == nil {
					all[name] = &verified{}
				}
				all[name].add(l.Truth, name)
			}
		}
		return nil
	})
	return all, names, err
}

func (v *verified) add(b *report.Body, query string) {
	of := func(column string) float64 { return number(b, "queries", query, column) }
	alerts := of("alerts_judged")
	v.keys += of("keys")
	v.alerts += alerts
	v.unconfirmed += of("unconfirmed")
	if alerts > 0 {
		v.abs += alerts * of("mean_relative_error")
		v.signed += alerts * of("bias")
	}
}
