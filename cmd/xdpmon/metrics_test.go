package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	lint "github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// TestMetricsOfEveryAlgorithm: whatever an algorithm reports of real packets, all together make one scrape that
// Prometheus accepts and its linter has nothing to say about.
func TestMetricsOfEveryAlgorithm(t *testing.T) {
	testutil.NeedRoot(t)
	store := prom.NewStore(time.Now)
	capture := string(handshakes(t, 300))
	for _, d := range algo.All() {
		if strings.HasPrefix(d.Name, "test-") {
			continue
		}
		values, err := algo.NewValues(d.Name, d.Params, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Window: 100 * time.Millisecond,
			Emit: func(l report.Line) error { store.Add(l); return nil }, Notice: t.Logf}
		if err := session.Replay(context.Background(), cfg, []string{"-"}, io.NopCloser(strings.NewReader(capture)), nil); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
	}
	problems, err := lint.CollectAndLint(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
