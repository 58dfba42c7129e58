package netnstest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/builder"
)

// Port is where floods go to.
const Port = 9999

// Flood is traffic of which every packet is counted where it leaves.
type Flood struct {
	Interface, Direction string // of the host, where all packets pass
	Send                 func(stop *atomic.Bool) (sent uint64)
}

// pace sends until stop, at most rate packets a second (0: no limit). More returns how many the next call has sent.
func pace(rate int, stop *atomic.Bool, more func() (uint64, error)) (sent uint64, err error) {
	began := time.Now()
	for !stop.Load() {
		n, err := more()
		if sent += n; err != nil {
			return sent, err
		}
		if rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(sent) / float64(rate) * 1e9))))
		}
	}
	return sent, nil
}

// Datagrams go from host A to an address of B's, where a socket reads them until the test ends.
func Datagrams(tb testing.TB, network *netns.Topology, address netip.Addr, rate int) Flood {
	tb.Helper()
	to := netip.AddrPortFrom(address, Port).String()
	listener, err := network.B.ListenPacket(tb.Context(), "udp4", to)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { listener.Close() })
	conn, err := network.A.Dial(context.Background(), "udp4", to)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	batch := make([]ipv4.Message, 64) // one by one, a system call costs more than a datagram
	for i := range batch {
		batch[i].Buffers = [][]byte{[]byte("datagram")}
	}
	packets := ipv4.NewPacketConn(conn.(net.PacketConn))
	return Flood{network.A.Interface, "egress", func(stop *atomic.Bool) uint64 {
		sent, err := pace(rate, stop, func() (uint64, error) {
			n, err := packets.WriteBatch(batch, 0)
			if errors.Is(err, unix.ENOBUFS) { // none of this call has left
				return 0, nil
			}
			return uint64(max(n, 0)), err
		})
		if err != nil {
			tb.Error(err)
		}
		return sent
	}}
}

// Frames arrive on the loopback of a host as from a card's ring: the kernel makes them (BPF_PROG_TEST_RUN with live frames), several
// hundred thousand a second and core.
func Frames(tb testing.TB, host *netns.Host, rate int) Flood {
	tb.Helper()
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { counter.Close() })
	// A call that a signal interrupts is repeated from the start: the program counts.
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMapValue(asm.R1, counter.FD(), 0), asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, 2), asm.Return(), // XDP_PASS
	}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { program.Close() })
	frame := builder.MustBuild(&builder.Spec{DstMAC: [6]byte{2, 0, 0, 0, 0, 1}, // another host's: no host answers
		IP:  builder.IP{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")},
		UDP: &builder.UDP{SrcPort: 1, DstPort: Port}, Payload: []byte("datagram")})
	run := ebpf.RunOptions{Data: frame.Data, Repeat: 50_000, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES}
	return Flood{"lo", "ingress", func(stop *atomic.Bool) uint64 {
		_, err := pace(rate, stop, func() (uint64, error) {
			var before, after uint64
			if err := counter.Lookup(uint32(0), &before); err != nil {
				return 0, err
			}
			err := host.Run(func() error { _, err := program.Run(&run); return err })
			if err == nil {
				err = counter.Lookup(uint32(0), &after)
			}
			return after - before, err
		})
		if err != nil {
			tb.Error(err)
		}
		var sent uint64
		if err := counter.Lookup(uint32(0), &sent); err != nil {
			tb.Error(err)
		}
		return sent
	}}
}
