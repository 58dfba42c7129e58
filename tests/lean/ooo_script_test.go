package lean

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/lean"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// segment is one packet of a flow; seq is relative to the flow's first number.
type segment struct {
	us      int64 // microseconds since the start of the flow
	seq     uint32
	payload uint32
	flags   uint8
	id      uint16 // IPv4 identification; IPv6 has none
}

// data is a full segment.
func data(us int64, seq uint32, id uint16) segment { return segment{us, seq, 1000, packet.ACK, id} }

// flowOf makes the packets of a flow.
func flowOf(src netip.Addr, port uint16, initial uint32, segments []segment) (list []packet.Packet) {
	dst := netip.AddrFrom4([4]byte{198, 18, 0, 1})
	if src.Is6() {
		dst = netip.MustParseAddr("2001:db8::1")
	}
	for _, s := range segments {
		p := packet.Packet{Time: 1e12 + s.us*1000, Src: src, Dst: dst, SrcPort: 443, DstPort: port, Proto: 6, Segs: 1,
			Valid: packet.IP | packet.Ports | packet.TCP, TCPFlags: s.flags, Seq: initial + s.seq, Ack: 1, Payload: s.payload}
		p.Len = 14 + 40 + s.payload
		if src.Is6() {
			p.Len += 20
		} else {
			p.Valid |= packet.IPID
			p.IPID = s.id
		}
		list = append(list, p)
	}
	return list
}

// script is a list of packets, sorted by time.
type script struct {
	packer  builder.Packer
	packets []packet.Packet
	next    int
}

func newScript(packets []packet.Packet) *script {
	slices.SortStableFunc(packets, func(a, b packet.Packet) int { return int(a.Time - b.Time) })
	return &script{packets: packets}
}

func (s *script) Next(f *packet.Frame) error {
	if s.next == len(s.packets) {
		return io.EOF
	}
	s.next++
	return s.packer.Frame(&s.packets[s.next-1], f)
}

func (s *script) Progress() (read, total int64) { return 0, 0 }
func (s *script) Skipped() map[string]uint64    { return nil }
func (s *script) Close() error                  { return nil }

// ordered runs ooo and retrans over frames, as one window, and returns its line.
func ordered(tb testing.TB, src capture.Source, cfg session.Config, set map[string]string) report.Line {
	tb.Helper()
	testutil.NeedRoot(tb)
	all := map[string]string{"stat": "ooo,retrans", "top": "10000"}
	for k, v := range set {
		all[k] = v
	}
	d := lean.Descriptor()
	values, err := algo.NewValues(d.Name, d.Params, all)
	if err != nil {
		tb.Fatal(err)
	}
	var lines []report.Line
	cfg.Algorithms = []session.Selected{{Descriptor: d, Values: values}}
	cfg.Truth = true
	cfg.Emit = func(l report.Line) error { lines = append(lines, l); return nil }
	if err := session.ReplaySource(context.Background(), cfg, "model", src, nil); err != nil {
		tb.Fatal(err)
	}
	if len(lines) != 1 {
		tb.Fatalf("%d windows, want 1", len(lines))
	}
	return lines[0]
}

// flowName is what the tables have in front of a value.
type flowName struct {
	src, dst     string
	sport, dport any
}

// listed reads a table: the value of each flow.
func listed(tb testing.TB, b *report.Body, table string) map[flowName]float64 {
	tb.Helper()
	found := map[flowName]float64{}
	for _, t := range b.Tables {
		if t.Name != table {
			continue
		}
		at := func(name string) int {
			return slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == name })
		}
		value := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Metric })
		for _, row := range t.Rows {
			v, _ := report.Number(row[value])
			found[flowName{row[at("src")].(string), row[at("dst")].(string), row[at("sport")], row[at("dport")]}] = v
		}
		return found
	}
	tb.Fatalf("the report has no table %s", table)
	return nil
}

// count reads a value of a body.
func count(tb testing.TB, b *report.Body, name string) float64 {
	tb.Helper()
	for _, v := range b.Values {
		if v.Name == name {
			if f, ok := report.Number(v.Value); ok {
				return f
			}
		}
	}
	tb.Fatalf("the report has no number %s", name)
	return 0
}
