package top

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

// epoch is the start of the tests' windows; windows is their initial number.
var epoch = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

const (
	second  = int64(time.Second)
	windows = 40
)

// hostile is a malicious name of a flow, a guest or a host: it clears a screen, reverses text, combines and is wide.
const hostile = "\x1b[2J\x1b[31mred\u202eevil\u0301 \u05d0\u05d1 界界\r\n"

func at(n int) report.Window {
	return report.Window{Start: int64(n) * 10 * second, End: int64(n+1) * 10 * second, Number: n}
}

func wave(n int, period float64) float64 { return 1 + .5*math.Sin(2*math.Pi*float64(n)/period) }

func quantile(name string, q, v float64) report.Quantile {
	return report.Quantile{Name: name, Q: q, Value: v, Low: .96 * v, High: 1.05 * v, Defined: true}
}

func distribution(name, title string, n, median float64) report.Distribution {
	return report.Distribution{Name: name, Title: title, Unit: report.Nanosecond, Count: n, CountErr: n / 50, Mean: 1.2 * median,
		Quantiles: []report.Quantile{quantile("p50", .5, median), quantile("p95", .95, 4*median), quantile("p99", .99, 9*median)},
		Buckets:   []report.Bucket{{Upper: median / 4}, {Upper: median / 2, Cumulative: n / 8}, {Upper: median, Cumulative: n / 2}, {Upper: 4 * median, Cumulative: .95 * n}, {Upper: 12 * median, Cumulative: n}}}
}

// delays are of an instance with flows and prefixes.
func delays(instance, iface string, n int, rate, median float64) report.Line {
	var flows, prefixes [][]any
	for i := range 30 {
		src := fmt.Sprintf("10.0.%d.%d", i/8, 10+i)
		if i == 2 {
			src = hostile
		}
		flows = append(flows, []any{src, "192.0.2.7", int64(443), rate * 10 / float64(i+2), rate * 8000 / float64(i+2), rate * 7800 / float64(i+2), rate * 8300 / float64(i+2)})
	}
	for i, p := range []string{"10.0.0.0/8", "10.0.1.0/24", "10.0.1.7/32", "10.0.3.0/24", "192.0.2.0/24", "2001:db8::/32"} {
		prefixes = append(prefixes, []any{p, .4 / float64(i+1)})
	}
	return report.Line{Algorithm: "delays", Identity: report.Identity{Instance: instance, Interfaces: []string{iface}}, Window: at(n),
		Packets: report.Packets{Seen: uint64(10 * rate), Parsed: uint64(10 * rate), Used: uint64(4 * rate), Bytes: uint64(8000 * rate)},
		Memory:  report.Memory{RegisterBytes: 1 << 17, KernelBytes: 1 << 18}, Lost: map[string]uint64{"evicted": 12, "late": 0},
		Report: report.Body{Notes: []string{"a table of 256 entries is small for this rate"}, Overview: report.Overview{Lost: "gaps", Back: "back", Among: "examined"},
			Values: []report.Value{{Name: "match_rate", Value: .983, Low: .979, High: .987, Unit: report.Ratio, Answer: true, Help: "answered share of the requests"},
				{Name: "gaps", Value: uint64(37), Unit: report.Segments, Help: "holes"}, {Name: "back", Value: uint64(7), Unit: report.Segments}, {Name: "examined", Value: uint64(10000), Unit: report.Segments}},
			Distributions: []report.Distribution{distribution("delay_ns", "delay from SYN to SYN-ACK", 4*rate, median), distribution("ack_delay_ns", "delay from SYN-ACK to ACK", 3*rate, median/3)},
			Tables: []report.Table{{Name: "flows", Title: "largest flows", Columns: []report.Column{{Name: "src", Label: true, Help: "source address"}, {Name: "dst", Label: true}, {Name: "dport", Label: true},
				{Name: "packets", Unit: report.PacketUnit, Rate: true}, {Name: "bytes", Unit: report.Bytes, Rate: true, Low: "bytes_low", High: "bytes_high", Help: "bytes on the wire"}, {Name: "bytes_low", Unit: report.Bytes}, {Name: "bytes_high", Unit: report.Bytes}}, Rows: flows},
				{Name: "prefixes", Title: "heavy prefixes", Columns: []report.Column{{Name: "prefix", Label: true}, {Name: "share", Unit: report.Ratio}}, Rows: prefixes}}}}
}

// queues are of an instance whose queue is watched.
func queues(instance, iface string, n int) report.Line {
	return report.Line{Algorithm: "queues", Identity: report.Identity{Instance: instance, Interfaces: []string{iface}}, Window: at(n),
		Packets: report.Packets{Seen: 4000, Parsed: 4000, Used: 4000, Bytes: 4_000_000, Queue: &report.Queue{Carried: 4000, Dropped: 20, Sent: 3980}},
		Lost:    map[string]uint64{"reports": 0},
		Report: report.Body{Overview: report.Overview{Queue: "peak_delay_ns"}, Values: []report.Value{{Name: "peak_delay_ns", Value: int64(3_200_000 * wave(n, 9)), Unit: report.Nanosecond, Answer: true}},
			Tables: []report.Table{{Name: "bursts", Columns: []report.Column{{Name: "at", Label: true}, {Name: "length_ns", Unit: report.Nanosecond}, {Name: "culprit"}},
				Rows: [][]any{{"03:06:31.123456", int64(41_000_000), "10.0.0.9:5001"}}},
				{Name: "slices", Settings: true, Columns: []report.Column{{Name: "slice", Label: true}, {Name: "used", Unit: report.BitRate, History: true, Help: "bits a second that passed"}}, Rows: [][]any{{"gold", 3e6 * wave(n, 14)}, {"best effort", 1e6}}}}}}
}

// rig is an API with what it has measured.
type rig struct {
	*api.API
	hub    feed.Hub
	target client.Target

	mu       sync.Mutex
	findings []finding.Finding
	n        int
}

func (r *rig) open() []finding.Finding { r.mu.Lock(); defer r.mu.Unlock(); return r.findings }

// found makes these the active findings.
func (r *rig) found(list []finding.Finding) { r.mu.Lock(); defer r.mu.Unlock(); r.findings = list }

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return epoch.Add(time.Duration(r.n) * 10 * time.Second)
}

func begin(t *testing.T) *rig {
	t.Helper()
	r := &rig{}
	r.API = api.New(api.Options{Hub: &r.hub, Clock: func() report.Clock { return report.Clock{UnixOffsetNS: epoch.UnixNano()} }, Findings: r.open,
		Now: r.now, Health: func() (any, bool) { return map[string]any{"status": "ok", "attachments": 3}, false }})
	for _, name := range []string{"uplink", "tenant-3", "backbone"} {
		r.Start(report.Run{Version: "0.1.0", Command: "agent", Instance: name, WindowNS: 10 * second, Algorithms: []report.RunAlgorithm{{Name: "delays", Params: map[string]any{"fridges": "256@1"}}}})
	}
	for range windows {
		r.close()
	}
	target, end := client.Within("/run/xdpmon/agent.sock", r.Handler())
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	r.target = target
	return r
}

// close closes a window of everything.
func (r *rig) close() {
	for _, l := range []report.Line{delays("uplink", "eth0", r.n, 12_000*wave(r.n, 20), 21e6*wave(r.n, 30)), queues("uplink", "eth0", r.n), delays("tenant-3", "vnet3", r.n, 240*wave(r.n, 7), 2.1e6),
		queues("backbone", "eth1", r.n)} {
		r.Add(l)
		r.hub.Publish(context.Background(), feed.Event{Line: &l})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
}

func ms(n float64) float64 { return n * 1e6 }

// wrong are two findings.
func wrong() []finding.Finding {
	since := epoch.Add(5 * time.Minute).UnixNano()
	return []finding.Finding{
		{ID: "b", State: finding.GoesOn, Kind: finding.QueueDelay, Severity: finding.Warning, Subject: finding.Subject{Type: finding.Queue, Name: "eth1"}, Interface: "eth1", Since: since, Windows: 3,
			Value: finding.Estimate{Value: ms(41), Low: ms(38), High: ms(44), Unit: report.Nanosecond}, Expected: finding.Expected{Estimate: finding.Estimate{Value: ms(2), Low: math.NaN(), High: math.NaN(), Unit: report.Nanosecond}, Source: finding.FromBaseline},
			What: "longest delay in the queue", Next: "see who fills it: the table culprits", Evidence: []string{"queues.peak_delay_ns"}},
		{ID: "a", State: finding.GoesOn, Kind: finding.Unanswered, Severity: finding.Critical, Subject: finding.Subject{Type: finding.Service, Name: "192.0.2.7:443"}, Interface: "eth0", Since: since, Windows: 9,
			Value: finding.Estimate{Value: .31, Low: .29, High: .33, Unit: report.Ratio}, Expected: finding.Expected{Estimate: finding.Estimate{Value: math.NaN(), Low: .9, High: math.NaN(), Unit: report.Ratio}, Source: finding.FromBound},
			What: "answered share of connections", Because: "requests leave, and no answer arrives", Next: "is the service up?", Evidence: []string{"delays.match_rate"}},
	}
}
