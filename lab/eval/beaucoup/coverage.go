package beaucoup

import (
	"net/netip"
	"os"
	"path/filepath"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// cells are what the intervals of alerts are judged on: keys that keep growing, and ordinary traffic, in which most keys have far less
// than a threshold.
func cells(*eval.Page) []coverage.Cell {
	dir := os.Getenv("XDPMON_TRACES")
	if dir == "" {
		dir = filepath.Join("..", "shared", "traces")
	}
	configs := []coverage.Config{
		{Name: "six", Config: bytecode.Config{Algorithm: "beaucoup"}},
		{Name: "many", Config: bytecode.Config{Algorithm: "beaucoup", Set: map[string]string{"set": "many"}}},
		{Name: "64 coupons", Config: bytecode.Config{Algorithm: "beaucoup", Set: map[string]string{"coupons": "64"}}},
	}
	list := []coverage.Cell{
		{Name: "zipf", Configs: configs, Open: func(seed uint64) (capture.Source, error) {
			z, err := traffic.NewZipf(traffic.ZipfOptions{Packets: 50000, Flows: 2000, Skew: 1.3, Seed: seed})
			return traffic.Frames(z), err
		}},
		{Name: "scans", Configs: configs, Open: func(uint64) (capture.Source, error) { return traffic.Frames(&scanners{keys: 20, each: 1500}), nil }},
	}
	for _, part := range coverage.Parts(dir) {
		list = append(list, coverage.Cell{Name: part.Name, Configs: configs, Open: part.Open})
	}
	return list
}

// scanners are sources of which each packet has another destination and port.
type scanners struct{ keys, each, sent int }

// Next implements traffic.Model.
func (s *scanners) Next(p *packet.Packet) bool {
	if s.sent == s.keys*s.each {
		return false
	}
	key, n := byte(s.sent%s.keys), s.sent/s.keys
	*p = packet.Packet{Time: traffic.Start + int64(s.sent)*1000, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6,
		Segs: 1, TCPFlags: packet.SYN, Len: 54, Src: netip.AddrFrom4([4]byte{10, 0, 0, key}),
		Dst: netip.AddrFrom4([4]byte{11, key, byte(n >> 8), byte(n)}), SrcPort: uint16(20000 + n), DstPort: uint16(1 + n)}
	s.sent++
	return true
}
