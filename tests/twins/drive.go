package twins

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// list is a stream of packets that are known beforehand.
type list struct {
	packets []packet.Packet
	packer  builder.Packer
}

// Next implements capture.Source.
func (l *list) Next(f *packet.Frame) error {
	if len(l.packets) == 0 {
		return io.EOF
	}
	p := l.packets[0]
	l.packets = l.packets[1:]
	return l.packer.Frame(&p, f)
}

// Progress implements capture.Source.
func (*list) Progress() (read, total int64) { return 0, 0 }

// Skipped implements capture.Source.
func (*list) Skipped() map[string]uint64 { return nil }

// Close implements capture.Source.
func (*list) Close() error { return nil }

// drive a pair to the entries of large tables, which the mix meets a part of: any flow, any delay, any number of insertions.
func (p *pair) drive() error {
	p.every = 0
	begin := (p.now/clockTurn + 1) * clockTurn
	if err := p.frames(&list{packets: spray(begin+1e9, sprayed)}, timeOf); err != nil {
		return err
	}
	if err := p.frames(&list{packets: delays(begin)}, timeOf); err != nil {
		return err
	}
	if err := p.frames(&frames{optioned(p.now + 1e9)}, timeOf); err != nil {
		return err
	}
	if p.twin.Drive != nil {
		if err := errors.Join(p.twin.Drive(driver{p}, p.form), p.settle()); err != nil {
			return err
		}
	}
	return p.window()
}

// driveForm sends what only this form's text is for.
func (p *pair) driveForm() error {
	p.every = 0
	if err := errors.Join(p.form.Drive(driver{p}), p.settle()); err != nil {
		return err
	}
	return p.window()
}

func timeOf(f *packet.Frame) int64 { return f.Time }

const sprayed = 16_000

// spray is packets of flows of their own.
func spray(now int64, n int) (all []packet.Packet) {
	r := rand.New(rand.NewPCG(3, 16))
	for range n {
		now += 900
		p := packet.Packet{Time: now, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, SrcPort: uint16(r.Uint32()),
			DstPort: uint16(r.Uint32()), Seq: r.Uint32(), TCPFlags: packet.ACK, Payload: uint32(r.IntN(3))}
		p.Src, p.Dst = any4(r), any4(r)
		p.Valid, p.IPID = p.Valid|packet.IPID, uint16(r.Uint32())
		switch r.IntN(8) {
		case 0:
			p.Proto, p.Valid = 17, p.Valid&^packet.TCP|packet.UDP
		case 1:
			p.Src, p.Dst, p.Valid = any6(r), any6(r), p.Valid&^packet.IPID
		case 2, 3, 4, 5:
			p.TCPFlags, p.Payload = packet.SYN, 0
		}
		all = append(all, p)
	}
	return all
}

func any4(r *rand.Rand) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(1 + r.IntN(220)), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())})
}

func any6(r *rand.Rand) netip.Addr {
	a := [16]byte{0x20, 1}
	binary.BigEndian.PutUint64(a[4:], r.Uint64())
	binary.BigEndian.PutUint32(a[12:], r.Uint32())
	return netip.AddrFrom16(a)
}

// scale is numbers up to 2^to, thirty-two from one power of two to the next.
func scale(to int) (all []int64) {
	for n := range int64(32) {
		all = append(all, n)
	}
	for k := 5; k < to; k++ {
		for n := range int64(32) {
			all = append(all, (32+n)<<(k-5))
		}
	}
	return all
}

// handshake number n of a client: request, response, end.
func handshake(n int, at [3]int64) []packet.Packet {
	syn := packet.Packet{Time: at[0], Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1, TCPFlags: packet.SYN, Seq: 77,
		SrcPort: uint16(1024 + n), DstPort: 443, Src: netip.AddrFrom4([4]byte{77, byte(at[0] >> 38), byte(n >> 8), byte(n)}), Dst: netip.AddrFrom4([4]byte{88, 0, 0, 1})}
	reply := back(syn)
	reply.Time, reply.TCPFlags, reply.Seq, reply.Ack = at[1], packet.SYN|packet.ACK, 99, 78
	end := syn
	end.Time, end.TCPFlags, end.Seq, end.Ack = at[2], packet.ACK, 78, 100
	return []packet.Packet{syn, reply, end}
}

// delays are handshakes that have every delay from request to response; others with every delay from there to their end; and data
// whose acknowledgement has every delay.
func delays(begin int64) (all []packet.Packet) {
	const tick, apart = 64, 1500 // ns
	answered := begin + 1<<38 + 1<<38 - 2e9
	for n, d := range scale(32) {
		at := answered + int64(n)*apart
		if first := at - d*tick; first > begin+1<<38 {
			all = append(all, handshake(n, [3]int64{first, at, at + 64})...)
		}
		at += 1 << 38
		if first := at - d*tick; first > begin+2<<38 {
			all = append(all, handshake(n, [3]int64{first - 64, first, at})...)
		}
		at += 1 << 38
		if d *= 8192; d < 8e9 {
			data := handshake(n, [3]int64{at - d, 0, 0})[0]
			data.TCPFlags, data.Payload = packet.ACK, 100
			ack := back(data)
			ack.Time, ack.Payload, ack.Ack = at, 0, data.Seq+data.Payload
			all = append(all, data, ack)
		}
	}
	slices.SortStableFunc(all, func(a, b packet.Packet) int { return int(min(1, max(-1, a.Time-b.Time))) })
	return all
}

// driver is a pair that a twin drives.
type driver struct{ *pair }

// Now implements twin.Driver.
func (d driver) Now() int64 { return d.now }

// Send implements twin.Driver.
func (d driver) Send(packets ...packet.Packet) error {
	if err := d.settle(); err != nil {
		return err
	}
	return d.frames(&list{packets: packets}, timeOf)
}

// Mix implements twin.Driver.
func (d driver) Mix(packets int) error {
	if err := d.settle(); err != nil {
		return err
	}
	m := newMix(uint64(packets), packets, mixFlows)
	m.time, m.turn = d.now+1e9, -1
	return d.frames(m, timeOf)
}

// Lengths implements twin.Driver.
func (d driver) Lengths(from ...netip.Addr) error {
	if err := d.settle(); err != nil {
		return err
	}
	var all []packet.Frame
	now := d.now
	for words := range 11 {
		for _, src := range from {
			for payload := range 2 {
				now += 5000
				s := builder.Spec{Time: now, IP: builder.IP{Src: src, Dst: server4}, PayloadLen: 3 * payload,
					TCP: &builder.TCP{SrcPort: uint16(6000 + words), DstPort: 443, Flags: packet.ACK, Options: bytes.Repeat([]byte{1}, 4*words)}}
				if src.Is6() {
					s.IP.Dst = server6
				}
				all = append(all, builder.MustBuild(&s))
			}
		}
	}
	return d.frames(&frames{all}, timeOf)
}

// Messages implements twin.Driver.
func (d driver) Messages() error {
	if err := d.settle(); err != nil {
		return err
	}
	return d.frames(&frames{messages(d.now + 1e9)}, timeOf)
}

// Acknowledged implements twin.Driver.
func (d driver) Acknowledged() error {
	if err := d.settle(); err != nil {
		return err
	}
	return d.frames(&frames{acknowledged(d.now + 1e9)}, timeOf)
}

// Read implements twin.Driver.
func (d driver) Read(register string) []uint64 { return twin.Elements(d.sw, register) }

// Write implements twin.Driver.
func (d driver) Write(register string, i int, v uint64) error {
	twin.SetElement(d.sw, register, i, v)
	one := poke{register, i, v}
	if d.tape != nil {
		d.tape.poke(one)
	}
	if d.pokes == nil {
		d.pokes = map[string][]poke{}
	}
	d.pokes[register] = append(d.pokes[register], one)
	return nil
}

// Control implements twin.Driver.
func (d driver) Control(host func(set *maps.Set) error, sw func(sw *run.Switch) error) error {
	if err := errors.Join(d.settle(), d.host.feed.Flush()); err != nil {
		return err
	}
	if d.tape != nil {
		d.tape.steps = append(d.tape.steps, step{write: sw})
	}
	return errors.Join(host(d.host.set), sw(d.sw))
}

// End implements twin.Driver.
func (d driver) End() error { return errors.Join(d.settle(), d.window()) }

// Compare implements twin.Driver.
func (d driver) Compare() error { return errors.Join(d.settle(), d.check(false)) }

// settle writes what a driver wrote into the host's arrays. What only a host keeps in a word is made of the twin's words, or stays.
func (p *pair) settle() error {
	if len(p.pokes) == 0 {
		return nil
	}
	p.before = nil
	if err := p.host.feed.Flush(); err != nil {
		return err
	}
	for register, pokes := range p.pokes {
		if err := p.settleAll(register, pokes); err != nil {
			return err
		}
	}
	clear(p.pokes)
	return nil
}

func (p *pair) settleAll(register string, pokes []poke) error {
	a, err := p.host.set.Array(register)
	if err != nil {
		return err
	}
	keys, words := make([]uint32, len(pokes)), make([]uint64, len(pokes))
	read := func(i int) (uint64, error) { return p.host.read(register, i) }
	if len(pokes)*8 > a.Entries {
		all, err := p.host.words(register)
		if err != nil {
			return err
		}
		read = func(i int) (uint64, error) { return all[i], nil }
	}
	for n, one := range pokes {
		keys[n] = uint32(one.i)
		if p.twin.Native != nil {
			words[n] = p.twin.Native(register, one.v, func(other string) uint64 { return twin.Element(p.sw, other, one.i) })
			continue
		}
		old, err := read(one.i)
		if err != nil {
			return err
		}
		kept, mine := p.laidOut(register, []uint64{old})[0], one.v
		if p.twin.Same != nil {
			mine = p.twin.Same(register, one.v)
		}
		words[n] = old ^ kept ^ mine
	}
	return p.host.put(a, keys, words)
}

// frames is a stream of frames that are known beforehand.
type frames struct{ all []packet.Frame }

// Next implements capture.Source.
func (l *frames) Next(f *packet.Frame) error {
	if len(l.all) == 0 {
		return io.EOF
	}
	*f, l.all = l.all[0], l.all[1:]
	return nil
}

// Progress implements capture.Source.
func (*frames) Progress() (read, total int64) { return 0, 0 }

// Skipped implements capture.Source.
func (*frames) Skipped() map[string]uint64 { return nil }

// Close implements capture.Source.
func (*frames) Close() error { return nil }

// Flags of ECN, which decide about nothing.
const (
	ece = 0x40
	cwr = 0x80
)

// optioned handshakes end with an ACK whose TCP header has every length, with every other flag, after segments that are no such ACK because of one flag.
func optioned(now int64) (all []packet.Frame) {
	for _, six := range []bool{false, true} {
		for words := range 11 {
			for n := range 10 { // a fridge admits some of them
				extra := []uint8{0, packet.PSH, packet.URG, ece, cwr}[n%5]
				port := uint16(5000 + 16*words + n)
				step := func(flags uint8, seq, ack uint32) {
					now += 5000
					s := builder.Spec{Time: now, IP: builder.IP{Src: client4, Dst: server4}, TCP: &builder.TCP{SrcPort: port, DstPort: 443, Flags: flags, Seq: seq, Ack: ack}}
					if six {
						s.IP = builder.IP{Src: client6, Dst: server6}
					}
					if flags&packet.SYN == 0 {
						s.TCP.Options = bytes.Repeat([]byte{1}, 4*words)
					} else if flags&packet.ACK != 0 {
						s.IP.Src, s.IP.Dst, s.TCP.SrcPort, s.TCP.DstPort = s.IP.Dst, s.IP.Src, s.TCP.DstPort, s.TCP.SrcPort
					}
					all = append(all, builder.MustBuild(&s))
				}
				step(packet.SYN|extra, 10, 0)
				step(packet.SYN|packet.ACK|extra, 20, 11)
				for _, wrong := range []uint8{0, packet.ACK | packet.FIN, packet.ACK | packet.RST} {
					step(wrong, 11, 21)
				}
				step(packet.ACK|extra, 11, 21)
			}
		}
	}
	return all
}

// messages of DNS, queries and answers between all ports that matter, cut by their IP header at every length up to some more than a DNS header's, and whole.
func messages(now int64) (all []packet.Frame) {
	const dns, most = 53, 16
	for _, ip := range []builder.IP{{Src: client4, Dst: server4}, {Src: client6, Dst: server6}} {
		for _, ports := range [][2]uint16{{4000, dns}, {dns, 4000}, {dns, dns}, {dns - 1, dns}, {dns, dns + 1}, {dns + 256, 4000}, {4000, dns + 256}, {4000, dns << 8}} {
			for length := range most + 1 {
				for answer := range 2 {
					now += 5000
					text := builder.DNS(uint16(length), answer == 1)
					if length < most {
						text = text[:length]
					}
					all = append(all, builder.MustBuild(&builder.Spec{Time: now, IP: ip, UDP: &builder.UDP{SrcPort: ports[0], DstPort: ports[1]}, Payload: text}))
				}
			}
		}
	}
	return all
}

// acknowledged segments have headers of every length, all flags that take a number or refuse the segment, data or none; what acknowledges them has one flag more, or
// a window that is closed but for one bit. A fridge admits some of them.
func acknowledged(now int64) (all []packet.Frame) {
	const flows = 4
	flags := []uint8{0, packet.SYN, packet.FIN, packet.SYN | packet.FIN, packet.RST}
	for _, ip := range []builder.IP{{Src: client4, Dst: server4}, {Src: client6, Dst: server6}} {
		for n := range 11 * len(flags) * 4 * flows {
			words, n := n%11, n/11
			seq := uint32(n) << 20
			s := builder.Spec{Time: now, IP: ip, PayloadLen: 3 * (n >> 1 & 1), TCP: &builder.TCP{SrcPort: uint16(10_000 + n), DstPort: 443, Seq: seq,
				Flags: flags[n/4%len(flags)] | packet.ACK*uint8(n&1), Options: bytes.Repeat([]byte{1}, 4*words)}}
			end := seq + uint32(s.PayloadLen) + uint32(s.TCP.Flags&packet.SYN)>>1 + uint32(s.TCP.Flags&packet.FIN)
			reply := builder.Spec{Time: now + 3000, IP: builder.IP{Src: ip.Dst, Dst: ip.Src}, TCP: &builder.TCP{SrcPort: 443, DstPort: s.TCP.SrcPort, Ack: end,
				Flags: packet.ACK | []uint8{0, 0, packet.SYN, packet.RST, packet.FIN, packet.PSH}[n%6], Window: []uint16{0, 0, 1, 1 << 15}[n/6%4]}}
			all = append(all, builder.MustBuild(&s), builder.MustBuild(&reply))
			now += 5000
		}
	}
	return all
}
