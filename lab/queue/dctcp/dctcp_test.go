package dctcp

import (
	"context"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// TestTransfer: both ends use it, and what is sent arrives.
func TestTransfer(t *testing.T) {
	testutil.NeedRoot(t)
	end, err := Register()
	if err != nil {
		if Missing(err) {
			t.Skip("this kernel has no congestion control of BPF: ", err)
		}
		t.Fatal(err)
	}
	defer func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}()
	topology := netnstest.New(t, netns.Options{})
	for _, host := range []*netns.Host{topology.A, topology.B} {
		if err := host.Run(func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(Name), 0) }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listener, err := topology.B.Listen(ctx, "tcp4", netip.AddrPortFrom(topology.B.IPv4, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan int64, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer conn.Close()
		n, _ := io.Copy(io.Discard, conn)
		got <- n
	}()
	conn, err := topology.A.Dial(ctx, "tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := topology.A.Output(ctx, "ss", "-tin"); err == nil && !strings.Contains(string(out), Name) {
		t.Errorf("the connection does not use it: %s", out)
	}
	conn.Close()
	if n := <-got; n != 4<<20 {
		t.Errorf("%d bytes arrived", n)
	}
}
