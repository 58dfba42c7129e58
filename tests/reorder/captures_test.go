package reorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/reorder"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// flowSource gives each flow its own address as its prefix. With CRC hashes, which are linear, the first 2^14 of these
// have separate buckets among 2^15; otherwise TestCapturesPacketForPacket would fail.
func flowSource(number uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, number<<5)))
}

type direction struct {
	src, dst     netip.Addr
	sport, dport uint16
}

// apart reads the segments with payload of a capture, each flow with a separate source, and the SYNs of flows that are
// known: ports that are used again.
func apart(t *testing.T, name string) (s *script, data, flows int) {
	t.Helper()
	src, err := capture.OpenAll([]string{trace(t, name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := capture.Concat(src...)
	defer all.Close()
	s = &script{}
	numbers := map[direction]uint32{}
	for {
		var frame packet.Frame
		if err := all.Next(&frame); errors.Is(err, io.EOF) {
			return s, data, len(numbers)
		} else if err != nil {
			t.Fatal(err)
		}
		var p packet.Packet
		packet.Decode(&frame, packet.DecodeOptions{}, &p)
		key := direction{p.Src, p.Dst, p.SrcPort, p.DstPort}
		_, known := numbers[key]
		begins := known && p.TCPFlags&packet.SYN != 0
		if !p.Has(packet.TCP) || p.Has(packet.Fragment) || p.Payload == 0 && !begins {
			continue
		}
		if !known {
			numbers[key] = uint32(len(numbers))
		}
		if p.Payload > 0 {
			data++
		}
		p.Src, p.Dst = flowSource(numbers[key]), netip.AddrFrom4([4]byte{198, 18, 0, 1})
		p.Valid &^= packet.VLAN | packet.TSOpt | packet.IPID
		s.packets = append(s.packets, p)
	}
}

// On real captures the data plane counts what an independent script does, packet for packet: every flow has a bucket that
// is never taken from it. That the program reads sequence numbers and lengths out of the frames as Go does is what
// tests/parser compares on the same captures.
func TestCapturesPacketForPacket(t *testing.T) {
	for name, want := range map[string][3]float64{
		"composite_120s.pcap": {254, 1220, 604}, "laptop_wan_300s.pcap": {81, 8, 115},
		"web_reordered.pcap": {13, 30, 84}, "speedtest_server.pcap": {8, 36, 39},
	} {
		s, segments, flows := apart(t, name)
		for d, l := range byDefinition(t, s, map[string]string{"buckets": "32768", "prefix": "32", "report": "all", "T": "4m",
			"C": "16777214", "R": "16777215"}) {
			packets, watched := number(t, l.Report, "packets"), number(t, l.Report, "watched")
			if packets != float64(segments) || packets-watched != float64(flows) {
				t.Errorf("%s: %g of %g packets were compared; %d were sent in %d flows", name, watched, packets, segments, flows)
			}
			if got := number(t, l.Report, "out_of_order"); got != want[d] {
				t.Errorf("%s, definition %d: %g packets out of order in the data plane, want %g", name, d+1, got, want[d])
			}
			if got := number(t, *l.Truth, fmt.Sprintf("definition_%d", d+1)); got != want[d] {
				t.Errorf("%s, definition %d: %g packets out of order by the oracle, want %g", name, d+1, got, want[d])
			}
		}
	}
}

// byDefinition replays frames through three monitors in one chain, without second passes, which none of them requests.
func byDefinition(t *testing.T, s *script, set map[string]string) (lines []report.Line) {
	t.Helper()
	testutil.NeedRoot(t)
	cfg := session.Config{Hash: algo.HashCRC, Truth: true, Emit: func(l report.Line) error { lines = append(lines, l); return nil }}
	d, err := algo.Lookup(reorder.Name)
	if err != nil {
		t.Fatal(err)
	}
	for definition := 1; definition <= 3; definition++ {
		set["definition"] = fmt.Sprint(definition)
		v, err := algo.NewValues(d.Name, d.Params, set)
		if err != nil {
			t.Fatal(err)
		}
		own := *d
		own.Name = fmt.Sprintf("%s-%d", d.Name, definition)
		cfg.Algorithms = append(cfg.Algorithms, session.Selected{Descriptor: &own, Values: v})
	}
	if err := session.ReplaySource(t.Context(), cfg, "capture", s, nil); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 {
		t.Fatalf("%d reports, want 3", len(lines))
	}
	return lines
}
