package exact

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// tsharkMisses lists the frames in front of which tshark sees a segment missing.
func tsharkMisses(t *testing.T, path string) map[int]bool {
	t.Helper()
	out, err := exec.Command(testutil.NeedTool(t, "tshark"), "-n", "-r", path, "-T", "fields", "-e", "tcp.analysis.lost_segment").Output()
	if err != nil {
		t.Fatal(err)
	}
	missing := map[int]bool{}
	n := 0
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); n++ {
		if lines.Text() != "" {
			missing[n] = true
		}
	}
	return missing
}

// No byte is called lost where tshark sees no segment missing, also in captures of hosts that number the packets of all their
// connections with one counter. tshark reports a hole at the first packet after it, also without data; here it is reported at the next
// one with data, which some connections never send (unseen).
func TestTsharkLoss(t *testing.T) {
	type seen struct{ both, ours, unseen int }
	for name, want := range map[string]seen{
		"web_reordered.pcap": {16, 0, 9}, "laptop_wan_300s.pcap": {26, 0, 3}, "speedtest_server.pcap": {},
	} {
		t.Run(name, func(t *testing.T) {
			path := testutil.Trace(t, name)
			missing, flows, told := tsharkMisses(t, path), map[direction]*stream{}, map[direction]int{}
			var got seen
			eachFrame(t, path, func(n int, p *packet.Packet) {
				d := direction{p.Src, p.Dst, p.SrcPort, p.DstPort, p.Proto}
				if missing[n] {
					told[d]++
					got.unseen++
				}
				if !p.Has(packet.TCP) || p.Has(packet.Fragment) || p.Payload == 0 && p.TCPFlags&(packet.SYN|packet.FIN) == 0 {
					return
				}
				if flows[d] == nil {
					flows[d] = &stream{}
				}
				switch lost := flows[d].gap(p); {
				case lost > 0 && told[d] > 0:
					got.both, got.unseen, told[d] = got.both+1, got.unseen-1, told[d]-1
				case lost > 0:
					got.ours++
				}
			})
			if got != want {
				t.Errorf("holes %+v, want %+v", got, want)
			}
		})
	}
}
