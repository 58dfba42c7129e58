// Package fridge registers the twin of the fridge.
package fridge

import (
	"net/netip"

	"github.com/xdpmon/xdpmon/p4/handshakes"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "fridge", Algorithm: "fridge",
		Window: &twin.Flip{Table: "fridge.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Forms: []twin.Form{{}, {Name: "dns", Generated: true, Brief: true, Drive: twin.Driver.Messages, Set: map[string]string{"fridges": "128@1/2,64@1/4", "match": "dns"}},
			{Name: "data", Generated: true, Brief: true, Drive: twin.Driver.Acknowledged, Set: map[string]string{"fridges": "128@1/2,64@1/4", "match": "tcp-data"}},
			{Name: "small", Generated: true, Set: map[string]string{"fridges": "128@1/2,64@1/4"}}},
		Host:       full,
		Native:     native,
		Drive:      advance,
		Start:      nearlyFull,
		Registers:  true,
		Saturating: []string{"fridge_hist", "fridge_hits", "fridge_second", "fridge_repeats"},
		Counts: []twin.Count{
			count(0, "lost_coin", "repeated", "inserted", "evicted", "again"),
			count(1, "lost_coin"),
			count(2, "repeated"),
			count(3, "inserted", "evicted", "again"),
			count(4, "evicted"),
			count(5, "unmatched", "matched", "repeated_reply"),
			count(6, "matched"),
			count(8, "repeated_reply"),
			{Table: "fridge.outcome.outcomes", Actions: []string{"finals"}, Host: "fridge_counters", Index: 9, Short: 15}, // in the tick of the SYN-ACK
			{Table: "fridge.shut.windows", Actions: []string{"closed"}, Host: "fridge_counters", Index: 17},
		},
		Also: []twin.Count{
			count(12, "repeated", "inserted", "evicted", "again"), // of the only fridge in the committed text
		},
		Differences: []twin.Difference{
			{Name: "a response finds the requests of its own 2^32 ticks", Max: 60, Turn: &twin.Turn{Registers: []string{"fridge_entries"}, Every: 1 << 38}},
			{Name: "SYN-ACK to ACK between odd ticks", Max: 4, Words: oddTicks},
			{Name: "an ACK within the tick of its SYN-ACK", Max: 8, Words: sameTick},
		},
	})
}

// oddTicks: a delay between two odd ticks is off by at most one tick, which is one bin. A delay within a tick, which is
// in bin 0 or 1, may be missing.
func oddTicks(register string, host, mine []uint64) int {
	if register != "fridge_second" {
		return -1
	}
	const bins = 896
	n := 0
	for plane := 0; plane < len(host); plane += bins { // per bank and fridge
		a, b := host[plane:plane+bins], mine[plane:plane+bins]
		moved, lost := int64(0), int64(0) // weight that moves from this bin to the next one, and that may move or be lost
		for i := range a {
			n += int(min(1, a[i]^b[i]))
			moved += int64(a[i]) - int64(b[i])
			switch {
			case i < 2 && moved > 0:
				lost, moved = lost+moved, 0
			case i == 2 && moved < 0:
				moved += min(lost, -moved)
			}
			if moved > int64(a[i]) || moved < 0 && (i+1 == bins || -moved > int64(a[i+1])) {
				return -1
			}
		}
		if moved != 0 {
			return -1
		}
	}
	return n
}

// sameTick: such an ACK is no sample, also not of the sum of both legs (row 1).
func sameTick(register string, host, mine []uint64) int {
	if register != "fridge_hist" && register != "fridge_hits" {
		return -1
	}
	n, plane := 0, len(host)/4
	for i := range host {
		if host[i] == mine[i] {
			continue
		}
		if row := i / plane % 2; row == 0 || host[i] < mine[i] {
			return -1
		}
		n++
	}
	return n
}

func count(index int, actions ...string) twin.Count {
	return twin.Count{Table: "fridge.outcome.outcomes", Actions: actions, Host: "fridge_counters", Index: index}
}

// native: a host counts samples in 28 bits and exponents in 36.
func native(register string, word uint64, _ func(string) uint64) uint64 {
	if register == "fridge_hits" {
		return min(word>>32, 1<<28-1)<<36 | word&(1<<32-1)
	}
	return word
}

// full: a sum of the twin has 32 bits and saturates.
func full(register string, word uint64) uint64 {
	switch register {
	case "fridge_hist", "fridge_second", "fridge_repeats":
		return min(word, 1<<32-1)
	case "fridge_hits": // samples of 28 bits and exponents of 36
		return word>>36<<32 | min(word&(1<<36-1), 1<<32-1)
	}
	return word
}

// advance changes the counters of insertions between a request, its repetition and the response, as if so many others had arrived. The
// handshake does not end: its sums would saturate, which would hide the allowed differences. From 2^23 on a host
// takes a gap for a torn one.
func advance(d twin.Driver, _ twin.Form) error {
	begin := (d.Now()>>38+1)<<38 + 1e9
	for n, gap := range gaps(23) {
		at := begin + int64(n)*1e6
		syn := packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1, TCPFlags: packet.SYN, Seq: 77,
			SrcPort: uint16(1024 + n), DstPort: 443, Src: netip.AddrFrom4([4]byte{77, 1, byte(n >> 8), byte(n)}), Dst: netip.AddrFrom4([4]byte{88, 0, 0, 1})}
		again := syn
		again.Time += 1000
		reply := syn
		reply.Time, reply.Src, reply.Dst, reply.SrcPort, reply.DstPort = at+2000, syn.Dst, syn.Src, syn.DstPort, syn.SrcPort
		reply.TCPFlags, reply.Seq, reply.Ack = packet.SYN|packet.ACK, 99, 78
		for _, p := range []packet.Packet{syn, again, reply} {
			if err := d.Send(p); err != nil {
				return err
			}
			for i, v := range d.Read("fridge_inserts") {
				if err := d.Write("fridge_inserts", i, uint64(uint32(v+gap))); err != nil {
					return err
				}
			}
		}
	}
	return handshakes.Fins(d)
}

// gaps up to 2^to, sixteen from one power of two to the next.
func gaps(to int) (all []uint64) {
	for n := range uint64(16) {
		all = append(all, n)
	}
	for k := 4; k < to; k++ {
		for n := range uint64(16) {
			all = append(all, (16+n)<<(k-4))
		}
	}
	return all
}

// nearlyFull gives sums close to saturation in some bins.
func nearlyFull(register string, i int) uint64 {
	if register == "fridge_hist" && i%4 == 1 {
		return 1<<32 - 700
	}
	return 0
}
