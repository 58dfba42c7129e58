package reorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// files are the captures with more than one connection.
var files = []string{"composite_120s.pcap", "laptop_wan_300s.pcap", "web_reordered.pcap"}

// folder of the captures; the repository does not hold them.
func folder() string {
	if dir := os.Getenv("XDPMON_TRACES"); dir != "" {
		return dir
	}
	return "../shared/traces"
}

// record keeps what a capture shows of reordering. IPv6 packets above 64 KiB are left out, which the packer cannot make.
func record(name string) (*trace, error) {
	src, err := capture.OpenAll([]string{filepath.Join(folder(), name)}, nil)
	if err != nil {
		return nil, err
	}
	all := capture.Concat(src...)
	defer all.Close()
	r := newRecorder()
	var frame packet.Frame
	var p packet.Packet
	for {
		if err := all.Next(&frame); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		packet.Decode(&frame, packet.DecodeOptions{}, &p)
		if err := r.add(&p); err != nil {
			return nil, err
		}
	}
	if len(r.trace.segments) == 0 {
		return nil, fmt.Errorf("read %s: %w", name, errEmpty)
	}
	return r.trace, nil
}

// captures are small: few prefixes have beta packets, and hardly any has two flows. They show that the program runs on real
// traffic and how much it misses there; the model shows the rest.
func captures(ctx context.Context, p *eval.Page) error {
	about := &figure.Table{Columns: []string{"capture", "packets", "flows", "prefixes", "correlation, definition 1", "definition 2"}}
	table := &figure.Table{Columns: []string{"capture", "definition", "configuration", "prefixes in trouble", "found", "false positives", "reports a packet"}}
	for _, name := range files {
		t, err := record(name)
		if errors.Is(err, os.ErrNotExist) {
			p.Text("%s is not there: set XDPMON_TRACES.", name)
			continue
		}
		if err != nil {
			return err
		}
		first, _ := t.truth.correlation(1, 100)
		second, _ := t.truth.correlation(2, 100)
		about.Add(name, fmt.Sprint(len(t.segments)), fmt.Sprint(len(t.flows)), fmt.Sprint(len(t.truth.prefixes)),
			fmt.Sprintf("%.2f", first), fmt.Sprintf("%.2f", second))
		if err := t.configurations(ctx, p, name, table); err != nil {
			return err
		}
	}
	p.Text("Captures of a laptop, of browsing over a bad path, and of 742 small captures that begin together (so that few prefixes have " +
		"many flows). *Found* and *false positives* are means over five hash seeds.")
	p.Table(about)
	p.Table(table)
	return nil
}

func (t *trace) configurations(ctx context.Context, p *eval.Page, name string, table *figure.Table) error {
	for d := 1; d <= 2; d++ {
		for _, s := range []setting{
			{name: "sampling, 32 buckets", definition: d, set: map[string]string{"buckets": "32"}},
			{name: "sampling, 1024 buckets", definition: d, set: map[string]string{"buckets": "1024"}},
			{name: "sampling, 1024 buckets, report all", definition: d, set: map[string]string{"buckets": "1024", "report": "all"}},
			{name: "hybrid, 1024 buckets, x = 0.2", definition: d, set: map[string]string{"buckets": "1024", "method": "hybrid", "x": "0.2"}},
		} {
			var list []score
			for seed := range seeds(p) {
				lines, err := t.replay(ctx, uint64(seed)+1, []setting{s})
				if err != nil {
					return fmt.Errorf("replay %s: %w", name, err)
				}
				list = append(list, s.scores(t.truth, lines[0])...)
			}
			sum, heavy := summarize(list), len(t.truth.heavy(d, beta))
			table.Add(name, fmt.Sprint(d), s.name, fmt.Sprint(heavy), prefixes(sum.accuracy, heavy),
				prefixes(sum.wrong, len(t.truth.heavy(d, alpha+1))), sum.sent.String())
		}
	}
	return nil
}

// prefixes that a share of n are; a share of none is not defined.
func prefixes(share spread, n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", share.mean*float64(n))
}
