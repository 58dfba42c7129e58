package conquest

import (
	"net/netip"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// departed is one packet that leaves at a time after a delay, ns.
func departed(at, delay int64, flow uint16) packet.Packet {
	return packet.Packet{Time: at, Enqueued: at - delay, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, Segs: 1, Len: 1000, SrcPort: flow, DstPort: 53,
		Src: netip.AddrFrom4([4]byte{10, 0, 0, 1}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 2})}
}

// carried packets bring along when they were handed to their queue.
type carried struct{ sighted }

func (c *carried) Next(f *packet.Frame) error {
	err := c.sighted.Next(f)
	if err == nil {
		f.Enqueued = c.packets[c.at-1].Enqueued
	}
	return err
}

// TestNotCut: packets that need not wait, of another class or of a queue with the same state, do not cut a burst into pieces; half of tau without
// anybody who waits does. Bytecode and truth see the same.
func TestNotCut(t *testing.T) {
	testutil.NeedRoot(t)
	const us, tau = int64(1000), int64(1_000_000)
	var list []packet.Packet
	at := int64(1_000_000_000)
	for range 3 { // bursts of 10 ms
		for range 200 {
			list = append(list, departed(at, 3*tau, 1), departed(at+10*us, 20*us, 2), departed(at+20*us, tau*3/4, 3))
			at += 50 * us
		}
		at += tau/2 - 50*us
		list = append(list, departed(at-5*us, 20*us, 2)) // too soon: half of tau has not passed
		list = append(list, departed(at+5*us, 20*us, 2))
		at += 100 * us
	}
	for range 2 { // and one of which the pause is too short
		for range 100 {
			list = append(list, departed(at, 3*tau, 1), departed(at+10*us, 20*us, 2))
			at += 50 * us
		}
		at += tau/2 - 100*us
	}
	list = append(list, departed(at+tau, 20*us, 2))
	line := reported(t, map[string]string{"source": "qdisc", "tau": "1ms"}, &carried{sighted{packets: list}})
	truth := *line.Truth
	for _, c := range []struct {
		name string
		want float64
	}{{"bursts", 4}, {"congested", 800}, {"peak_delay_ns", float64(3 * tau)}} {
		if got, exact := number(t, line.Report, c.name), number(t, truth, c.name); got != c.want || exact != c.want {
			t.Errorf("%s: %g, and %g in truth; want %g", c.name, got, exact, c.want)
		}
	}
}
