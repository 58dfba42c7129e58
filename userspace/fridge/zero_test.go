package fridge

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// closing sets the window of chosen frames to 0: the n-th of the source, all of TCP over IPv4.
type closing struct {
	capture.Source
	closed func(n int) bool
	n      int
}

func (c *closing) Next(f *packet.Frame) error {
	err := c.Source.Next(f)
	if err == nil {
		window := uint16(500)
		if c.closed(c.n) {
			window = 0
		}
		binary.BigEndian.PutUint16(f.Data[14+20+14:], window)
	}
	c.n++
	return err
}

// exchange is data to a receiver, which answers each segment; every packet of it may have a window of 0.
func exchange(receivers, rounds int) (list []packet.Packet) {
	for n := range receivers * rounds {
		host := netip.AddrFrom4([4]byte{10, 0, 9, byte(1 + n%receivers)})
		data := packet.Packet{Time: int64(n+1) * 1e6, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, TCPFlags: packet.ACK, Src: netip.AddrFrom4([4]byte{10, 9, 9, 9}), Dst: host,
			SrcPort: 443, DstPort: 40000, Seq: uint32(1 + 100*n), Ack: 7, Payload: 100}
		ack := data
		ack.Src, ack.Dst, ack.SrcPort, ack.DstPort, ack.Seq, ack.Ack, ack.Payload, ack.Time = data.Dst, data.Src, data.DstPort, data.SrcPort, 7, data.Seq+100, 0, data.Time+2e5
		list = append(list, data, ack)
		if n%10 == 0 { // ends of connections advertise nothing
			ack.TCPFlags, ack.Time = packet.ACK|packet.FIN, data.Time+3e5
			list = append(list, ack)
		}
	}
	return list
}

// TestZeroWindows: the program counts the ACKs that close a window, by the host that sends them, exactly as the oracle does; those of SYN, FIN and of segments with
// data do not report a receiver.
func TestZeroWindows(t *testing.T) {
	testutil.NeedRoot(t)
	const receivers, rounds = 5, 40
	packets := exchange(receivers, rounds)
	shut := netip.AddrFrom4([4]byte{10, 0, 9, 1}) // the first: the row is free
	closes := func(n int) bool { return packets[n].Src == shut || packets[n].Payload > 0 }
	for _, set := range []map[string]string{{"match": "tcp-data", "group": "dst/32", "rows": "64"}, {"match": "tcp-data"}, {"match": "tcp-timestamp"}} {
		var line report.Line
		cfg := session.Config{Algorithms: []session.Selected{{Descriptor: descriptor(), Values: values(t, set)}}, Seed: 3, Truth: true,
			Hash: algo.HashOf(false), Emit: func(l report.Line) error { line = l; return nil }, Notice: t.Logf}
		if err := session.ReplaySource(context.Background(), cfg, "model", &closing{Source: traffic.Frames(inTime(packets)), closed: closes}, nil); err != nil {
			t.Fatal(err)
		}
		if set["match"] != "tcp-data" {
			for _, v := range line.Report.Values {
				if v.Name == "zero_windows" {
					t.Errorf("%v reports zero windows", set)
				}
			}
			continue
		}
		for what, b := range map[string]report.Body{"estimate": line.Report, "truth": *line.Truth} {
			if n := valueOf(t, b, "zero_windows"); n != rounds {
				t.Errorf("%v, %s: %g zero windows, %d ACKs close one", set, what, n, rounds)
			}
			if set["group"] != "" {
				byHost(t, b, shut.String()+"/32", rounds)
			}
		}
	}
}

func byHost(t *testing.T, b report.Body, host string, want uint64) {
	t.Helper()
	found := false
	for _, table := range b.Tables {
		for _, cells := range table.Rows {
			n := uint64(0)
			for i, c := range table.Columns {
				if c.Name == "zero_windows" {
					v, _ := report.Number(cells[i])
					n = uint64(v)
				}
			}
			switch name := fmt.Sprint(cells[0]); {
			case name == host:
				found = true
				if n != want {
					t.Errorf("%s: %d zero windows, %d are right", name, n, want)
				}
			case n != 0:
				t.Errorf("%s: %d zero windows, it sends none", name, n)
			}
		}
	}
	if !found {
		t.Errorf("no row of %s", host)
	}
}

// Zero windows of two hosts add up by group, also of a group that has nothing else.
func TestZeroWindowsMerged(t *testing.T) {
	set := map[string]string{"match": "tcp-data", "group": "dst/24"}
	a, b := counted(t, set, 50, 160, 1e6), counted(t, set, 50, 160, 1e6, 2e6)
	a.Words[shutWords][1], b.Words[shutWords][1], b.Words[shutWords][3] = 2, 5, 4
	b.Words["fridge_groups"][3] = group.KeyIPv4<<60 | 0x0a000700
	merged := snapshottest.Report(t, snapshottest.Merge(t, a, b)).Body
	got := map[string]float64{}
	for _, table := range merged.Tables {
		column := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.Name == "zero_windows" })
		if column < 0 {
			t.Fatalf("columns %v", table.Columns)
		}
		for _, cells := range table.Rows {
			got[fmt.Sprint(cells[0])], _ = report.Number(cells[column])
			if last := cells[len(cells)-1]; last != 0 {
				t.Errorf("%v has row %v", cells[0], last)
			}
		}
	}
	if got["10.0.0.0/24"] != 7 || got["10.0.7.0/24"] != 4 || len(got) != 3 {
		t.Errorf("zero windows by group: %v", got)
	}
	snapshottest.Stands(t, b)
}
