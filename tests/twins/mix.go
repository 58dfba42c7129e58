package twins

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net/netip"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// mix is traffic with everything that twins process: handshakes that are repeated, late or never end, data in and out
// of order, sent again or lost, in a few large flows and many small ones, IPv4 and IPv6, TCP, UDP, ICMP; and one packet in twelve
// is odd. The same for the same seed.
type mix struct {
	r      *rand.Rand
	left   int
	turn   int // remaining packets when the clocks are about to wrap
	time   int64
	packer builder.Packer
	flows  []mixFlow
	odd    [][]packet.Frame
	next   *mixFlow // nil: any
	exact  int64    // ns until then; 0: at once
}

// mixFlow is one connection and its state.
type mixFlow struct {
	p    packet.Packet // client to server
	step int
	seq  uint32 // next of the client's
	ack  uint32 // next of the server's
	last packet.Packet
	id   uint16
}

// bounds at which what twins keep grows old, in ns: lean's windows and silences, reorder's T, an expiry of the fridge's clock.
var bounds = []int64{11718 << 8, 46 << 16, 93 << 16, 15259 << 16, 30 << 10}

const (
	mixFlows   = 200
	mixStart   = 1_000_000_000
	beforeTurn = 3_000_000 // ns, in which a few hundred packets arrive
)

func newMix(seed uint64, packets, flows int) *mix {
	m := &mix{r: rand.New(rand.NewPCG(seed, 16)), left: packets, turn: packets / 2, time: mixStart, flows: make([]mixFlow, flows), odd: oddFrames()}
	for i := range m.flows {
		m.begin(&m.flows[i])
	}
	return m
}

// begin another connection, of some networks with some hosts each.
func (m *mix) begin(f *mixFlow) {
	*f = mixFlow{seq: m.r.Uint32(), ack: m.r.Uint32(), id: uint16(m.r.Uint32())}
	p := &f.p
	*p = packet.Packet{Valid: packet.IP | packet.Ports, Proto: 6, Segs: 1,
		SrcPort: uint16(1024 + m.r.IntN(60000)), DstPort: []uint16{22, 53, 80, 443, 8080}[m.r.IntN(5)]}
	if m.r.IntN(5) == 0 {
		p.Src, p.Dst = m.address6(), m.address6()
	} else {
		p.Src, p.Dst = m.address4(), m.address4()
		p.Valid |= packet.IPID
	}
	switch m.r.IntN(10) {
	case 0:
		p.Proto, p.Valid = 17, p.Valid|packet.UDP
	default:
		p.Valid |= packet.TCP
	}
	if m.r.IntN(8) == 0 {
		p.Valid, p.VLAN = p.Valid|packet.VLAN, uint16(1+m.r.IntN(4000))
	}
}

func (m *mix) address4() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(1 + m.r.IntN(4)*50), byte(m.r.IntN(3)), byte(m.r.IntN(4)), byte(m.r.IntN(256))})
}

func (m *mix) address6() netip.Addr {
	a := [16]byte{0x20, 1, byte(m.r.IntN(8)), byte(m.r.IntN(4))}
	binary.BigEndian.PutUint32(a[12:], m.r.Uint32())
	return netip.AddrFrom16(a)
}

// Next implements capture.Source.
func (m *mix) Next(f *packet.Frame) error {
	if m.left == 0 {
		return io.EOF
	}
	m.left--
	if m.next == nil {
		m.time += m.gap()
	}
	if m.left == m.turn {
		m.time = (m.time/clockTurn+1)*clockTurn - beforeTurn
	}
	if m.next == nil && m.r.IntN(12) == 0 {
		kind := &m.odd[max(0, m.r.IntN(4)-1)]
		*f = (*kind)[0]
		*kind = append((*kind)[1:], *f)
		f.Time = m.time
		return nil
	}
	flow := m.choose()
	p := m.packet(flow)
	p.Time = m.time
	flow.last = p
	m.exact = 0
	if flow.step == 2 && m.r.IntN(3) == 0 {
		m.next = flow // the end of the handshake follows immediately
	} else if m.r.IntN(40) == 0 {
		m.next, m.exact = flow, bounds[m.r.IntN(len(bounds))]+int64(m.r.IntN(2)) // its next packet arrives when something has just expired
	}
	switch n := m.r.IntN(1024); {
	case n < 16:
		m.begin(flow)
	case n == 16: // another connection of the same ports
		flow.step, flow.seq, flow.ack = 0, m.r.Uint32(), m.r.Uint32()
	}
	if err := m.packer.Frame(&p, f); err != nil {
		return err
	}
	f.Data[5] = byte(m.left) // some addresses are odd
	if p.Has(packet.UDP) && p.Src.Is4() && m.left%8 == 0 {
		makeLaterFragment(f)
	}
	if m.r.IntN(6) == 0 && !p.Has(packet.VLAN) {
		m.wrap(f)
	}
	return nil
}

// makeLaterFragment of an IPv4 packet: its first bytes of payload look like ports, and are none.
func makeLaterFragment(f *packet.Frame) {
	const offset, tag = 14 + 6, 4
	at := offset
	if binary.BigEndian.Uint16(f.Data[12:]) == builder.EtherVLAN {
		at += tag
	}
	binary.BigEndian.PutUint16(f.Data[at:], 1480/8)
}

// choose whose packet is the next one.
func (m *mix) choose() *mixFlow {
	if f := m.next; f != nil {
		m.next = nil
		if m.exact > 0 {
			m.time += m.exact
		} else {
			m.time += 40 // within a tick or two
		}
		return f
	}
	if m.r.IntN(2) == 0 {
		return &m.flows[m.r.IntN(1+len(m.flows)/16)] // some send half of all
	}
	return &m.flows[m.r.IntN(len(m.flows))]
}

// wrap puts tags, and labels or a PPPoE session, in front of a packet, up to one more than a parser reads.
func (m *mix) wrap(f *packet.Frame) {
	before, kind := len(f.Data), binary.BigEndian.Uint16(f.Data[12:])
	var between []byte
	for range m.r.IntN(5) {
		between = binary.BigEndian.AppendUint16(between, []uint16{0x8100, 0x88a8, 0x9100}[m.r.IntN(3)])
		between = binary.BigEndian.AppendUint16(between, uint16(m.r.IntN(4096)))
	}
	switch m.r.IntN(3) {
	case 0:
		between = binary.BigEndian.AppendUint16(between, kind)
	case 1:
		ppp := map[uint16]uint16{0x0800: 0x21, 0x86dd: 0x57}[kind]
		between = append(between, 0x88, 0x64, 0x11, 0, 0, 1, 0, 100)
		between = binary.BigEndian.AppendUint16(between, ppp)
	case 2:
		between = append(between, 0x88, 0x47+byte(m.r.IntN(2)))
		for n := m.r.IntN(5); n >= 0; n-- {
			between = append(between, 0, 1, byte(number(n == 0)), 64)
		}
	}
	f.Data = append(append(append([]byte(nil), f.Data[:12]...), between...), f.Data[14:]...)
	f.Len += len(f.Data) - before
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// gap to the next packet: mostly microseconds, now and then long enough for everything to grow old.
func (m *mix) gap() int64 {
	switch m.r.IntN(4000) {
	case 0:
		return 5_000_000_000
	case 1:
		return 1 << 38
	case 2, 3, 4:
		return 50_000_000
	}
	if m.r.IntN(4) == 0 {
		return int64(m.r.IntN(64))
	}
	return int64(m.r.IntN(20_000))
}

func (m *mix) packet(f *mixFlow) packet.Packet {
	if f.last.Valid != 0 && m.r.IntN(12) == 0 {
		return f.last // sent again, or shown twice
	}
	p := f.p
	f.id += 1 + uint16(m.lost())
	p.IPID = f.id
	if !p.Has(packet.TCP) {
		p.Payload = uint32(m.r.IntN(500))
		if p.DstPort == 53 && p.Has(packet.UDP) {
			return f.message(p)
		}
		return p
	}
	f.step++
	if (f.step == 2 || f.step == 3) && m.r.IntN(6) == 0 {
		f.step--
		return m.impostor(f, p)
	}
	switch {
	case f.step == 1:
		p.TCPFlags, p.Seq = packet.SYN, f.seq
		if m.r.IntN(16) == 0 {
			p.Payload = 100 // TCP Fast Open
		}
		return p
	case f.step == 2:
		p = back(p)
		p.TCPFlags, p.Seq, p.Ack = packet.SYN|packet.ACK, f.ack, f.seq+1
		return p
	case f.step == 3:
		f.seq++
		f.ack++
		p.TCPFlags, p.Seq, p.Ack = packet.ACK, f.seq, f.ack
		return p
	}
	return m.segment(f, p)
}

// message of DNS: a query and its answer; a query that is sent again, with its answer and another one.
func (f *mixFlow) message(p packet.Packet) packet.Packet {
	const shortest = 29
	f.step++
	switch f.step % 6 {
	case 1, 3:
		f.seq++
	case 2, 5, 0:
		p, p.Valid = back(p), p.Valid|packet.AppResponse
	}
	if !p.Has(packet.AppResponse) {
		p.Valid |= packet.AppRequest
	}
	p.AppID, p.Payload = uint64(uint16(f.seq)), p.Payload+shortest
	return p
}

// impostor is in the place of the next packet of a handshake, with its numbers, but is none: refused, ended or aborted.
func (m *mix) impostor(f *mixFlow, p packet.Packet) packet.Packet {
	p.TCPFlags, p.Seq, p.Ack = m.bare(), f.seq+1, f.ack+1
	if f.step == 1 {
		p = back(p)
		p.Seq, p.Ack = f.ack, f.seq+1
	}
	return p
}

// bare are flags that end a connection, without data; not SYN with FIN, which no host sends (docs/twins.md, lean).
func (m *mix) bare() uint8 {
	return []uint8{packet.RST | packet.ACK, packet.FIN | packet.ACK, packet.SYN | packet.RST, packet.SYN | packet.ACK | packet.RST}[m.r.IntN(4)]
}

// lost is how many packets of a flow are lost.
func (m *mix) lost() int {
	switch m.r.IntN(40) {
	case 0:
		return m.r.IntN(60)
	case 1:
		return m.r.IntN(3000)
	}
	return 0
}

// segment is data, its acknowledgement, an end, or a reset.
func (m *mix) segment(f *mixFlow, p packet.Packet) packet.Packet {
	p.TCPFlags, p.Seq, p.Ack = packet.ACK, f.seq, f.ack
	switch m.r.IntN(16) {
	case 0:
		p.TCPFlags |= packet.FIN
	case 1:
		if m.r.IntN(2) == 0 {
			p.TCPFlags = m.bare()
			return p
		}
		p.TCPFlags = packet.RST
	case 2, 3, 4, 5:
		p = back(p)
		p.Seq, p.Ack = f.ack, f.seq
		if m.r.IntN(8) == 0 {
			p.TCPFlags = m.bare()
		}
		return p
	case 6:
		p.Payload = 1
		p.Seq -= 1
		return p
	case 9:
		p.TCPFlags, p.Seq, p.Ack = packet.SYN, p.Seq-1, 0
		return p
	case 7, 8:
		p.Payload = uint32(1 + m.r.IntN(1400))
		p.Seq -= uint32(m.r.IntN(4000)) // late, or sent again
		return p
	}
	p.Payload = uint32(m.r.IntN(1400))
	f.seq += p.Payload + uint32(m.lost()) // losses leave a hole
	return p
}

// back reverses a packet.
func back(p packet.Packet) packet.Packet {
	p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	return p
}

// Progress implements capture.Source.
func (m *mix) Progress() (read, total int64) { return 0, 0 }

// Skipped implements capture.Source.
func (m *mix) Skipped() map[string]uint64 { return nil }

// Close implements capture.Source.
func (m *mix) Close() error { return nil }
