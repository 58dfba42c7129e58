package verdict

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/status"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/verdict/enforcer"
)

// Real TCP with segmentation offload: what the sender's hook marks arrives as marked at the receiver's kernel, and every byte
// arrives unchanged. A wrong checksum would be dropped and counted there.
func TestMarkedTCP(t *testing.T) {
	for _, c := range []struct {
		hook      attach.Hook
		direction attach.Direction
		v6        bool
	}{{attach.HookTC, attach.Egress, false}, {attach.HookTC, attach.Egress, true}, {attach.HookTC, attach.Ingress, true}, {attach.HookXDP, attach.Ingress, false}} {
		t.Run(fmt.Sprint(c.hook, c.direction, c.v6), func(t *testing.T) {
			network := netnstest.New(t, netns.Options{})
			for _, h := range []*netns.Host{network.A, network.B} {
				write(t, h, "/proc/sys/net/ipv4/tcp_ecn", "1")
			}
			inst := load(t, loader.Options{}, object(t, "marker", enforcer.Mark, tcp))
			at := network.A
			if c.direction == attach.Ingress {
				at = network.B
			}
			attached(t, inst, at, c.hook, c.direction)
			to := network.B.IPv4
			if c.v6 {
				to = network.B.IPv6
			}
			before := counters(t, network.B)
			transfer(t, network, to, 4<<20)
			after, did := counters(t, network.B), verdicts(t, inst)
			if n := after["InCEPkts"] - before["InCEPkts"]; n < 100 || did.Marked == 0 {
				t.Errorf("%d packets arrived as marked, %+v", n, did)
			}
			if n := after["InCsumErrors"] - before["InCsumErrors"]; n != 0 {
				t.Errorf("%d packets had a wrong checksum", n)
			}
			if did.Dropped != 0 {
				t.Errorf("dropped: %+v", did)
			}
		})
	}
}

// Condemned datagrams do not arrive, at either hook; others do, and nothing is left after the instance.
func TestDropsEnd(t *testing.T) {
	for _, hook := range []attach.Hook{attach.HookXDP, attach.HookTC} {
		network := netnstest.New(t, netns.Options{})
		inst := load(t, loader.Options{}, object(t, "dropper", enforcer.Drop, udp))
		a := attached(t, inst, network.B, hook, attach.Ingress)
		conn, err := network.B.ListenPacket(t.Context(), "udp", net.JoinHostPort(network.B.IPv4.String(), "5000"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		sender, err := network.A.Dial(t.Context(), "udp", conn.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer sender.Close()
		for range 50 {
			if _, err := sender.Write([]byte("condemned")); err != nil {
				t.Fatal(err)
			}
		}
		transfer(t, network, network.B.IPv4, 1<<16)
		if v := shown(t); v.Dropped != 50 || v.DroppedBytes == 0 || v.Marked != 0 {
			t.Errorf("%s: status shows %+v, want 50 drops", hook, v)
		}
		if v := verdicts(t, inst); v.Dropped != 50 {
			t.Errorf("%s: %+v, want 50 drops", hook, v)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := sender.Write([]byte("free")); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, _, err := conn.ReadFrom(buf); err != nil || string(buf[:n]) != "free" {
			t.Errorf("%s: %q arrived first, %v", hook, buf[:n], err)
		}
	}
}

// shown is the status of this process' enforcer.
func shown(t *testing.T) status.Verdicts {
	t.Helper()
	list, err := status.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.Verdicts != nil && slices.Contains(a.PIDs, os.Getpid()) {
			return *a.Verdicts
		}
	}
	t.Fatalf("status shows no enforcer: %+v", list)
	return status.Verdicts{}
}

func attached(t *testing.T, inst *loader.Instance, host *netns.Host, hook attach.Hook, direction attach.Direction) *attach.Attachment {
	t.Helper()
	var a *attach.Attachment
	err := host.Run(func() (err error) {
		a, err = attach.Attach(inst, host.Interface, attach.Options{Hook: hook, Mode: attach.ModeNative, Direction: direction})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// transfer sends random bytes over one connection and compares what arrives.
func transfer(t *testing.T, network *netns.Topology, to netip.Addr, size int) {
	t.Helper()
	sent := make([]byte, size)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	listener, err := network.B.Listen(t.Context(), "tcp", net.JoinHostPort(to.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	errs := make(chan error, 1)
	go func() { errs <- push(t.Context(), network.A, listener.Addr().String(), sent) }()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes arrived of %d, equal %v, %v", len(got), len(sent), bytes.Equal(got, sent), err)
	}
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

func push(ctx context.Context, from *netns.Host, address string, data []byte) error {
	conn, err := from.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write(data)
	return err
}

func write(t *testing.T, host *netns.Host, file, text string) {
	t.Helper()
	if err := host.Run(func() error { return os.WriteFile(file, []byte(text), 0o644) }); err != nil {
		t.Fatal(err)
	}
}

// counters are the kernel's own of a namespace: IpExt, Tcp and TcpExt, by name.
func counters(t *testing.T, host *netns.Host) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, file := range []string{"netstat", "snmp", "snmp6"} {
		text := read(t, host, "/proc/thread-self/net/"+file)
		if file == "snmp6" {
			for line := range strings.Lines(text) {
				f := strings.Fields(line)
				n, _ := strconv.ParseUint(f[1], 10, 64)
				all[strings.Replace(f[0], "Ip6InCEPkts", "InCEPkts", 1)] += n
			}
			continue
		}
		lines := strings.Split(text, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
			for k := range names {
				n, _ := strconv.ParseUint(values[k], 10, 64)
				all[names[k]] += n
			}
		}
	}
	return all
}

func read(t *testing.T, host *netns.Host, file string) (text string) {
	t.Helper()
	err := host.Run(func() error {
		b, err := os.ReadFile(file)
		text = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
