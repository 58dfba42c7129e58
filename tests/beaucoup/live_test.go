package beaucoup

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const attacks = `port-scan: count distinct dport by src+dst > 100 in 30s if udp;
syn-flood: count distinct src+sport by dst+dport > 200 in 30s if tcp.syn and not tcp.ack`

// A port scan and a SYN flood between two namespaces cause alerts within the window, with the names of the senders.
func TestAttacksLive(t *testing.T) {
	hosts := netnstest.New(t, netns.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	found := map[string]string{}
	var mu sync.Mutex
	cfg := session.LiveConfig{Config: session.Config{Algorithms: []session.Selected{selected(t, map[string]string{"queries": attacks})},
		Window: 500 * time.Millisecond, Notice: t.Logf}, Interfaces: []string{hosts.B.Interface}, Hook: "auto", Mode: "native",
		Direction: "ingress"}
	cfg.Emit = func(l report.Line) error {
		mu.Lock()
		defer mu.Unlock()
		for _, row := range l.Report.Tables[0].Rows {
			found[row[0].(string)] = row[1].(string)
		}
		if len(found) == 2 {
			cancel()
		}
		return nil
	}
	var attack sync.WaitGroup
	cfg.Started = func([]*attach.Attachment) {
		attack.Add(1)
		go func() { defer attack.Done(); scanAndFlood(ctx, t, hosts) }()
	}
	if err := hosts.B.Run(func() error { return session.Live(ctx, cfg) }); err != nil {
		t.Fatal(err)
	}
	cancel()
	attack.Wait()
	a, b := hosts.A.IPv4.String(), hosts.B.IPv4.String()
	if want := "src=" + a + " dst=" + b; found["port-scan"] != want {
		t.Errorf("port scan: alert for %q, want %q", found["port-scan"], want)
	}
	if want := "dst=" + b + " dport=7001"; found["syn-flood"] != want {
		t.Errorf("SYN flood: alert for %q, want %q", found["syn-flood"], want)
	}
}

// scanAndFlood sends a datagram to each of 400 ports, and opens 800 connections to a closed port.
func scanAndFlood(ctx context.Context, t *testing.T, hosts *netns.Topology) {
	conn, err := hosts.A.ListenPacket(ctx, "udp", net.JoinHostPort(hosts.A.IPv4.String(), "0"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for port := 1000; port < 1400; port++ {
		_, _ = conn.WriteTo([]byte("?"), &net.UDPAddr{IP: hosts.B.IPv4.AsSlice(), Port: port}) // refused is what a scan expects
	}
	for i := 0; i < 800 && ctx.Err() == nil; i++ {
		if c, err := hosts.A.Dial(ctx, "tcp", net.JoinHostPort(hosts.B.IPv4.String(), strconv.Itoa(7001))); err == nil {
			c.Close()
		}
	}
}
