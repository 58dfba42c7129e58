package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// scrape reads the agent's metrics over its socket.
func (r *running) scrape() string {
	r.t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.file("socket"))
	}}}
	answer, err := client.Get("http://localhost/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// series is the value of a series whose name and labels match; 0 if there is none.
func series(t *testing.T, metrics, pattern string) uint64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + pattern + ` (\S+)$`).FindStringSubmatch(metrics)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(n)
}

// What a limit of ours drops, the kernel reports as dropped at TC ingress: both counts are equal.
func TestKernelDrops(t *testing.T) {
	network := quietNetwork(t)
	flood := datagrams(t, network)
	p := newPlace(t, network.B)
	rule := "window: 200ms\nkernel_drops: %t\ninstances:\n  - name: a\n    interfaces: [xdpmon-*]\n    hook: tc\n    direction: ingress\n    algorithms: {ahab: {capacity: 1Mbit, user: source}}\n"
	p.write(fmt.Sprintf(rule, true))
	r := p.start(binary)
	eventually(t, "attaching", func() bool { return len(r.attached("a")) > 0 })
	end := begin(t, flood)
	eventually(t, "drops", func() bool { return series(t, r.scrape(), `xdpmon_dropped_packets_total\{.*\}`) > 1000 })
	end()
	var ours, kernels uint64
	eventually(t, "both counts", func() bool {
		text := r.scrape()
		ours, kernels = series(t, text, `xdpmon_dropped_packets_total\{.*\}`), series(t, text, `xdpmon_kernel_dropped_packets_total\{.*reason="TC_INGRESS".*\}`)
		return ours == kernels
	})
	p.write(fmt.Sprintf(rule, false))
	r.hangup()
	if n := series(t, r.scrape(), `xdpmon_kernel_dropped_packets_total\{.*\}`); n != 0 {
		t.Errorf("no longer counted, and %d are served", n)
	}
	r.stop()
}
