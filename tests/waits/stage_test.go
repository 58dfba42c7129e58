package waits

import (
	"context"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/waits"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const (
	ms      = int64(time.Millisecond)
	begin   = int64(1e18)
	segment = 1448
	scaled  = 7 // both ends' window scale
)

// stage collects the packets of connections as a tap between them sees them.
type stage struct {
	specs []builder.Spec
	next  int
}

func (s *stage) Next(f *packet.Frame) (err error) {
	if s.next == len(s.specs) {
		return io.EOF
	}
	*f, err = builder.Build(&s.specs[s.next])
	s.next++
	return err
}

func (s *stage) Progress() (read, total int64) { return 0, 0 }
func (s *stage) Skipped() map[string]uint64    { return nil }
func (s *stage) Close() error                  { return nil }

// conn is a scripted connection. Legs are what its two sides of the tap take, there and back.
type conn struct {
	s              *stage
	client, server netip.AddrPort
	legC, legS     int64
	seqC, seqS     uint32
	window         uint16 // that the client announces, unscaled
	rng            *rand.Rand
}

func (s *stage) conn(n int, v6 bool, rng *rand.Rand) *conn {
	client, server := netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}), netip.AddrFrom4([4]byte{10, 2, 0, 1})
	if v6 {
		client, server = netip.MustParseAddr("fd00:1::1"), netip.MustParseAddr("fd00:2::1")
	}
	return &conn{s: s, client: netip.AddrPortFrom(client, uint16(30000+n)), server: netip.AddrPortFrom(server, 443), rng: rng, window: 500,
		legC: ms/2 + rng.Int64N(2*ms), legS: ms + rng.Int64N(3*ms), seqC: rng.Uint32(), seqS: rng.Uint32()}
}

// one is a packet of either end: its payload advances the end's number.
type one struct {
	flags   uint8
	payload int
	window  uint16
	back    uint32 // subtracted from the number: sent again, or a keep-alive
	options []byte
}

func (c *conn) put(at int64, up bool, o one) {
	tcp := &builder.TCP{Flags: o.flags, Window: o.window, Options: o.options}
	ip, seq := builder.IP{}, &c.seqS
	if up {
		seq = &c.seqC
		ip.Src, ip.Dst, tcp.SrcPort, tcp.DstPort, tcp.Seq, tcp.Ack = c.client.Addr(), c.server.Addr(), c.client.Port(), c.server.Port(), c.seqC-o.back, c.seqS
	} else {
		ip.Src, ip.Dst, tcp.SrcPort, tcp.DstPort, tcp.Seq, tcp.Ack = c.server.Addr(), c.client.Addr(), c.server.Port(), c.client.Port(), c.seqS-o.back, c.seqC
	}
	if o.back == 0 {
		*seq += uint32(o.payload)
		if o.flags&(packet.SYN|packet.FIN) != 0 {
			*seq++
		}
	}
	c.s.specs = append(c.s.specs, builder.Spec{Time: at, IP: ip, TCP: tcp, PayloadLen: o.payload})
}

var scale = []byte{2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, scaled}

// open is a handshake; it returns when it is over.
func (c *conn) open(at int64, options []byte) int64 {
	c.put(at, true, one{flags: packet.SYN, window: 64240, options: options})
	c.put(at+c.legS, false, one{flags: packet.SYN | packet.ACK, window: 65160, options: options})
	at += c.legS + c.legC
	c.put(at, true, one{flags: packet.ACK, window: c.window})
	return at
}

func (c *conn) ack(at int64, up bool, window uint16) {
	c.put(at, up, one{flags: packet.ACK, window: window})
}

// ask is a request that the server answers with so many segments after it has thought; a pair is acknowledged at once, a single one after 40 ms.
func (c *conn) ask(at, think int64, segments int) int64 {
	const delayed = 40 * ms
	c.put(at, true, one{flags: packet.ACK | packet.PSH, payload: 300, window: c.window})
	if think > delayed {
		c.ack(at+c.legS+delayed, false, 500)
	}
	at += c.legS + think
	for n := range segments {
		c.put(at, false, one{flags: packet.ACK, payload: segment, window: 500})
		at += ms / 20
		if n%2 == 1 {
			c.ack(at+c.legC, true, c.window)
		}
	}
	if segments%2 == 1 {
		c.ack(at+c.legC+delayed, true, c.window)
		at += delayed
	}
	return at + c.legC
}

// talk asks until the end; the server thinks for least and up to twice that.
func (c *conn) talk(at, end, least int64) {
	for at < end {
		at = c.ask(at, least+c.rng.Int64N(least), 1+c.rng.IntN(8)) + 20*ms + c.rng.Int64N(150*ms)
	}
}

// stuff is a client that does not read: its window closes, and stays closed while the server probes it, until it reads again, if it does.
func (c *conn) stuff(at, until int64, reads bool) int64 {
	at = c.ask(at, 2*ms, 6)
	c.put(at, false, one{flags: packet.ACK, payload: segment, window: 500})
	at += c.legC
	c.ack(at, true, 0)
	for wait := 200 * ms; at+wait < until; wait *= 2 {
		at += wait
		c.put(at, false, one{flags: packet.ACK, window: 500, back: 1})
		at += c.legC
		c.ack(at, true, 0)
	}
	if reads {
		c.ack(until, true, 400)
	}
	return until
}

// sorted is the source of all packets.
func (s *stage) sorted() *stage {
	slices.SortStableFunc(s.specs, func(a, b builder.Spec) int { return int(a.Time - b.Time) })
	return s
}

// measured replays a stage, with the oracle beside it.
func measured(tb testing.TB, s *stage, window time.Duration, set map[string]string) (lines []report.Line) {
	tb.Helper()
	testutil.NeedRoot(tb)
	d := waits.Descriptor()
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 1, Truth: true, Window: window,
		Emit: func(l report.Line) error { lines = append(lines, l); return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "stage", s.sorted(), nil); err != nil {
		tb.Fatal(err)
	}
	return lines
}

// lookAlikes are connections of which none waits long for anybody, though each has something that resembles it.
func lookAlikes(s *stage, n int, v6 bool, rng *rand.Rand, end int64) {
	c := s.conn(n, v6, rng)
	at := begin + rng.Int64N(300*ms)
	switch n % 7 {
	case 0: // an idle client whose keep-alives have a byte, and a server that has something to say in between
		at = c.ask(c.open(at, scale), 2*ms, 4)
		for ; at < end-1000*ms; at += 1000 * ms {
			c.put(at, true, one{flags: packet.ACK, payload: 1, window: 500, back: 1})
			c.ack(at+c.legS, false, 500)
			c.put(at+900*ms, false, one{flags: packet.ACK | packet.PSH, payload: 100, window: 500})
			c.ack(at+900*ms+c.legC, true, 500)
		}
	case 1: // RST has a window of zero
		at = c.ask(c.open(at, scale), 2*ms, 4)
		c.put(at, true, one{flags: packet.RST | packet.ACK, window: 0})
		c.put(end-500*ms, true, one{flags: packet.RST, window: 0, back: 1})
	case 2: // a window of 60 is 7,680 bytes
		c.window = 60
		c.talk(c.open(at, scale), end, ms)
	case 3: // the handshake is not in the capture, and a window of 60 says nothing
		c.window = 60
		c.talk(at, end, ms)
	case 4: // a window that closes for a moment, several times
		for at = c.open(at, scale); at < end-200*ms; at += 300 * ms {
			at = c.ask(at, ms, 6)
			c.ack(at, true, 0)
			c.ack(at+4*ms, true, 500)
		}
	case 5: // the first SYN is lost
		c.put(at, true, one{flags: packet.SYN, window: 64240, options: scale})
		c.seqC--
		c.talk(c.open(at+1000*ms, scale), end, ms)
	default:
		c.talk(c.open(at, scale), end, ms)
	}
}

// TestScaleIsRead: both readers find the window scale beside a timestamp, in whatever order.
func TestScaleIsRead(t *testing.T) {
	s := &stage{}
	s.conn(1, false, rand.New(rand.NewPCG(1, 1))).open(begin, scale)
	var f packet.Frame
	if err := s.Next(&f); err != nil {
		t.Fatal(err)
	}
	var p packet.Packet
	if packet.Decode(&f, packet.DecodeOptions{}, &p); p.Scale != scaled+1 || p.TSVal != 1 {
		t.Errorf("scale %d, tsval %d", p.Scale, p.TSVal)
	}
}
