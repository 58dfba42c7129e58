// Package beaucoup tests BeauCoup through its bytecode: alerts against the exact count, in modelled and in real traffic.
package beaucoup

import (
	"context"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func selected(tb testing.TB, set map[string]string) session.Selected {
	tb.Helper()
	testutil.NeedRoot(tb)
	d, err := algo.Lookup(beaucoup.Name)
	if err != nil {
		tb.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		tb.Fatal(err)
	}
	return session.Selected{Descriptor: d, Values: values}
}

// replay runs beaucoup over frames and returns its lines, one a window.
func replayed(tb testing.TB, src capture.Source, cfg session.Config, set map[string]string) (lines []report.Line) {
	tb.Helper()
	cfg.Algorithms = []session.Selected{selected(tb, set)}
	cfg.Truth = true
	cfg.Emit = func(l report.Line) error { lines = append(lines, l); return nil }
	if err := session.ReplaySource(context.Background(), cfg, "model", src, nil); err != nil {
		tb.Fatal(err)
	}
	return lines
}

// number reads a value of a body.
func number(tb testing.TB, b *report.Body, name string) float64 {
	tb.Helper()
	for _, v := range b.Values {
		if f, ok := report.Number(v.Value); ok && v.Name == name {
			return f
		}
	}
	tb.Fatalf("the report has no number %s", name)
	return 0
}

// column reads a number of a row of a table, by the row's query.
func column(tb testing.TB, b *report.Body, table, query, name string) float64 {
	tb.Helper()
	for _, t := range b.Tables {
		if t.Name != table {
			continue
		}
		for c, col := range t.Columns {
			for _, row := range t.Rows {
				if f, ok := report.Number(row[c]); ok && col.Name == name && row[0] == query {
					return f
				}
			}
		}
	}
	tb.Fatalf("table %s has no %s of %s", table, name, query)
	return 0
}

// scans is a packet from each of keys sources in turn, each to new destinations and ports.
type scans struct {
	keys, each, sent int
	gap              int64
}

// Next implements traffic.Model.
func (s *scans) Next(p *packet.Packet) bool {
	if s.sent == s.keys*s.each {
		return false
	}
	key, n := s.sent%s.keys, s.sent/s.keys
	*p = packet.Packet{Time: traffic.Start + int64(s.sent)*s.gap, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6,
		Segs: 1, TCPFlags: packet.SYN, Seq: uint32(s.sent), Len: 54, SrcPort: uint16(20000 + n%30000), DstPort: uint16(n % 60000)}
	p.Src = netip.AddrFrom4([4]byte{10, byte(key >> 16), byte(key >> 8), byte(key)})
	id := uint32(key*s.each+n) + 11<<24
	p.Dst = netip.AddrFrom4([4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)})
	s.sent++
	return true
}

func openTrace(t *testing.T, name string) capture.Source {
	t.Helper()
	src, err := capture.OpenAll([]string{testutil.Trace(t, name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := capture.Concat(src...)
	t.Cleanup(func() { all.Close() })
	return all
}
