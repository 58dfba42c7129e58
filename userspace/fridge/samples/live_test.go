package samples_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/attachtest"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Of eight servers one answers 80 ms later than the others: each of the slowest responses, and what is named at the 99th percentile, is of a connection
// to it, with its ports.
func TestLive(t *testing.T) {
	const servers, slow, dials, late = 8, 5, 160, 80 * time.Millisecond
	ports := map[uint16]int{}
	network := netnstest.New(t, netns.Options{Middle: netns.Emulator, Link: emulator.Options{BtoA: emulator.Direction{
		Delay: func(p *packet.Packet, _ *rand.Rand) time.Duration {
			if ports[p.SrcPort] == slow {
				return late
			}
			return time.Millisecond
		}}}})
	var addresses []string
	for n := range servers {
		listener, err := network.B.Listen(t.Context(), "tcp", fmt.Sprintf("%s:%d", network.B.IPv4, 21001+n))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		addresses = append(addresses, listener.Addr().String())
		ports[uint16(21001+n)] = n + 1
	}
	attached := attachtest.Attach(t, network.A, "fridge", attachtest.Options{Set: map[string]string{"samples": "16"}})
	clients := map[string]bool{}
	for n := range dials {
		conn, err := network.A.Dial(t.Context(), "tcp", addresses[n%servers])
		if err != nil {
			t.Fatal(err)
		}
		if n%servers == slow-1 {
			clients[fmt.Sprint(conn.LocalAddr().(*net.TCPAddr).Port)] = true
		}
		_ = conn.Close()
	}
	window := attached.End()[0]
	list, named := window.Rows("samples"), 0
	for _, row := range window.Rows("percentile_samples") {
		if row["percentile"] == "p99" {
			named++
			list = append(list, row)
		}
	}
	if len(list) != 16+named || named == 0 {
		t.Fatalf("%d responses are named, %d of them at p99", len(list), named)
	}
	for _, row := range list {
		if row["dst"] != network.B.IPv4.String() || row["dport"] != int64(21000+slow) || !clients[fmt.Sprint(row["sport"])] || row["delay_ns"].(int64) < int64(late) {
			t.Errorf("%v is no response of the slow server", row)
		}
	}
}
