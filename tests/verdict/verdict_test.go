package verdict

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/verdict/enforcer"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const (
	tcp = 6
	udp = 17
)

func object(t *testing.T, name string, verdict, proto uint8) loader.Object {
	t.Helper()
	o, err := enforcer.Object(name, verdict, proto)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func watcher(t *testing.T, name string) loader.Object {
	t.Helper()
	o, err := witness.Object(name, witness.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func load(t *testing.T, opts loader.Options, objects ...loader.Object) *loader.Instance {
	t.Helper()
	testutil.NeedRoot(t)
	opts.Seed = 1
	inst, err := loader.Load(objects, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inst.Close() })
	return inst
}

// hooks are the entry programs of an instance, called with packets of ours.
var hooks = []loader.Kind{loader.XDP, loader.TC}

// passes and drops are return codes to the kernel.
var passes = map[loader.Kind]uint32{loader.XDP: 2, loader.TC: ^uint32(0)}
var drops = map[loader.Kind]uint32{loader.XDP: 1, loader.TC: 2}

func entry(t *testing.T, inst *loader.Instance, kind loader.Kind) *ebpf.Program {
	t.Helper()
	p, err := inst.Entry(loader.EntryConfig{Kind: kind, IfIndex: 1, Frags: kind == loader.XDP})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func flip(t *testing.T, inst *loader.Instance) int {
	t.Helper()
	bank, err := inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	return bank
}

func verdicts(t *testing.T, inst *loader.Instance) loader.Verdicts {
	t.Helper()
	v, err := inst.Verdicts(flip(t, inst))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func address(v6 bool, n byte) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0xfd, 0x77, 15: n})
	}
	return netip.AddrFrom4([4]byte{10, 77, 0, n})
}

// frame is a TCP segment of a class.
func frame(v6 bool, tos uint8, change func(*builder.Spec)) []byte {
	s := builder.Spec{IP: builder.IP{Src: address(v6, 1), Dst: address(v6, 2), TOS: tos, ID: 0xfffe},
		TCP: &builder.TCP{SrcPort: 1, DstPort: 2, Seq: 3, Flags: packet.ACK}, Payload: bytes.Repeat([]byte{7}, 200), Checksums: true}
	if change != nil {
		change(&s)
	}
	f := builder.MustBuild(&s)
	return f.Data
}

// outerTOS decodes with gopacket, which is independent of this project.
func outerTOS(t *testing.T, data []byte) uint8 {
	t.Helper()
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
	for _, l := range p.Layers() {
		switch ip := l.(type) {
		case *layers.IPv4:
			checkSum(t, ip)
			return ip.TOS
		case *layers.IPv6:
			return ip.TrafficClass
		}
	}
	t.Fatalf("no IP header in %x", data)
	return 0
}

// checkSum adds up an IPv4 header: all ones, or it is wrong.
func checkSum(t *testing.T, ip *layers.IPv4) {
	t.Helper()
	sum := uint32(0)
	for i := 0; i+1 < len(ip.Contents); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip.Contents[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	if sum != 0xffff {
		t.Errorf("IPv4 header checksum is wrong: %x", ip.Contents)
	}
}

// Marks of every kind of header, at both hooks: ECN bits and IPv4 checksum change, and no other byte.
func TestMark(t *testing.T) {
	inst := load(t, loader.Options{}, object(t, "marker", enforcer.Mark, 0))
	plain := func(*builder.Spec) {}
	shapes := map[string]func(*builder.Spec){
		"plain":   plain,
		"tagged":  func(s *builder.Spec) { s.VLANs = []builder.VLAN{{ID: 5}, {ID: 6}} },
		"pppoe":   func(s *builder.Spec) { s.PPPoE = true },
		"mpls":    func(s *builder.Spec) { s.MPLS = []uint32{16, 17} },
		"options": func(s *builder.Spec) { s.IP.Options = []byte{1, 1, 1, 1} },
	}
	for _, hook := range hooks {
		program := entry(t, inst, hook)
		for name, shape := range shapes {
			for _, v6 := range []bool{false, true} {
				for tos := range uint8(8) {
					mark(t, inst, program, hook, name, frame(v6, tos|0xb8&0xfc, shape))
				}
			}
		}
	}
}

func mark(t *testing.T, inst *loader.Instance, program *ebpf.Program, hook loader.Kind, name string, data []byte) {
	t.Helper()
	before := outerTOS(t, data)
	ret, out, err := program.Test(data)
	if err != nil {
		t.Fatal(err)
	}
	want, did := before, loader.Verdicts{}
	switch before & 3 {
	case 0:
		did.Unmarkable = 1
	case 3:
		did.MarkedBefore = 1
	default:
		want, did.Marked = before|3, 1
	}
	if got := verdicts(t, inst); got != did || ret != passes[hook] {
		t.Errorf("%s %s, class %#x: returned %d, did %+v, want %+v", hook, name, before, int32(ret), got, did)
	}
	if got := outerTOS(t, out); got != want {
		t.Errorf("%s %s: class %#x became %#x, want %#x", hook, name, before, got, want)
	}
	if n := changed(data, out); before == want && n != 0 || n > 4 {
		t.Errorf("%s %s, class %#x: %d bytes differ", hook, name, before, n)
	}
}

func changed(a, b []byte) int {
	n := len(b) - len(a)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// In a tunnel the header that routers process is marked, not the one that the algorithms measure.
func TestMarkOfATunnel(t *testing.T) {
	inst := load(t, loader.Options{Decap: true}, object(t, "marker", enforcer.Mark, tcp))
	data := frame(false, 2, func(s *builder.Spec) {
		s.Outer = &builder.Outer{Kind: builder.IPIP, Src: address(false, 8), Dst: address(false, 9)}
	})
	data[14+1] = 1 // ECT(1) outside
	binary.BigEndian.PutUint16(data[14+10:], 0)
	binary.BigEndian.PutUint16(data[14+10:], ^sum16(data[14:34]))
	for _, hook := range hooks {
		_, out, err := entry(t, inst, hook).Test(data)
		if err != nil {
			t.Fatal(err)
		}
		if outer, inner := outerTOS(t, out), out[14+20+1]; outer != 3 || inner != 2 {
			t.Errorf("%s: outer class %#x, inner %#x; want 3 and 2", hook, outer, inner)
		}
		if v := verdicts(t, inst); v.Marked != 1 {
			t.Errorf("%s: %+v", hook, v)
		}
	}
}

func sum16(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// Measuring algorithms see every packet, at any position of the list; drop overrides mark; condemned packets are charged once.
func TestRoles(t *testing.T) {
	inst := load(t, loader.Options{}, object(t, "marker", enforcer.Mark, 0), object(t, "dropper", enforcer.Drop, udp),
		watcher(t, "witness"), object(t, "late", enforcer.Mark, 0))
	asUDP := func(s *builder.Spec) { s.TCP, s.UDP = nil, &builder.UDP{SrcPort: 1, DstPort: 2} }
	for _, hook := range hooks {
		program := entry(t, inst, hook)
		for _, one := range []struct {
			data []byte
			want uint32
		}{{frame(false, 2, nil), passes[hook]}, {frame(false, 2, asUDP), drops[hook]}, {frame(true, 1, asUDP), drops[hook]}} {
			if ret, _, err := program.Test(one.data); err != nil || ret != one.want {
				t.Errorf("%s: returned %d, %v; want %d", hook, int32(ret), err, int32(one.want))
			}
		}
		bank := flip(t, inst)
		saw, err := inst.Set("witness")
		if err != nil {
			t.Fatal(err)
		}
		if c, err := witness.Read(saw, bank); err != nil || c.Packets != 3 {
			t.Errorf("%s: who measures saw %d of 3 packets, %v", hook, c.Packets, err)
		}
		for name, want := range map[string]uint64{"marker": 3, "dropper": 2, "late": 1} {
			if n, err := enforcer.Seen(inst, name, bank); err != nil || n != want {
				t.Errorf("%s: %s decided over %d packets, want %d; %v", hook, name, n, want, err)
			}
		}
		if v, err := inst.Verdicts(bank); err != nil || v.Dropped != 2 || v.Marked != 1 || v.DroppedBytes == 0 {
			t.Errorf("%s: %+v, %v", hook, v, err)
		}
	}
}

// A chain that only measures has no verdict program, and one that stops to enforce loses it under traffic.
func TestOnlyEnforcersAreCarriedOut(t *testing.T) {
	measures, drops := watcher(t, "witness"), object(t, "dropper", enforcer.Drop, 0)
	inst := load(t, loader.Options{}, measures)
	program := entry(t, inst, loader.XDP)
	for _, chain := range [][]loader.Object{{measures}, {measures, drops}, {measures}} {
		if err := inst.Replace(chain); err != nil {
			t.Fatal(err)
		}
		want := uint32(2)
		if len(chain) > 1 {
			want = 1
		}
		if ret, _, err := program.Test(frame(false, 0, nil)); err != nil || ret != want {
			t.Errorf("chain of %d returned %d, %v", len(chain), ret, err)
		}
		if _, there := inst.Programs()["verdict_xdp"]; there != inst.Enforces() || there != (len(chain) > 1) {
			t.Errorf("chain of %d: the program that acts is there: %v", len(chain), there)
		}
	}
}

// What was done to packets is part of a window's counts, also of the window in which the chain stops to act; a chain that only measures
// reports nothing of it.
func TestVerdictsAreCounted(t *testing.T) {
	measures, drops := watcher(t, "witness"), object(t, "dropper", enforcer.Drop, 0)
	inst := load(t, loader.Options{}, measures, drops)
	program := entry(t, inst, loader.XDP)
	dropped := func(c loader.Counts, err error) uint64 {
		t.Helper()
		if err != nil || c.Verdicts == nil {
			t.Fatalf("%+v, %v", c, err)
		}
		return c.Verdicts.Dropped
	}
	for n := range uint64(3) {
		if _, _, err := program.Test(frame(false, 0, nil)); err != nil {
			t.Fatal(err)
		}
		if got := dropped(inst.CountsSoFar()); got != n+1 {
			t.Errorf("%d drops so far, want %d", got, n+1)
		}
	}
	before, err := inst.CountsSoFar()
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Replace([]loader.Object{measures}); err != nil {
		t.Fatal(err)
	}
	if got := dropped(inst.CountsSoFar()); got != 3 {
		t.Errorf("after the exchange: %d drops, want 3", got)
	}
	c, err := inst.Counts(flip(t, inst))
	if got := dropped(c.Minus(before), err); got != 0 || c.Verdicts.Dropped != 3 {
		t.Errorf("%d drops in the window and %d since before the exchange, want 3 and 0", c.Verdicts.Dropped, got)
	}
	if c, err := inst.Counts(flip(t, inst)); err != nil || c.Verdicts != nil {
		t.Errorf("a window without an enforcer: %+v, %v", c.Verdicts, err)
	}
}
