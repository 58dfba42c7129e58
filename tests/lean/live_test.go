package lean

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Twenty connections exchange messages at a fixed pace; the way back of three of them is bad.
const (
	connections = 20
	firstPort   = 21000
	slow        = firstPort + 4  // 40 ms more for every packet
	lossy       = firstPort + 11 // one data packet in 25 is lost
	disordered  = firstPort + 17 // one data packet in 20 arrives 2 ms late
	message     = 28_000         // bytes: twenty segments
	pace        = 150 * time.Millisecond
	liveWindow  = 8 * time.Second
)

// badWayBack is the delay of packets from the server. An hour is lost.
func badWayBack(p *packet.Packet, r *rand.Rand) time.Duration {
	u, way := r.Float64(), 2*time.Millisecond
	switch data := p.Payload > 0; {
	case p.DstPort == slow:
		return way + 40*time.Millisecond
	case p.DstPort == lossy && data && u < 0.04:
		return time.Hour
	case p.DstPort == disordered && data && u < 0.05:
		return way + 2*time.Millisecond
	}
	return way
}

// TestLive: attach names, within one window, the connection that is slow, the one that loses, and the one that reorders, each
// in the table of what it suffers from, and first. A busy machine can make another connection suffer more, so it is tried again:
// a wrong program is wrong every time.
func TestLive(t *testing.T) {
	testutil.NeedRoot(t)
	var wrong []string
	for range 4 {
		if wrong = named(t); len(wrong) == 0 {
			return
		}
		t.Log("again: ", strings.Join(wrong, "; "))
	}
	t.Error(strings.Join(wrong, "; "))
}

// named returns what was not named first in one window.
func named(t *testing.T) (wrong []string) {
	t.Helper()
	network := netnstest.New(t, netns.Options{Middle: netns.Emulator, Link: emulator.Options{Seed: 1,
		AtoB: emulator.Direction{Delay: emulator.Fixed(2 * time.Millisecond)}, BtoA: emulator.Direction{Delay: badWayBack}}})
	address := serve(t, network.B)
	run := attach(t, network)
	exchange(t, network.A, address, liveWindow)
	tables := run.firstWindow(t)
	for table, want := range map[string]liveFlow{
		"latency": {network.A.IPv4.String(), slow, network.B.IPv4.String(), address.Port()}, // of what A sends
		"loss":    {network.B.IPv4.String(), address.Port(), network.A.IPv4.String(), lossy},
		"ooo":     {network.B.IPv4.String(), address.Port(), network.A.IPv4.String(), disordered},
	} {
		list := tables[table]
		if len(list) == 0 || list[0] != want {
			wrong = append(wrong, fmt.Sprintf("%s: %v is not named first: %v", table, want, list[:min(3, len(list))]))
		}
	}
	return wrong
}

// liveFlow is a row of a table.
type liveFlow struct {
	Src   string `json:"src"`
	SPort uint16 `json:"sport"`
	Dst   string `json:"dst"`
	DPort uint16 `json:"dport"`
}

// serve answers every message with one of the same length.
func serve(t *testing.T, host *netns.Host) netip.AddrPort {
	t.Helper()
	listener, err := host.Listen(t.Context(), "tcp", netip.AddrPortFrom(host.IPv4, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			busy.Go(func() { answer(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); busy.Wait() })
	return netip.MustParseAddrPort(listener.Addr().String())
}

func answer(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, message)
	for {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return
		}
		if _, err := conn.Write(buffer); err != nil {
			return
		}
	}
}

// exchange keeps all connections busy for a time.
func exchange(t *testing.T, host *netns.Host, address netip.AddrPort, d time.Duration) {
	t.Helper()
	var busy sync.WaitGroup
	end := time.Now().Add(d)
	for n := range connections {
		dialer := &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(host.IPv4, uint16(firstPort+n)))}
		conn, err := host.DialFrom(t.Context(), dialer, "tcp", address.String())
		if err != nil {
			t.Fatal(err)
		}
		busy.Go(func() { exchangeOn(conn, end) })
	}
	busy.Wait()
}

func exchangeOn(conn net.Conn, end time.Time) {
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.SetDeadline(end.Add(time.Second))
	buffer := make([]byte, message)
	for next := time.Now(); next.Before(end); next = next.Add(pace) {
		time.Sleep(time.Until(next))
		if _, err := conn.Write(buffer); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return
		}
	}
}

// attached is an `xdpmon attach` in host A's namespace.
type attached struct {
	cmd    *exec.Cmd
	output *json.Decoder
	stderr bytes.Buffer
}

// attach returns when the programs receive packets.
func attach(t *testing.T, network *netns.Topology) *attached {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "xdpmon")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/xdpmon/xdpmon/cmd/xdpmon").CombinedOutput(); err != nil {
		t.Fatalf("build xdpmon: %v\n%s", err, out)
	}
	a := &attached{}
	a.cmd = exec.Command(binary, "attach", network.A.Interface, "--algo", "lean", "--window", (liveWindow + time.Second).String(), "--output", "json")
	a.cmd.Stderr = &a.stderr
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := network.A.Start(a.cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); _ = a.cmd.Wait() })
	a.output = json.NewDecoder(out)
	var run struct{}
	if err := a.output.Decode(&run); err != nil { // the line that describes the run
		t.Fatalf("xdpmon attach: %v\n%s", err, a.stderr.String())
	}
	return a
}

// firstWindow waits for it.
func (a *attached) firstWindow(t *testing.T) map[string][]liveFlow {
	t.Helper()
	var line struct {
		Report struct{ Latency, Loss, OOO, Retrans []liveFlow }
	}
	if err := a.output.Decode(&line); err != nil {
		t.Fatalf("xdpmon attach: %v\n%s", err, a.stderr.String())
	}
	r := line.Report
	return map[string][]liveFlow{"latency": r.Latency, "loss": r.Loss, "ooo": r.OOO, "retrans": r.Retrans}
}
