// Package beaucoup registers the twin of BeauCoup.
package beaucoup

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	userspace "github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "beaucoup", Algorithm: "beaucoup",
		Forms: []twin.Form{
			full("9"), full("22"), full("50"), {},
			{Name: "small", Generated: true, Set: map[string]string{"entries": "256", "budget": "1", "queries": small}},
		},
		Drive: collect,
		Fill: []twin.Fill{{Kind: twin.FillCPU, Object: "port to the CPU", What: "destination of copied packets, which are the alerts: the device's CPU port, in the traffic manager's configuration"},
			{Kind: twin.FillRules, Optional: true, Object: "xdpmon p4 rules beaucoup", What: "tables of coupons and of queries, to change the queries; the initial ones are those of beaucoup.set=many"}},
		Coins: twin.HighBits,
		Host:  host,
		Same:  same,
		Reports: &twin.Reports{
			Ring: "beaucoup_events",
			Host: func(record []byte) []uint64 { return []uint64{binary.NativeEndian.Uint64(record)} },
			Twin: copied, Copies: events, Counters: "beaucoup_counts",
		},
		Registers: true,
		Native:    dated,
		Uncounted: []string{"query_changes", "coupons_drawn", "coupons_per_packet", "accesses_per_packet", "coupons_collected", "coupons_new", "collectors_started",
			"collectors_evicted", "ties", "crowds", "collided", "evicted", "raced", "no_key", "exports", "alerts.confidence"},
	})
}

// small queries alert in a few thousand packets, over every kind of field.
const small = `a: count distinct dst+dport by src > 8 in 10s; b: count distinct timestamp by src+dst+sport+dport > 20 in 1s;
	c: count distinct sport by dst+dport > 6 in 5s if tcp.syn and not tcp.ack; d: count distinct src/24 by dst/16 > 3 in 20s;
	e: count distinct src+proto by dst/48 > 4 in 30s; f: count distinct tcp.flags+sport by dst+proto > 5 in 2s if tcp;
	g: count distinct dst+sport by src > 4 in 3s if udp and dport=53; h: count distinct src+dst by proto > 30 in 1m if ipv6`

// copied packets are the alerts: their own headers are the key.
func copied(r *run.Result, time uint64) [][]uint64 {
	if r.ToCPU {
		return [][]uint64{{time}}
	}
	return nil
}

// On the host the last bits of a checksum are the query's number, on a switch they are part of the key's hash.
const queryBits = 7

// host removes the end of the window from a vector, which differs between cores.
func host(register string, word uint64) uint64 {
	switch register {
	case "beaucoup_keys":
		return word >> queryBits
	case "beaucoup_vectors":
		return word & (1<<32 - 1)
	}
	return word
}

// dated puts the end of its window before a vector, by which a host distinguishes cores. The query of a key's checksum
// is known for alerts only.
func dated(register string, word uint64, beside func(string) uint64) uint64 {
	switch register {
	case "beaucoup_keys":
		return word << queryBits & (1<<32 - 1)
	case "beaucoup_vectors":
		return beside("beaucoup_ends")<<32 | word
	}
	return word
}

// events of packets that were copied to the CPU.
func events(v algo.Values, copies []twin.Copy, word func(register string, i int) uint64) (records [][]byte, counts map[int]uint64, err error) {
	var decoder packet.Decoder
	packets := make([]packet.Packet, len(copies))
	for i, c := range copies {
		frame := packet.Frame{Time: c.Time, Link: packet.LinkEthernet, Data: c.Packet, Len: len(c.Packet)}
		decoder.Decode(&frame, packet.DecodeOptions{}, &packets[i])
	}
	all, missing, err := userspace.Copies(v, packets, word)
	for _, e := range all {
		record, err := binary.Append(nil, binary.NativeEndian, e)
		if err != nil {
			return nil, nil, err
		}
		records = append(records, record)
	}
	return records, map[int]uint64{int(bpf.BeaucoupBeaucoupCounterBEAUCOUP_ALERTS): uint64(len(copies)),
		int(bpf.BeaucoupBeaucoupCounterBEAUCOUP_LOST_ALERTS): uint64(missing)}, err
}

func same(register string, word uint64) uint64 {
	if register == "beaucoup_keys" {
		return word & (1<<(32-queryBits) - 1)
	}
	return word
}

// full is a query to which every packet of one key draws a coupon: with the three thresholds, 7, 15 and 24 coupons precede the alert.
func full(threshold string) twin.Form {
	return twin.Form{Name: "above " + threshold, Generated: true, Driven: true,
		Set: map[string]string{"entries": "256", "budget": "1", "queries": "a: count distinct timestamp by src > " + threshold + " in 60s"}}
}

// before an alert, by form.
var before = map[string]int{"above 9": 7, "above 22": 15, "above 50": 24}

// collect covers every number of coupons in each byte of a collector, and its completion.
func collect(d twin.Driver, form twin.Form) error {
	n, ok := before[form.Name]
	if !ok {
		return every(d)
	}
	r := rand.New(rand.NewPCG(5, 16))
	now := d.Now() + 1e11
	send := func() error {
		now += 1000 + int64(r.IntN(1000))
		return d.Send(packet.Packet{Time: now, Valid: packet.IP | packet.Ports | packet.UDP | packet.IPID, Proto: 17, Segs: 1, SrcPort: 1, DstPort: 2,
			IPID: uint16(r.Uint32()), Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 2})})
	}
	if err := send(); err != nil {
		return err
	}
	slot := latest(d.Read("beaucoup_ends"))
	for sums := range 9 * 9 * 9 {
		a, b, c := sums/81, sums/9%9, sums%9
		first := n - a - b - c
		if first < 0 || first > 8 {
			continue
		}
		for range tries {
			vector := some(r, first) | some(r, a)<<8 | some(r, b)<<16 | some(r, c)<<24
			if err := d.Write("beaucoup_vectors", slot, vector); err != nil {
				return err
			}
			if err := send(); err != nil {
				return err
			}
		}
	}
	return nil
}

// every sends each kind of packet that queries distinguish, of many flows: two coupons in one packet are rare.
func every(d twin.Driver) error {
	r, now := rand.New(rand.NewPCG(6, 16)), d.Now()+1e9
	for n := range 18_000 {
		p := packet.Packet{Time: now + int64(n)*700, Valid: packet.IP | packet.Ports, Segs: 1, SrcPort: uint16(r.Uint32()), DstPort: uint16(r.Uint32())}
		var a [2][16]byte
		for i := range a {
			binary.BigEndian.PutUint64(a[i][:], 0x2001<<48|r.Uint64()>>16)
			binary.BigEndian.PutUint64(a[i][8:], r.Uint64())
		}
		p.Src, p.Dst = netip.AddrFrom16(a[0]), netip.AddrFrom16(a[1])
		if n%2 == 0 {
			p.Src, p.Dst = netip.AddrFrom4([4]byte(a[0][8:])), netip.AddrFrom4([4]byte(a[1][8:]))
			p.Valid, p.IPID = p.Valid|packet.IPID, uint16(r.Uint32())
		}
		switch n % 3 {
		case 0:
			p.Valid, p.Proto, p.DstPort = p.Valid|packet.UDP, 17, 53
		default:
			p.Valid, p.Proto, p.TCPFlags = p.Valid|packet.TCP, 6, []uint8{packet.SYN, packet.SYN, packet.ACK, packet.SYN | packet.ACK}[r.IntN(4)]
		}
		if err := d.Send(p); err != nil {
			return err
		}
	}
	return atTheEnd(d)
}

// atTheEnd sends packets of a collector's key to any number of coupons in each byte, and in the last tick of its window.
func atTheEnd(d twin.Driver) error {
	r := rand.New(rand.NewPCG(7, 16))
	known := map[int]bool{}
	from := func(n, to int, at int64) packet.Packet {
		return packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.UDP | packet.IPID, Proto: 17, Segs: 1, SrcPort: 1, DstPort: 2,
			Src: netip.AddrFrom4([4]byte{12, 0, 0, byte(n)}), Dst: netip.AddrFrom4([4]byte{13, byte(n), byte(to >> 8), byte(to)})}
	}
	const later = 100e9 // ns: all collectors are free again
	now := d.Now() + later
	for n := range 12 {
		before := d.Read("beaucoup_ends")
		for to := range 40 {
			if err := d.Send(from(n, to, max(now, d.Now()+5000))); err != nil {
				return err
			}
			for slot, end := range d.Read("beaucoup_ends") {
				if end == before[slot] || known[n<<16|slot] {
					continue
				}
				known[n<<16|slot] = true
				if err := counted(d, r, slot, func() packet.Packet { return from(n, to, d.Now()+5000) }); err != nil {
					return err
				}
				if n < 4 && len(known)%4 == 0 { // and in the last tick of its window
					if err := d.Send(from(n, to, max(d.Now()+5000, d.Now()&^(1<<42-1)+int64(end)<<10))); err != nil {
						return err
					}
					now = d.Now() + later
				}
			}
		}
		ends := d.Read("beaucoup_ends")
		for slot, end := range ends {
			if end == before[slot] {
				continue
			}
			at := d.Now()&^(1<<42-1) + int64(end)<<10
			for to := range 40 {
				if err := d.Send(from(n, 100+to, max(at, d.Now()))); err != nil {
					return err
				}
			}
			break
		}
	}
	return nil
}

// counted sends a packet that has just drawn the first coupon of a collector again, with any number of other coupons there, in any byte.
func counted(d twin.Driver, r *rand.Rand, slot int, next func() packet.Packet) error {
	drawn := d.Read("beaucoup_vectors")[slot]
	for n := range 2 * 24 {
		others := n / 2
		vector := uint64(1<<32 - 1<<(32-others)) // from the last byte on
		if n%2 == 1 {
			vector = 0
			for _, bit := range r.Perm(32)[:others] {
				vector |= 1 << bit
			}
		}
		if err := d.Write("beaucoup_vectors", slot, vector&^drawn); err != nil {
			return err
		}
		if err := d.Send(next()); err != nil {
			return err
		}
	}
	return nil
}

// tries until a coupon is new: a quarter is, with the fullest vector.
const tries = 12

// some returns some bits of a byte.
func some(r *rand.Rand, n int) (v uint64) {
	for _, bit := range r.Perm(8)[:n] {
		v |= 1 << bit
	}
	return v
}

func latest(ends []uint64) (slot int) {
	for i, v := range ends {
		if v > ends[slot] {
			slot = i
		}
	}
	return slot
}
