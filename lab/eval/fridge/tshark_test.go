package fridge

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// frame is tshark's analysis of a packet.
type frame struct {
	ns       int64
	stream   string
	src, dst string // address and port
	tsval    string
	tsecr    string
	asks     bool // payload, SYN or FIN
	delays   map[string]float64
}

var tsharkFields = []string{"frame.time_epoch", "tcp.stream", "ip.src", "ipv6.src", "tcp.srcport", "udp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "udp.dstport",
	"tcp.analysis.ack_rtt", "dns.time", "tcp.time_relative", "tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr", "tcp.len", "tcp.flags.syn", "tcp.flags.fin"}

// framesOf a capture, by time.
func framesOf(t *testing.T, path string) (map[int64][]frame, []frame) {
	t.Helper()
	args := []string{"-n", "-r", path, "-T", "fields", "-E", "occurrence=l"}
	for _, f := range tsharkFields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command(testutil.NeedTool(t, "tshark"), args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	at, all := map[int64][]frame{}, []frame{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		v := strings.Split(lines.Text(), "\t")
		seconds, fraction, _ := strings.Cut(v[0], ".")
		ns, err := strconv.ParseInt(seconds+fraction, 10, 64)
		if err != nil || len(fraction) != 9 {
			t.Fatalf("time %q", v[0])
		}
		f := frame{ns: ns, stream: v[1], src: cmp.Or(v[2], v[3]) + " " + cmp.Or(v[4], v[5]), dst: cmp.Or(v[6], v[7]) + " " + cmp.Or(v[8], v[9]), tsval: v[13], tsecr: v[14],
			asks: v[15] != "0" || on(v[16]) || on(v[17]), delays: map[string]float64{}}
		for rule, text := range map[string]string{"tcp-handshake": v[10], "tcp-data": v[10], "dns": v[11], "tcp-duration": v[12]} {
			if s, err := strconv.ParseFloat(text, 64); err == nil {
				f.delays[rule] = s * 1e9
			}
		}
		at[ns], all = append(at[ns], f), append(all, f)
	}
	return at, all
}

func on(flag string) bool { return flag == "1" || flag == "True" }

// echoed is the delay of a frame that echoes a TSval: since the first of its stream that had it.
func echoed(all []frame, f frame) float64 {
	for _, q := range all {
		if q.stream == f.stream && q.src == f.dst && q.tsval == f.tsecr && q.asks {
			return float64(f.ns - q.ns)
		}
	}
	return math.NaN()
}

// replayed is the report of a capture.
func replayed(t *testing.T, path, match string) report.Line {
	t.Helper()
	retransmit := "keep" // as tshark, which times ACKs of data from the last try
	if match == "tcp-data" {
		retransmit = "restart"
	}
	d, err := algo.Lookup("fridge")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, map[string]string{"match": match, "samples": "32", "retransmit": retransmit})
	if err != nil {
		t.Fatal(err)
	}
	var line report.Line
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 1, Emit: func(l report.Line) error { line = l; return nil }, Notice: t.Logf}
	if err := session.Replay(context.Background(), cfg, []string{path}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return line
}

// tally of named responses.
type tally struct{ named, confirmed, untimed int }

func (n tally) String() string { return fmt.Sprintf("%d of %d", n.confirmed, n.named) }

// Of the responses that the report names at p99, tshark has all with the same delay. Of the slowest it has those that it times, but for a few whose
// request it takes to be another packet. go test ./eval/fridge -run Tshark -v prints all of these.
func TestTsharkConfirms(t *testing.T) {
	testutil.NeedRoot(t)
	for _, trace := range []string{"web_reordered", "laptop_wan_300s", "speedtest_server", "composite_120s"} {
		path := testutil.Trace(t, trace+".pcap")
		at, all := framesOf(t, path)
		for _, match := range []string{"tcp-handshake", "tcp-data", "tcp-timestamp", "dns", "tcp-duration"} {
			l := replayed(t, path, match)
			p99, slowest := tally{}, tally{}
			count := func(n *tally, row []any) {
				n.named++
				src, dst, delay, time := fmt.Sprint(row[0], " ", row[1]), fmt.Sprint(row[2], " ", row[3]), float64(row[5].(int64)), row[9].(int64)
				seen, timed := []string{}, false
				for _, f := range at[time] {
					if one, other := f.src == dst && f.dst == src, f.src == src && f.dst == dst; !one && !(other && match == "tcp-duration") {
						continue
					}
					got, ok := f.delays[match]
					if match == "tcp-timestamp" {
						got, ok = echoed(all, f), true
					}
					if timed = timed || ok; ok {
						seen = append(seen, fmt.Sprint(int64(got)))
					}
					if ok && math.Abs(got-delay) <= 65536 && (match == "tcp-duration" || math.Abs(got-delay) <= 1000) {
						n.confirmed++
						return
					}
				}
				if !timed {
					n.untimed++
				}
				t.Logf("%s %s: %s -> %s at %d: %.0f ns, tshark %v", trace, match, src, dst, time, delay, seen)
			}
			near, _ := report.Find(l.Report.Tables, "percentile_samples")
			for _, row := range near.Rows {
				if row[0] == "p99" {
					count(&p99, row[1:])
				}
			}
			list, _ := report.Find(l.Report.Tables, "samples")
			for _, row := range list.Rows {
				count(&slowest, row)
			}
			delays, _ := report.Find(l.Report.Distributions, "delay_ns")
			for _, q := range delays.Quantiles {
				if q.Name != "p99" || slowest.named == 0 {
					continue
				}
				t.Logf("| %s | %s | %.4g ms | %v | %v | %d |", trace, match, q.Value/1e6, p99, slowest, slowest.untimed)
				if q.Defined && p99.named == 0 || p99.confirmed < p99.named {
					t.Errorf("%s %s: of p99 %v are confirmed", trace, match, p99)
				}
				if other := slowest.named - slowest.confirmed - slowest.untimed; other > slowest.named/4 {
					t.Errorf("%s %s: tshark has another delay of %d of the slowest %d", trace, match, other, slowest.named)
				}
			}
		}
	}
}
