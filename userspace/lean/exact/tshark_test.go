package exact

import (
	"bufio"
	"errors"
	"io"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// analysis is tshark's result for a packet.
type analysis struct {
	old bool    // retransmission (of any kind) or out of order
	rtt float64 // s; NaN: none
}

// tsharkSays analyses a capture, by frame.
func tsharkSays(t *testing.T, path string) (all []analysis) {
	t.Helper()
	args := []string{"-n", "-r", path, "-T", "fields", "-E", "occurrence=f", "-e", "tcp.analysis.ack_rtt"}
	for _, flag := range []string{"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"} {
		args = append(args, "-e", "tcp.analysis."+flag)
	}
	out, err := exec.Command(testutil.NeedTool(t, "tshark"), args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		rtt, flags, _ := strings.Cut(lines.Text(), "\t")
		a := analysis{old: strings.Trim(flags, "\t") != "", rtt: math.NaN()}
		if v, err := strconv.ParseFloat(rtt, 64); err == nil {
			a.rtt = v
		}
		all = append(all, a)
	}
	return all
}

func eachFrame(t *testing.T, path string, f func(n int, p *packet.Packet)) {
	t.Helper()
	src, err := capture.OpenAll([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := capture.Concat(src...)
	defer all.Close()
	var d packet.Decoder
	for n := 0; ; n++ {
		var frame packet.Frame
		if err := all.Next(&frame); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		var p packet.Packet
		d.Decode(&frame, packet.DecodeOptions{}, &p)
		f(n, &p)
	}
}

// Where tshark's definitions are ours the results are the same, packet for packet.
//
// What is below the highest end so far is a retransmission or out of order to tshark, always, and only such packets are late
// or again here. (How it divides the two differs: it asks for the time since the highest number for both.) tshark marks
// further segments that the other end has acknowledged although they were not captured; those are new here: unseen.
//
// The delay of an ACK is the same to the microsecond where both have one, unless the segment was sent twice: for two of them
// tshark starts its clock again, and one waited for 13 s, which is too long here, so that its repetition is timed. tshark also
// times SYN-ACKs and ACKs that carry data.
func TestTshark(t *testing.T) {
	for name, want := range map[string]struct{ old, unseen, delays, restarted int }{
		"web_reordered.pcap":    {92, 20, 1173, 3},
		"laptop_wan_300s.pcap":  {171, 0, 1109, 0},
		"speedtest_server.pcap": {39, 0, 7068, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := testutil.Trace(t, name)
			says, flows := tsharkSays(t, path), map[direction]*order{}
			delays := delay.NewTracker(delay.Rules{Kind: delay.TCPData, Longest: longestDelay})
			got := want
			got.old, got.unseen, got.delays, got.restarted = 0, 0, 0, 0
			eachFrame(t, path, func(n int, p *packet.Packet) {
				if e := delays.Packet(p); e.Outcome == delay.Answered && !math.IsNaN(says[n].rtt) {
					got.delays++
					if math.Abs(float64(e.Delay)/1e9-says[n].rtt) > 1e-6 {
						got.restarted++
					}
				}
				d := direction{p.Src, p.Dst, p.SrcPort, p.DstPort, p.Proto}
				if flows[d] == nil {
					flows[d] = &order{}
				}
				o := flows[d]
				known, highest := o.known, o.highest
				v := o.packet(p)
				if !v.data || p.Payload == 1 {
					return
				}
				old := known && below(p.Seq, highest)
				switch {
				case old && !says[n].old:
					t.Errorf("frame %d is below the highest number, not so for tshark", n+1)
				case !old && (v.late || v.again):
					t.Errorf("frame %d is above the highest number and yet %+v", n+1, v)
				case old:
					got.old++
				case says[n].old:
					got.unseen++
				}
			})
			if got != want {
				t.Errorf("old, unseen, delays, restarted: %+v, want %+v", got, want)
			}
		})
	}
}
