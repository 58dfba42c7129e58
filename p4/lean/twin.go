// Package lean registers the twin of the lean statistics, in every choice of them.
package lean

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "lean", Algorithm: "lean",
		Forms:  forms(),
		Window: &twin.Flip{Table: "lean.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Differences: []twin.Difference{
			{Name: "IPv6", Max: 300, Ignored: true, Packet: func(p *packet.Packet) bool { return p.Has(packet.IP) && p.Src.Is6() }},
			{Name: "first fragments", Max: 2, Packet: func(p *packet.Packet) bool { return p.Has(packet.Fragment | packet.TCP) }},
			{Name: "a delay in which the 17 bits of time wrap", Max: 100, Turn: &twin.Turn{Register: "lean_lat_fr", Every: 1 << 33}},
			{Name: "loss", Max: 900, Words: losses},
			{Name: "numbers of another connection of the same ports", Max: 60, Follow: far},
			{Name: "reported flows", Max: 900, Words: reported},
		},
	})
}

var statistics = []string{"latency", "loss", "ooo", "retrans"}

// forms: the last one is what bugs are planted in, without loss, which is not compared.
func forms() (all []twin.Form) {
	for _, mask := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 13} {
		var chosen []string
		for bit, name := range statistics {
			if mask>>bit&1 != 0 {
				chosen = append(chosen, name)
			}
		}
		all = append(all, twin.Form{
			Name:   strings.Join(chosen, "-"),
			Define: map[string]string{"LEAN_STATS": fmt.Sprint(mask)},
			Set:    map[string]string{"stat": strings.Join(chosen, ","), "candidates": "65536"},
		})
	}
	return all
}

// reported: a flow is marked when three of the first four rows reach a limit, on a host when three of five reach a share of all
// flows' sum, which is the less demanding where that share is small: what the switch marks, the host marks.
func reported(register string, host, mine []uint64) int {
	if !strings.Contains(register, "_b_") {
		return -1
	}
	n := 0
	for i := range host {
		if mine[i]&^host[i] != 0 {
			return -1
		}
		n += int(min(1, mine[i]^host[i]))
	}
	return n
}

// losses: credits and signatures have other widths, and a host's places are other hashes. Nothing of it is compared.
func losses(register string, host, mine []uint64) int {
	if !strings.HasPrefix(register, "lean_loss_") {
		return -1
	}
	n := 0
	for i := range host {
		n += int(min(1, mine[i]^host[i]))
	}
	return n
}

// far: more than 2^25 bytes from where the flow was, which may be out of order for a switch and is another connection for a host.
func far() func(p *packet.Packet) bool {
	type flow struct {
		src, dst netip.Addr
		ports    [2]uint16
	}
	seen := map[flow]uint32{}
	return func(p *packet.Packet) bool {
		if !p.Has(packet.TCP) {
			return false
		}
		f := flow{p.Src, p.Dst, [2]uint16{p.SrcPort, p.DstPort}}
		last, known := seen[f]
		if by := int32(p.Seq - last); known && (by > 1<<25 || by < -1<<25) {
			return true
		}
		seen[f] = p.Seq
		return false
	}
}
