package reorder

import (
	"fmt"
	"io"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// step is one packet of a flow; numbers are relative to the flow's first.
type step struct {
	seq     uint32
	payload uint32
	flags   uint8
}

// data is a full segment.
func data(seq uint32) step { return step{seq, 1000, packet.ACK} }

// start of a connection.
func syn(seq uint32) step { return step{seq, 0, packet.SYN} }

// script is a list of frames, one a millisecond.
type script struct {
	packer  builder.Packer
	packets []packet.Packet
	next    int
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

// flow appends the packets of one flow with an initial number.
func (s *script) flow(src netip.Addr, initial uint32, steps []step) {
	dst := netip.AddrFrom4([4]byte{198, 18, 0, 1})
	if src.Is6() {
		dst = netip.MustParseAddr("2001:db8::1")
	}
	for _, st := range steps {
		p := packet.Packet{Time: 1e12 + int64(len(s.packets))*1e6, Src: src, Dst: dst, SrcPort: 443, DstPort: 5000, Proto: 6,
			Segs: 1, Valid: packet.IP | packet.Ports | packet.TCP, TCPFlags: st.flags, Seq: initial + st.seq, Payload: st.payload}
		p.Len = 14 + 20 + 20 + st.payload
		if src.Is6() {
			p.Len += 20
		} else {
			p.Valid |= packet.IPID
		}
		s.packets = append(s.packets, p)
	}
}

// cases are flows, and how many of their packets definitions 1, 2, 3 call out of order.
var cases = []struct {
	name    string
	steps   []step
	initial uint32
	want    [3]uint64
}{
	{name: "in order", steps: []step{data(0), data(1000), data(2000)}},
	{name: "numbers wrap", steps: []step{data(0), data(1000), data(2000)}, initial: ^uint32(0) - 1500},
	{name: "swap at the wrap", steps: []step{data(0), data(2000), data(1000), data(3000)}, initial: ^uint32(0) - 1500, want: [3]uint64{1, 2, 1}},
	{name: "swap", steps: []step{data(0), data(2000), data(1000), data(3000)}, want: [3]uint64{1, 2, 1}},
	{name: "loss and resend", steps: []step{data(0), data(2000), data(3000), data(1000), data(4000)}, want: [3]uint64{1, 2, 1}},
	{name: "two resent", steps: []step{data(0), data(3000), data(1000), data(2000), data(4000)}, want: [3]uint64{1, 2, 2}},
	{name: "duplicate", steps: []step{data(0), data(1000), data(1000), data(2000)}},
	{name: "pure ACKs", steps: []step{data(0), {1000, 0, packet.ACK}, {500, 0, packet.ACK}, data(1000)}},
	{name: "keep-alive", steps: []step{data(0), {999, 0, packet.ACK}, data(1000)}},
	{name: "keep-alive byte", steps: []step{data(0), {999, 1, packet.ACK}, {999, 1, packet.ACK}, data(1000)}},
	{name: "zero window probe", steps: []step{data(0), {1000, 1, packet.ACK}, {1000, 1, packet.ACK}, data(1000)}},
	{name: "SYN with data", steps: []step{{0, 100, packet.SYN}, {101, 1000, packet.ACK}, {1101, 0, packet.FIN | packet.ACK}}},
	{name: "FIN with data", steps: []step{data(0), {1000, 1000, packet.FIN | packet.ACK}, {2001, 0, packet.ACK}}},
	{name: "port used again, from below", steps: []step{data(900_000), data(901_000), data(902_000), syn(0), data(1), data(1001), data(2001)}},
	{name: "port used again, from above", steps: []step{data(0), data(1000), syn(900_000), data(900_001), data(901_001)}},
	{name: "port used again, its first packet late", steps: []step{data(0), syn(900_000), data(901_001), data(900_001), data(902_001)}, want: [3]uint64{1, 1, 1}},
	{name: "port used again, swap", steps: []step{data(900_000), syn(0), data(1), data(2001), data(1001), data(3001)}, want: [3]uint64{1, 2, 1}},
	{name: "swap, port used again", steps: []step{data(900_000), data(902_000), data(901_000), data(903_000), syn(0), data(1)}, want: [3]uint64{1, 2, 1}},
	{name: "SYN sent three times", steps: []step{data(900_000), syn(0), syn(0), syn(0), data(1), data(1001)}},
	{name: "port used again by the one that is asked", steps: []step{data(900_000), {0, 0, packet.SYN | packet.ACK}, data(1), data(1001)}},
	{name: "port used again, SYN with data", steps: []step{data(900_000), {0, 100, packet.SYN}, data(101), data(1101)}},
	{name: "port used again, gap after SYN with data", steps: []step{data(900_000), {0, 100, packet.SYN}, data(201), data(1201)}, want: [3]uint64{0, 1, 0}},
	{name: "handshake", steps: []step{{0, 0, packet.SYN}, {1, 0, packet.ACK}, {1, 1000, packet.ACK}, data(1001)}},
}

// sources are the hosts that send case n, each in a separate prefix.
func sources(n int) [2]netip.Addr {
	return [2]netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(n), 1}),
		netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 1, byte(n), 15: 1})}
}

// byPrefix reads the table of a body: out-of-order packets.
func byPrefix(b report.Body) map[string]uint64 {
	found := map[string]uint64{}
	for _, row := range b.Tables[0].Rows {
		found[row[0].(string)] = row[2].(uint64)
	}
	return found
}

// What is out of order by definitions 1, 2, 3, and what is not by any.
func TestWhatIsOutOfOrder(t *testing.T) {
	for d := range 3 {
		for _, method := range []string{"sampling", "precision", "hybrid"} {
			s := &script{}
			for n, c := range cases {
				for _, src := range sources(n) {
					s.flow(src, c.initial, c.steps)
				}
			}
			l := replay(t, s, session.Config{}, map[string]string{"definition": fmt.Sprint(d + 1), "method": method, "buckets": "32768",
				"recirculate": "1", "report": "all", "alpha": "1", "beta": "1", "epsilon": "0"})[0]
			found, truth := byPrefix(l.Report), byPrefix(*l.Truth)
			for n, c := range cases {
				for k, src := range sources(n) {
					prefix := netip.PrefixFrom(src, []int{24, 48}[k]).Masked().String()
					if found[prefix] != c.want[d] || truth[prefix] != c.want[d] {
						t.Errorf("%s, definition %d, %s, %s: %d out of order, the oracle has %d, want %d", c.name, d+1, method, prefix,
							found[prefix], truth[prefix], c.want[d])
					}
				}
			}
		}
	}
}

// With a bucket for every flow and no eviction nothing is sampled: the data plane's report equals the oracle's
func TestEveryFlowWatched(t *testing.T) {
	for d := 1; d <= 3; d++ {
		src := model(t, traffic.ReorderOptions{Packets: 30_000, Flows: 40, Prefixes: 40, Bad: 0.5, V6: 0.3, Seed: 1})
		l := replay(t, src, session.Config{}, map[string]string{"definition": fmt.Sprint(d), "buckets": "32768", "report": "all",
			"T": "4m", "C": "16777214", "R": "16777215"})[0]
		packets, watched := number(t, l.Report, "packets"), number(t, l.Report, "watched")
		if packets-watched != 40 {
			t.Errorf("definition %d: %g of %g packets were compared, want all but the first of 40 flows", d, watched, packets)
		}
		if got, want := number(t, l.Report, "out_of_order"), number(t, *l.Truth, "all_out_of_order"); got != want || want == 0 {
			t.Errorf("definition %d: %g packets out of order, the oracle has %g", d, got, want)
		}
	}
}

func TestCaptures(t *testing.T) {
	for _, name := range []string{"web_reordered.pcap"} {
		for d := 1; d <= 3; d++ {
			src, err := capture.OpenAll([]string{trace(t, name)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := replay(t, capture.Concat(src...), session.Config{}, map[string]string{"definition": fmt.Sprint(d), "buckets": "32768",
				"prefix": "32", "report": "all", "method": "sampling"})[0]
			got, truth := number(t, l.Report, "out_of_order"), number(t, *l.Truth, "all_out_of_order")
			if got > truth {
				t.Errorf("%s, definition %d: %g packets out of order, there are %g", name, d, got, truth)
			}
		}
	}
}
