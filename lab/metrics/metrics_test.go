package metrics

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/xdpmon/xdpmon/lab/metrics/prometheus"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// measuring are the algorithms of an instance that measures, and acting those of one that shares a link.
var (
	measuring = []string{"fridge", "lean", "reorder", "precision", "hhh", "beaucoup", "carpe", "rtt-array"}
	acting    = []string{"ahab", "conquest"}
)

// settings are those of `xdpmon check`: groups of networks, and scans that a capture of two minutes can show.
var settings = map[string]map[string]string{
	"ahab":   {"capacity": "10Mbit"},
	"fridge": {"match": "tcp-handshake", "group": "dst/24", "group6": "56", "rows": "128"},
	"hhh":    {"initial": "10"},
	"beaucoup": {"queries": "host-scan: count distinct dst by src > 200 in 10s if tcp.syn and not tcp.ack; " +
		"port-scan: count distinct dport by src+dst > 200 in 10s if tcp.syn and not tcp.ack; " +
		"ddos-victim: count distinct src by dst > 1000 in 10s; syn-flood: count distinct src+sport by dst+dport > 1000 in 10s if tcp.syn and not tcp.ack"},
}

// world is what is asked: a Prometheus that has scraped a host, from its first window to its last.
type world struct {
	*prometheus.Server
	from, end time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	testutil.NeedRoot(t)
	server, err := prometheus.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	from := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	return &world{Server: server, from: from, end: from}
}

// replay fills an exporter, part after part, each from the same time on.
func (w *world) replay(t *testing.T, host string, parts ...replayed) *exporter {
	t.Helper()
	e := newExporter(t, w.Server, host)
	e.store.Rows()
	e.store.Live()
	e.store.Attached("eth0", true)
	for _, r := range parts {
		began := time.Now()
		to := e.replay(r, w.from)
		t.Logf("%s: %v of traffic in %v", r.identity.Key(), to.Sub(w.from), time.Since(began))
		if to.After(w.end) {
			w.end = to
		}
	}
	if err := e.scrape(w.end); err != nil {
		t.Fatal(err)
	}
	return e
}

// detailed is a Prometheus that has scraped an exporter once, at the end, with --metrics-details: no dashboard may need what is in it alone.
func (w *world) detailed(t *testing.T, e *exporter) *world {
	t.Helper()
	d := newWorld(t)
	d.end = w.end
	e.server = d.Server
	e.store.Details(true)
	if err := e.scrape(d.end); err != nil {
		t.Fatal(err)
	}
	return d
}

// identities of the parts of a host.
var (
	uplink = report.Identity{Instance: "uplink", Interfaces: []string{"eth0"}}
	shaped = report.Identity{Instance: "shaped", Interfaces: []string{"eth1"}}
	pod    = report.Identity{Instance: "pods", Each: "cali1", Interfaces: []string{"cali1"}, Guest: report.Guest{Kind: known.GuestPod, Name: "6a1f0c9e-8d3b-4a52-9c1e-2f7d5b3a9e10"}}
)

func guest(iface, domain string) report.Identity {
	return report.Identity{Instance: "tenants", Each: iface, Interfaces: []string{iface}, Guest: report.Guest{Kind: known.GuestDomain, Name: domain}}
}

// quiet is traffic of a model in which nothing is wrong.
func quiet(t *testing.T, seed uint64, carrier traffic.Carrier) capture.Source {
	t.Helper()
	m, err := traffic.NewISP(traffic.ISPOptions{Packets: 6_000, Duration: time.Minute, Answered: .9, Requests: .5, Seed: seed, Carrier: carrier})
	if err != nil {
		t.Fatal(err)
	}
	return traffic.Frames(m)
}

// scan is a host that tries 300 ports of another one, five seconds after traffic of its own.
func scan() capture.Source {
	var packets []packet.Packet
	for n := range 600 {
		p := traffic.SYN(traffic.Start+int64(n)*int64(20*time.Millisecond), 1, false)
		if n >= 300 {
			p = traffic.SYN(traffic.Start+int64(6*time.Second)+int64(n)*int64(time.Millisecond), 2, false)
			p.DstPort = uint16(n)
		}
		packets = append(packets, p)
	}
	return traffic.Frames(traffic.InTime(packets))
}

func captured(t *testing.T, name string) capture.Source {
	t.Helper()
	source, err := capture.OpenAll([]string{testutil.Trace(t, name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return capture.Concat(source...)
}

// ask is a query that has to have an answer.
func (w *world) ask(t *testing.T, expr string, at time.Time) promql.Vector {
	t.Helper()
	v, err := w.Query(context.Background(), expr, at)
	if err != nil {
		t.Error(err)
	}
	return v
}

// host is a host with an uplink, two guests and a link that is shared. Without the shared captures its traffic is the model's alone.
func (w *world) host(t *testing.T) *exporter {
	t.Helper()
	parts := []replayed{
		{identity: shaped, algorithms: acting, set: settings, window: 20 * time.Second, source: quiet(t, 1, traffic.Data)},
		{identity: guest("vnet0", "web-1"), algorithms: measuring, set: settings, window: 20 * time.Second, source: quiet(t, 2, traffic.Data)},
	}
	parts = append(parts, replayed{identity: pod, algorithms: []string{"fridge"}, set: settings, window: 20 * time.Second, source: quiet(t, 5, traffic.Handshake)})
	if hasTraces(t) {
		parts = append(parts,
			replayed{identity: guest("vnet1", "db-1"), algorithms: measuring, set: settings, window: 20 * time.Second, source: captured(t, "web_reordered.pcap")},
			replayed{identity: uplink, algorithms: []string{"fridge", "beaucoup"}, set: settings, window: 5 * time.Second, source: captured(t, "composite_120s.pcap")})
	} else {
		parts = append(parts, replayed{identity: uplink, algorithms: []string{"fridge", "beaucoup"}, set: settings, window: 5 * time.Second, source: scan()})
	}
	e := w.replay(t, "host1:9400", parts...)
	// What kube-state-metrics has of the pod.
	app := w.Storage().Appender(context.Background())
	_, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "kube_pod_info", "namespace", "shop", "pod", "cart-0", "uid", pod.Guest.Name), w.end.UnixMilli(), 1)
	if err := errors.Join(err, app.Commit()); err != nil {
		t.Fatal(err)
	}
	return e
}
