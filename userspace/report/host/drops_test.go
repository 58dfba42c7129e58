package host

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/loader/drops"
	"github.com/xdpmon/xdpmon/loader/kernel"
)

func TestDrops(t *testing.T) {
	earlier := []drops.Count{{Reason: "NO_SOCKET", Packets: 10, Bytes: 600}, {Reason: "QDISC_DROP", Packets: 4, Bytes: 400}}
	now := []drops.Count{{Reason: "NO_SOCKET", Packets: 15, Bytes: 900}, {Reason: "QDISC_DROP", Packets: 4, Bytes: 400}, {Reason: "XDP_OF_LATER", Packets: 20, Bytes: 2000}}
	list := DropsSince(earlier, now)
	if len(list) != 3 || list[0] != (Drop{"XDP_OF_LATER", "", 20, 2000, 20, 2000}) || list[1].Packets != 5 || list[1].PacketsTotal != 15 || list[2].Packets != 0 {
		t.Errorf("%+v", list)
	}
	at := time.Date(2026, 11, 27, 3, 12, 0, 0, time.UTC)
	d := Drops{From: at, To: at.Add(10 * time.Second), Interfaces: []InterfaceDrops{{Interface: "eth0", Dropped: list}, {Interface: "eth1", Removed: true, Dropped: []Drop{}}}}
	lines := d.Lines()
	if len(lines) != 4 || lines[0] != "2026-11-27 03:12:10, 10.0 s: 25 packets dropped by the kernel, on 1 of 2 interfaces" || strings.Contains(strings.Join(lines, "\n"), "QDISC") ||
		!strings.Contains(lines[3], "eth0") || !strings.Contains(lines[3], "NO_SOCKET") || !strings.Contains(lines[3], "ss -lntu") {
		t.Errorf("%q", lines)
	}
	d = Drops{From: at, To: at.Add(time.Second), Unknown: []Drop{{Reason: "SOCKET_RCVBUFF", Packets: 1}}}
	if text := strings.Join(d.Lines(), "\n"); !strings.Contains(text, "(unknown)") {
		t.Errorf("%q", text)
	}
	if text := (Drops{From: at, To: at.Add(time.Second)}).Lines(); len(text) != 1 || !strings.Contains(text[0], "no packet dropped") {
		t.Errorf("%q", text)
	}
}

// TestMeanings: what the running kernel drops for is explained; reasons of later kernels may be without a meaning.
func TestMeanings(t *testing.T) {
	known, err := Reasons()
	if errors.Is(err, kernel.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	explained := 0
	for _, reason := range known {
		if reason.Meaning != "" {
			explained++
		}
	}
	if explained < 80 {
		t.Errorf("%d of the kernel's reasons are explained", explained)
	}
}
