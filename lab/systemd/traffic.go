package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// wire is a veth from a namespace of the sender's into the container, on which nothing is but what is sent: no IPv6, no ARP.
type wire struct {
	sender *netns.Namespace
}

// inside is the container's end.
const inside = "eth1"

func newWire(c *container) (*wire, error) {
	sender, err := netns.NewNamespace("sender")
	if err != nil {
		return nil, err
	}
	w := &wire{sender: sender}
	if out, err := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", c.leader), "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", "net.ipv6.conf.all.disable_ipv6=1").CombinedOutput(); err != nil {
		w.close()
		return nil, fmt.Errorf("switch IPv6 off in the container: %w: %s", err, out)
	}
	for _, line := range []string{
		"sysctl -qw net.ipv6.conf.default.disable_ipv6=1",
		fmt.Sprintf("ip link add out0 address 02:00:00:00:00:01 type veth peer name %s address 02:00:00:00:00:02 netns %d", inside, c.leader),
		"ip addr add 10.99.0.1/24 dev out0", "ip link set out0 up",
		"ip neigh add 10.99.0.9 lladdr 02:00:00:00:00:02 dev out0 nud permanent",
	} {
		if err := sender.Command("%s", line); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func (w *wire) close() { _ = w.sender.Close() }

// load is datagrams that are sent until end is called, which has their number; nobody has their destination, so that nothing is answered.
func (w *wire) load(ctx context.Context, perSecond int) (end func() (sent uint64), err error) {
	conn, err := w.sender.Dial(ctx, "udp", "10.99.0.9:9")
	if err != nil {
		return nil, err
	}
	var stop atomic.Bool
	done := make(chan uint64)
	go func() {
		defer conn.Close()
		payload := make([]byte, 200)
		const each = 5 * time.Millisecond
		var n uint64
		for began := time.Now(); !stop.Load(); time.Sleep(each) {
			// What a pause has missed is not sent at once: the receiver's backlog is bounded.
			for range min(perSecond*int(each/time.Millisecond)/1000, 200) {
				if _, err := conn.Write(payload); err == nil {
					n++
				} else {
					fmt.Fprintf(os.Stderr, "send after %v: %v\n", time.Since(began), err)
				}
			}
		}
		done <- n
	}()
	return func() uint64 { stop.Store(true); return <-done }, nil
}
