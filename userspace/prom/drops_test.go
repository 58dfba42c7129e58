package prom

import (
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

func TestKernelDrops(t *testing.T) {
	s := NewStore(fixedClock)
	s.Dropped(func() []Drops {
		return []Drops{{Reasons: []DropReason{{"SOCKET_RCVBUFF", 3, 300}}},
			{Identity: report.Identity{Interfaces: []string{"vnet0"}, Guest: report.Guest{Name: "db1", Kind: known.GuestDomain}}, Reasons: []DropReason{{"NO_SOCKET", 7, 420}, {"QDISC_DROP", 1, 1500}}}}
	})
	gather(t, s)
	out := string(text(t, s))
	for _, want := range []string{`xdpmon_kernel_dropped_packets_total{reason="SOCKET_RCVBUFF"} 3`, `xdpmon_kernel_dropped_packets_total{domain="db1",guest="db1",interface="vnet0",reason="NO_SOCKET"} 7`,
		`xdpmon_kernel_dropped_bytes_total{domain="db1",guest="db1",interface="vnet0",reason="QDISC_DROP"} 1500`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
}
