package precision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/lab/eval/precision/references"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Windows of captures with fewer packets are left out: any prefix of theirs is heavy.
const fewestInWindow, windowOfBits = 200, 10 * time.Second

var (
	steps = []struct {
		name string
		bits int
	}{{"bit", 1}, {"nibble", 4}, {"byte", 8}}
	// memories of a bank of one CPU, in bytes, without the 256 counters of 8 bits.
	memories = []int{6 << 10, 24 << 10, 96 << 10}
)

// finder is a method; bytes are those of an entry.
type finder struct {
	name  string
	bytes int
	least int               // bits of a level
	set   map[string]string // of hhh
	plain func(entries, step int, seed uint64) (add func(netip.Addr), counts func() map[heavy.Prefix]float64)
}

func finders() []finder {
	whole := func(ways int) func(int, int, uint64) (func(netip.Addr), func() map[heavy.Prefix]float64) {
		return func(entries, step int, seed uint64) (func(netip.Addr), func() map[heavy.Prefix]float64) {
			w := references.NewWhole(entries, ways, seed)
			return w.Add, func() map[heavy.Prefix]float64 { return w.Counts(step) }
		}
	}
	return []finder{
		{"whole", 24, 1, map[string]string{"method": "whole"}, nil},
		{"random-prefix", 24, 1, map[string]string{"method": "random-prefix"}, nil},
		{"random-prefix, all levels drawn", 24, 1, map[string]string{"method": "random-prefix", "exact8": "off"}, nil},
		{"stacking", 16, 4, map[string]string{"method": "stacking"}, nil},
		{"MST (Go)", 16, 1, nil, func(entries, step int, _ uint64) (func(netip.Addr), func() map[heavy.Prefix]float64) {
			m := references.NewMSTBy(step, entries)
			return m.Add, m.Counts
		}},
		{"CocoSketch, one pass (Go)", 24, 1, nil, whole(1)},
		{"CocoSketch, four ways (Go)", 24, 1, nil, whole(4)},
	}
}

// hits are heavy prefixes of the exact set, those that were found, and all that were reported; and packets that passed twice.
type hits struct{ heavy, found, listed, passes, packets float64 }

func (h *hits) add(o hits) {
	h.heavy, h.found, h.listed = h.heavy+o.heavy, h.found+o.found, h.listed+o.listed
	h.passes, h.packets = h.passes+o.passes, h.packets+o.packets
}

func (h hits) String() string {
	text := fmt.Sprintf("%.3f, %.3f", h.found/h.heavy, h.found/max(h.listed, 1))
	if h.passes > 0 {
		text += fmt.Sprintf("; %.1f %%", 100*h.passes/h.packets)
	}
	return text
}

// hitsOf compares a report with the exact set, which is first in the truth's table.
func hitsOf(l report.Line) (h hits) {
	exact := map[any]bool{}
	for _, row := range l.Truth.Tables[0].Rows[:int(precision.Value(report.Line{Report: *l.Truth}, "heavy"))] {
		exact[row[0]] = true
	}
	for _, row := range l.Report.Tables[0].Rows {
		if exact[row[0]] {
			h.found++
		}
	}
	h.heavy, h.listed = float64(len(exact)), float64(len(l.Report.Tables[0].Rows))
	h.passes, h.packets = precision.Value(l, "recirculated"), float64(l.Packets.Used)
	return h
}

// hitsOfCounts compares estimates with the exact counts of as many packets.
func hitsOfCounts(found, exact map[heavy.Prefix]float64, packets float64) (h hits) {
	names := map[heavy.Prefix]bool{}
	for _, e := range heavy.Hierarchical(exact, packets/100) {
		names[e.Prefix] = true
	}
	listed := heavy.Hierarchical(found, packets/100)
	for _, e := range listed {
		if names[e.Prefix] {
			h.found++
		}
	}
	h.heavy, h.listed, h.packets = float64(len(names)), float64(len(listed)), packets
	return h
}

// bitsSource is traffic of IPv4 addresses.
type bitsSource struct {
	name, what string
	memories   []int
	brief      bool // by bit alone
	open       func(seed uint64) (capture.Source, error)
}

func bitsSources() []bitsSource {
	dir := captureFolder()
	var list []bitsSource
	for i, name := range []string{"composite_120s", "laptop_wan_300s", "web_reordered", "speedtest_server"} {
		sizes := memories
		if i > 0 {
			sizes = memories[:1]
		}
		list = append(list, bitsSource{name, "windows of 10 s with 200 packets or more", sizes, i > 0, coverage.Captured(filepath.Join(dir, name+".pcap"), 0, math.MaxInt32)})
	}
	m := model{"50,000 sources", "1/(rank + 5)^0.9, 100,000 packets", precision.Sizes{Flows: 50000, Packets: 100000, Offset: 5, Skew: .9, Drawn: true, Scattered: true}}
	return append(list, bitsSource{m.name, m.what, memories[1:], false, func(seed uint64) (capture.Source, error) {
		return traffic.Frames(m.seeded(seed).New().Model()), nil
	}})
}

// ofBytecode replays through the programs.
func (s bitsSource) ofBytecode(ctx context.Context, f finder, level string, memory, seeds int) (sum hits, err error) {
	set := maps.Clone(f.set)
	maps.Copy(set, map[string]string{"level": level, "family": "4", "entries": strconv.Itoa(memory / f.bytes), "top": "1000"})
	r, err := bytecode.NewRepeated(ctx, session.Config{Truth: true, Window: windowOfBits}, []bytecode.Config{{Algorithm: "hhh", Set: set}})
	if err != nil {
		return sum, err
	}
	defer r.Close()
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		source, err := s.open(seed)
		if err != nil {
			return sum, err
		}
		lines, err := r.Replay(ctx, seed, source)
		if err := errors.Join(err, source.Close()); err != nil {
			return sum, err
		}
		for _, l := range lines {
			if l.Packets.Used >= fewestInWindow {
				sum.add(hitsOf(l))
			}
		}
	}
	return sum, nil
}

// windows are the sources of a replay's packets.
func (s bitsSource) windows(seed uint64) (list [][]netip.Addr, err error) {
	source, err := s.open(seed)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	var f packet.Frame
	var one []netip.Addr
	for end := int64(0); ; {
		if err = source.Next(&f); end == 0 {
			end = f.Time + int64(windowOfBits)
		}
		for ; err != nil && one != nil || err == nil && f.Time >= end; end += int64(windowOfBits) {
			if len(one) >= fewestInWindow {
				list = append(list, one)
			}
			one = nil
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("read packets: %w", err)
		}
		var p packet.Packet
		if packet.Decode(&f, packet.DecodeOptions{}, &p); p.Has(packet.IP) && p.Src.Is4() {
			one = append(one, slices.Repeat([]netip.Addr{p.Src}, int(p.Segs))...)
		}
	}
}

// ofGo runs a plain reference, with 8 bits counted exactly as the programs do.
func (s bitsSource) ofGo(f finder, step, memory, seeds int) (sum hits, err error) {
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		list, err := s.windows(seed)
		if err != nil {
			return sum, err
		}
		for _, one := range list {
			add, counts := f.plain(memory/f.bytes, step, seed)
			exact := map[heavy.Prefix]float64{}
			of := map[netip.Addr]float64{}
			for _, src := range one {
				add(src)
				of[src]++
			}
			for src, n := range of {
				for bits := 0; bits <= 32; bits += step {
					exact[heavy.Prefix{Src: netip.PrefixFrom(src, bits).Masked()}] += n
				}
			}
			found := counts()
			for p, n := range exact {
				if p.Bits() <= 8 {
					found[p] = n
				}
			}
			sum.add(hitsOfCounts(found, exact, float64(len(one))))
		}
	}
	return sum, nil
}

// bits is one table a source: what each method finds of the exact set of its level, by memory.
func bits(ctx context.Context, p *eval.Page) error {
	seeds := eval.Pick(p, 3, 1)
	p.Text("IPv4 sources above 1 %% of a window, hhh.initial=auto: share of the exact set that is reported, share of what is reported that is in the exact set; share of packets that "+
		"passed twice. Memory is that of a bank, without the 256 counters that all have for 8 bits but *all levels drawn*: an entry of hhh has 24 bytes, of a stack 16. %d seeds. MST (a Space-Saving a level) and CocoSketch are plain Go; "+
		"stacking by bit would be 24 instances of four arrays, 96 where 20 stages hold 80.", seeds)
	type cell struct {
		source bitsSource
		f      finder
		step   int // in steps
		memory int
	}
	var cells []cell
	for _, s := range bitsSources() {
		for _, f := range finders() {
			for i, step := range steps {
				for _, memory := range s.memories {
					if step.bits >= f.least && (step.bits == 1 || !s.brief) {
						cells = append(cells, cell{s, f, i, memory})
					}
				}
			}
		}
	}
	results := make([]hits, len(cells))
	err := bytecode.Parallel(ctx, len(cells), func(ctx context.Context, i int) (err error) {
		c := cells[i]
		if c.f.plain != nil {
			results[i], err = c.source.ofGo(c.f, steps[c.step].bits, c.memory, seeds)
		} else {
			results[i], err = c.source.ofBytecode(ctx, c.f, steps[c.step].name, c.memory, seeds)
		}
		if err != nil {
			return fmt.Errorf("%s, %s by %s: %w", c.source.name, c.f.name, steps[c.step].name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	found := map[string]hits{}
	for at := 0; at < len(cells); {
		s := cells[at].source
		t := &figure.Table{Columns: []string{"method, level"}}
		for _, memory := range s.memories {
			t.Columns = append(t.Columns, fmt.Sprintf("%d kB", memory>>10))
		}
		for ; at < len(cells) && cells[at].source.name == s.name; at += len(s.memories) {
			c := cells[at]
			row := []string{c.f.name + ", " + steps[c.step].name}
			for i, memory := range s.memories {
				row = append(row, results[at+i].String())
				found[fmt.Sprint(s.name, c.f.name, steps[c.step].name, memory)] = results[at+i]
			}
			t.Add(row...)
		}
		p.Text("*%s*: %s.", s.name, s.what)
		p.Table(t)
	}
	return bitsBars(ctx, p, found)
}

// bitsBars judges the method that is the default by bit.
func bitsBars(ctx context.Context, p *eval.Page, found map[string]hits) error {
	for _, memory := range memories {
		w, r := found[fmt.Sprint("composite_120s", "whole", "bit", memory)], found[fmt.Sprint("composite_120s", "random-prefix", "bit", memory)]
		n := found[fmt.Sprint("composite_120s", "stacking", "nibble", memory)]
		p.Bar(fmt.Sprintf("composite_120s by bit, %d kB: whole keys find", memory>>10), "more than drawn levels",
			fmt.Sprintf("%.3f of the exact set against %.3f (stacking by nibble: %.3f of its own)", w.found/w.heavy, r.found/r.heavy, n.found/n.heavy), w.found/w.heavy > r.found/r.heavy)
	}
	n := eval.Pick(p, 50, 3)
	s, err := coverage.Run(ctx, wholeCells(), 2001, n, "")
	if err != nil {
		return err
	}
	all := s.Pooled()
	p.Text("Intervals of whole keys and of levels drawn by bit, %d seeds a cell that nobody looked at while they were built: *cell, configuration, column*, intervals, share that holds the truth, median width over the empirical one, and what is left out.", n)
	p.Table(s.Table())
	p.Bar("intervals of whole keys and of levels drawn by bit that hold the truth", "93 to 98 %", figure.Percent(all.Share()), all.Share() >= .93 && all.Share() <= .98)
	p.Bar("the worst cell of 100 intervals or more", "87 % or more", figure.Percent(s.Worst()), s.Worst() >= .87)
	return nil
}

// wholeCells are models, bursts and parts of captures, each with few entries for its addresses and with many.
func wholeCells() (list []coverage.Cell) {
	with := func(name string, set map[string]string) coverage.Config {
		return coverage.Config{Name: name, Config: bytecode.Config{Algorithm: "hhh", Set: set}}
	}
	for _, c := range append(modelCells(), captured(captureFolder())[:2]...) {
		for _, one := range []coverage.Config{
			with("whole, bits, 1,024 entries", map[string]string{"level": "bit", "entries": "1024"}),
			with("whole, bytes of 128 entries", map[string]string{"method": "whole", "entries": "128", "count": "bytes"}),
			with("whole, pairs", map[string]string{"method": "whole", "dimension": "both", "entries": "512", "threshold": "1/50"}),
			with("drawn bits", map[string]string{"level": "bit", "method": "random-prefix", "threshold": "1/20"}),
		} {
			c.Configs = []coverage.Config{one}
			list = append(list, c)
		}
	}
	return list
}
