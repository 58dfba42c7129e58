package ahab

import (
	"net"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// What paces reaches the packets' times of departure: of datagrams at once each leaves after what the ceiling takes for the one in front. This kernel has no fq: a program at the hook's end reads
// what that would.
func TestDeparts(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	d, err := algo.Lookup("ahab")
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, map[string]string{"capacity": "8Mbit", "act": "pace", "horizon": "2s", "lease": "1h"})
	if err != nil {
		t.Fatal(err)
	}
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load(objects, loader.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	set, err := inst.Set("ahab")
	if err == nil {
		err = instances[0].Bind(set)
	}
	if err != nil {
		t.Fatal(err)
	}
	waits, reader := departures(t)
	err = network.A.Run(func() error {
		a, err := attach.Attach(inst, network.A.Interface, attach.Options{Hook: attach.HookTC, Direction: attach.Egress})
		if err != nil {
			return err
		}
		t.Cleanup(func() { a.Close() })
		l, err := link.AttachTCX(link.TCXOptions{Interface: network.A.Index, Program: reader, Attach: ebpf.AttachTCXEgress, Anchor: link.Tail()})
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := network.A.Dial(t.Context(), "udp", net.JoinHostPort(network.B.IPv4.String(), "5000"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const packets, bytes = 50, 1000 // on the wire: 1 ms of 8 Mbit/s each
	for range packets {
		_, _ = conn.Write(make([]byte, bytes-42)) // some answers are errors: nobody listens
	}
	var due []uint64
	for n := range uint32(packets) {
		var at uint64
		if err := waits.Lookup(n, &at); err != nil {
			t.Fatal(err)
		}
		if at != 0 {
			due = append(due, at)
		}
	}
	if len(due) < packets/5 { // those that arrive when nothing waits leave at once, and have none
		t.Fatalf("%d of %d have times of departure", len(due), packets)
	}
	for n := range due[1:] {
		if gap := due[n+1] - due[n]; gap < 1e6 {
			t.Errorf("packet %d leaves %d ns after the one in front", n+1, gap)
		}
	}
}

// departures is a program that notes the packets' times of departure (bytes 152 to 159 of struct __sk_buff) by number.
func departures(t *testing.T) (*ebpf.Map, *ebpf.Program) {
	t.Helper()
	times, err := ebpf.NewMap(&ebpf.MapSpec{Name: "times", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { times.Close() })
	count, err := ebpf.NewMap(&ebpf.MapSpec{Name: "count", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { count.Close() })
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "departures", Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R7, asm.R1, 152, asm.DWord),
		asm.JEq.Imm(asm.R7, 0, "out"),
		asm.StoreMem(asm.RFP, -16, asm.R7, asm.DWord),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, count.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R3, asm.R0, 0, asm.DWord),
		asm.StoreMem(asm.RFP, -4, asm.R3, asm.Word),
		asm.Add.Imm(asm.R3, 1),
		asm.StoreMem(asm.R0, 0, asm.R3, asm.DWord),
		asm.LoadMapPtr(asm.R1, times.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -16),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("out"),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	return times, prog
}
