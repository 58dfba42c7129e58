package precision

import (
	"context"
	"math"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/attachtest"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	prec "github.com/xdpmon/xdpmon/userspace/precision"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const firstPort = 7100

// TestLiveCores: flows whose packets are sent, and so received, by all cores in turn. Every core has a separate entry for
// each, and the list has their sum: what was sent except what preceded each entry, which is a geometric number of mean
// initial + 1 a core and is added back in the mean.
func TestLiveCores(t *testing.T) {
	hosts := netnstest.New(t, netns.Options{})
	if runtime.NumCPU() < 2 {
		t.Skip("one core merges nothing")
	}
	sizes := []int{6000, 3000, 1500}
	attached := attachtest.Attach(t, hosts.B, prec.Name, attachtest.Options{Set: map[string]string{"initial": "10", "family": "4"}, Hook: "tc", Direction: "ingress"})
	spread(t.Context(), t, hosts, sizes)
	last := attached.End()[0].Line
	checkCores(t, last, sizes)
}

func chosen(t *testing.T, set map[string]string) session.Selected {
	t.Helper()
	d, err := algo.Lookup(prec.Name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	return session.Selected{Descriptor: d, Values: v}
}

// spread sends flow i's packets to port firstPort + i, an equal part of them on every core.
func spread(ctx context.Context, t *testing.T, hosts *netns.Topology, sizes []int) {
	conn, err := hosts.A.ListenPacket(ctx, "udp", net.JoinHostPort(hosts.A.IPv4.String(), "7000"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	cores := runtime.NumCPU()
	for cpu := range cores {
		var group sync.WaitGroup
		group.Go(func() { sendOn(t, cpu, conn, hosts, sizes, cores) })
		group.Wait()
	}
}

func sendOn(t *testing.T, cpu int, conn net.PacketConn, hosts *netns.Topology, sizes []int, cores int) {
	runtime.LockOSThread() // not given back: the thread ends with the goroutine
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Errorf("pin to core %d: %v", cpu, err)
		return
	}
	for n := range sizes[0] / cores {
		for i, size := range sizes {
			if n < size/cores {
				_, _ = conn.WriteTo([]byte("?"), &net.UDPAddr{IP: hosts.B.IPv4.AsSlice(), Port: firstPort + i}) // refused: the port is closed
			}
		}
	}
}

func checkCores(t *testing.T, l report.Line, sizes []int) {
	t.Helper()
	cores := runtime.NumCPU()
	found := map[string]float64{}
	for _, row := range l.Report.Tables[0].Rows {
		if port := row[3].(int64); row[1].(int64) == 7000 {
			found[strconv.FormatInt(port, 10)] = row[5].(float64)
		}
	}
	for i, size := range sizes {
		got := found[strconv.Itoa(firstPort+i)]
		t.Logf("flow of %d packets: %.0f", size, got)
		before := float64(size) + 11*float64(cores) - got
		if before < 0 || tail(cores, before/11) < 1e-7 {
			t.Errorf("flow of %d packets: %.0f packets preceded its entries on %d cores, want about %d", size, before, cores, 11*cores)
		}
	}
	if n := Value(l, "entries_used"); n < float64(cores*len(sizes)) {
		t.Errorf("%.0f entries are used, want one of each flow on each of %d cores", n, cores)
	}
}

// tail is the probability that the sum of n exponentials of mean 1, which a geometric number is stretched to, exceeds x.
func tail(n int, x float64) float64 {
	sum, term := 0.0, math.Exp(-x)
	for i := range n {
		sum += term
		term *= x / float64(i+1)
	}
	return sum
}
