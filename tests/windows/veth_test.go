package windows

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
)

const port = 9999 // of the datagrams that are counted; neighbour discovery passes, too

// The same with the kernel's own calls of the program: datagrams leave through a veth while banks are flipped.
func TestFlipsUnderRealTraffic(t *testing.T) {
	testutil.NeedRoot(t)
	network, err := netns.New(netns.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	inst := load(t, loader.Options{Seed: 1}, witnessObject(t, "witness", witness.Options{Port: port}))
	attachEgress(t, inst, network.A)
	stop, sent := make(chan struct{}), make(chan uint64)
	go send(t, network, stop, sent)
	var counted witness.Count
	flips := underLoad(t, 1500*time.Millisecond, func() { counted.Add(closeWindow(t, inst)) })
	close(stop)
	n := <-sent
	counted.Add(closeWindow(t, inst))
	counted.Add(closeWindow(t, inst))
	t.Logf("%d datagrams, %d flips", n, flips)
	if n < 1000 || flips < 5 {
		t.Errorf("%d datagrams, %d flips: that proves nothing", n, flips)
	}
	if counted.Port != n {
		t.Errorf("%d datagrams counted over all windows, %d were sent (%+d)", counted.Port, n, int64(counted.Port-n))
	}
	if counted.Tally != counted.Packets || counted.Shared != counted.Packets {
		t.Errorf("counters %d, tally %d, shared register %d packets", counted.Packets, counted.Tally, counted.Shared)
	}
}

func attachEgress(t *testing.T, inst *loader.Instance, host *netns.Host) {
	t.Helper()
	entry, err := inst.Entry(loader.EntryConfig{Kind: loader.TC, IfIndex: host.Index, Egress: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { entry.Close() })
	err = host.Run(func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: host.Index, Program: entry, Attach: ebpf.AttachTCXEgress})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if err != nil {
		testutil.Skip(t, "attach to TCX (Linux 6.6): %v", err)
	}
}

// send datagrams until stop is closed, then return their number.
func send(t *testing.T, network *netns.Topology, stop <-chan struct{}, sent chan<- uint64) {
	n := uint64(0)
	defer func() { sent <- n }()
	conn, err := network.A.Dial(context.Background(), "udp", net.JoinHostPort(network.B.IPv4.String(), "9999"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for payload := make([]byte, 100); ; {
		select {
		case <-stop:
			return
		default:
		}
		// The port is closed: the refusal of an earlier datagram is reported instead of sending this one.
		if _, err := conn.Write(payload); err == nil {
			n++
		}
	}
}

func closeWindow(t *testing.T, inst *loader.Instance) witness.Count {
	t.Helper()
	bank, err := inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	set, err := inst.Set("witness")
	if err != nil {
		t.Fatal(err)
	}
	c, err := witness.Read(set, bank)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
