package loader

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// loadChain makes an instance without algorithms: it parses and counts.
func loadChain(t testing.TB) *Instance {
	t.Helper()
	inst, err := Load(nil, Options{Seed: 1})
	noError(t, err)
	t.Cleanup(func() { noError(t, inst.Close()) })
	return inst
}

// seenBy ends a window and returns the packets counted in it.
func seenBy(t testing.TB, inst *Instance) uint64 {
	t.Helper()
	bank, err := inst.Control().Flip()
	noError(t, err)
	c, err := inst.Counts(bank)
	noError(t, err)
	return c.Seen
}

func TestAttachCountsEveryPacket(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	for _, tc := range []struct {
		name string
		opts AttachOptions
		via  []string
	}{
		{"auto", AttachOptions{}, []string{"tcx"}},
		{"native", AttachOptions{Hook: HookXDP}, []string{"xdp"}},
		{"generic", AttachOptions{Hook: HookXDP, Mode: ModeGeneric}, []string{"xdp"}},
		{"auto mode", AttachOptions{Hook: HookXDP, Mode: ModeAuto}, []string{"xdp"}},
		{"clsact", AttachOptions{Hook: HookTC, withoutTCX: true}, []string{"clsact"}},
		{"both", AttachOptions{Direction: Both}, []string{"tcx", "tcx"}},
		{"both clsact", AttachOptions{Direction: Both, withoutTCX: true}, []string{"clsact", "clsact"}},
		{"native and egress", AttachOptions{Hook: HookXDP, Direction: Both}, []string{"xdp", "tcx"}},
		{"egress", AttachOptions{Direction: Egress}, []string{"tcx"}},
	} {
		t.Run(tc.name, func(t *testing.T) { attachAndCount(t, tc.opts, tc.via) })
	}
}

// onThisKernel is how TC is reached: below 6.6 without TCX.
func onThisKernel(via string) string {
	if via == "tcx" && errors.Is(HaveTCX(), ebpf.ErrNotSupported) {
		return "clsact"
	}
	return via
}

func attachAndCount(t *testing.T, opts AttachOptions, via []string) {
	inst := loadChain(t)
	opts.Notice = t.Logf
	a, err := Attach(inst, near, opts)
	noError(t, err)
	for i, p := range a.points {
		if want := onThisKernel(via[i]); p.Via != want {
			t.Errorf("point %d went through %s, want %s", i, p.Via, want)
		}
	}
	if !a.Alive() {
		t.Error("not alive while attached")
	}
	const in, out = 50, 20
	want := uint64(0)
	if opts.Direction != Egress {
		want += in
	}
	if opts.Direction == Egress || opts.Direction == Both {
		want += out
	}
	quiet(t)
	sendFromPeer(t, in)
	noError(t, sendUDP(farIP, out))
	if got := seenBy(t, inst); got != want {
		t.Errorf("%d packets counted, want %d", got, want)
	}
	noError(t, a.Close())
	if a.Alive() {
		t.Error("alive after Close")
	}
	nothingLeft(t, near)
}

// quiet keeps the kernel from answering the datagrams, which would be packets of its own.
func quiet(t *testing.T) {
	t.Helper()
	for _, ns := range []string{"", "ip netns exec " + peerNS + " "} {
		sh(t, "%ssysctl -qw net.ipv4.icmp_ratelimit=100000 net.ipv4.icmp_msgs_per_sec=0", ns)
	}
}

// nothingLeft fails when an interface still has a program of anybody, or a qdisc for them.
func nothingLeft(t *testing.T, iface string) {
	t.Helper()
	d, err := inspect(iface)
	noError(t, err)
	for _, o := range occupants(d) {
		t.Errorf("still on %s: %s", iface, o)
	}
	if out := sh(t, "tc qdisc show dev %s", iface); strings.Contains(out, "clsact") {
		t.Errorf("the qdisc stayed: %s", out)
	}
}

func otherXDP(t *testing.T, iface string) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "somebody_else", Type: ebpf.XDP, License: "GPL", Instructions: returning(ebpf.XDP, 2).Instructions})
	noError(t, err)
	d, err := inspect(iface)
	noError(t, err)
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: d.Index})
	noError(t, err)
	t.Cleanup(func() { l.Close(); prog.Close() })
}

func TestOtherXDPProgramStays(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	otherXDP(t, near)
	inst := loadChain(t)
	_, err := Attach(inst, near, AttachOptions{Hook: HookXDP})
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "somebody_else") || !strings.Contains(err.Error(), "--hook tc") {
		t.Errorf("want an error that names the owner and the remedy, got %v", err)
	}
	a, err := Attach(inst, near, AttachOptions{})
	noError(t, err)
	if !strings.Contains(strings.Join(a.Notices, "\n"), "somebody_else") {
		t.Errorf("notices do not name the other program: %q", a.Notices)
	}
	noError(t, a.Close())
	d, err := inspect(near)
	noError(t, err)
	if got := occupants(d); len(got) != 1 || got[0].Name != "somebody_else" {
		t.Errorf("the other program should be alone again, found %v", got)
	}
}

func TestOtherTCProgramsStay(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	d, err := inspect(near)
	noError(t, err)
	prog, err := ebpf.NewProgram(returning(ebpf.SchedCLS, -1))
	noError(t, err)
	defer prog.Close()
	foreigners := 1
	if onThisKernel("tcx") == "tcx" {
		tcx, err := link.AttachTCX(link.TCXOptions{Interface: d.Index, Program: prog, Attach: ebpf.AttachTCXIngress})
		noError(t, err)
		defer tcx.Close()
		foreigners++
	}
	noError(t, netlink.QdiscAdd(clsactOf(d.Index)))
	foreign := newFilter(d.Index, Ingress, prog, 10)
	foreign.Name = "foreign"
	noError(t, netlink.FilterAdd(foreign))

	for _, withoutTCX := range []bool{false, true} {
		inst := loadChain(t)
		a, err := Attach(inst, near, AttachOptions{withoutTCX: withoutTCX, Direction: Both})
		noError(t, err)
		quiet(t)
		sendFromPeer(t, 10)
		if got := seenBy(t, inst); got != 10 {
			t.Errorf("without TCX %t: %d packets counted, want 10", withoutTCX, got)
		}
		if text := strings.Join(a.Notices, "\n"); strings.Count(text, "xdpmon_probe") != foreigners {
			t.Errorf("notices should name %d other programs: %s", foreigners, text)
		}
		noError(t, a.Close())
		if got := occupants(d); len(got) != foreigners {
			t.Errorf("without TCX %t: %d others should be left, found %v", withoutTCX, foreigners, got)
		}
	}
}

// A second xdpmon on the same clsact qdisc: the one that goes last removes it.
func TestClsactIsSharedAndRemovedLast(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	inst := loadChain(t)
	first, err := Attach(inst, near, AttachOptions{withoutTCX: true})
	noError(t, err)
	second, err := Attach(inst, near, AttachOptions{withoutTCX: true, Direction: Both})
	noError(t, err)
	noError(t, first.Close())
	if !second.Alive() {
		t.Error("closing the first one ended the second")
	}
	noError(t, second.Close())
	nothingLeft(t, near)
}

func TestAttachFailsAsAWhole(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	inst := loadChain(t)
	broken := errors.New("injected")
	for _, withoutTCX := range []bool{false, true} {
		for _, step := range []string{"entry ingress", "attach ingress", "entry egress", "attach egress"} {
			fail := func(s string) error {
				if s == step {
					return broken
				}
				return nil
			}
			_, err := Attach(inst, near, AttachOptions{Direction: Both, withoutTCX: withoutTCX, fail: fail})
			if !errors.Is(err, broken) {
				t.Errorf("%s: got %v", step, err)
			}
			nothingLeft(t, near)
		}
	}
}

func TestNativeRefusalTellsReasonAndRemedy(t *testing.T) {
	if !isolated(t) {
		return
	}
	inst := loadChain(t)
	_, err := Attach(inst, "lo", AttachOptions{Hook: HookXDP})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "--mode auto") {
		t.Fatalf("want the remedy, got %v", err)
	}
	t.Log(err)
	var said []string
	a, err := Attach(inst, "lo", AttachOptions{Hook: HookXDP, Mode: ModeAuto, Notice: func(f string, args ...any) { said = append(said, f) }})
	noError(t, err)
	defer a.Close()
	if a.points[0].Mode != ModeGeneric || !strings.Contains(strings.Join(said, "\n"), "WARNING: falling back to generic") {
		t.Errorf("mode %s, said %q", a.points[0].Mode, said)
	}
}

func TestOffloadChangesAreReported(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	inst := loadChain(t)
	a, err := Attach(inst, near, AttachOptions{Hook: HookXDP})
	noError(t, err)
	t.Logf("native XDP on veth: %v", a.Changed)
	var peer bool
	for _, c := range a.Changed {
		peer = peer || strings.HasPrefix(c.Interface, "peer "+far)
	}
	if !peer {
		t.Errorf("native XDP changes offloads of a veth's peer, which was not reported: %v", a.Changed)
	}
	noError(t, a.Close())
	a, err = Attach(inst, near, AttachOptions{Hook: HookTC})
	noError(t, err)
	defer a.Close()
	if len(a.Changed) != 0 {
		t.Errorf("TC changes no offload, reported %v", a.Changed)
	}
}

func TestLargeMTU(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	sh(t, "ip link set %s mtu 9000", near)
	sh(t, "ip -n %s link set %s mtu 9000", peerNS, far)
	inst := loadChain(t)
	a, err := Attach(inst, near, AttachOptions{Hook: HookXDP})
	if HaveXDPFrags() != nil {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("without xdp.frags an MTU of 9000 is refused with a remedy, got %v", err)
		}
		return
	}
	noError(t, err)
	noError(t, a.Close())
}

func TestUsageErrors(t *testing.T) {
	for _, o := range []AttachOptions{
		{Hook: "xpd"}, {Mode: "fast"}, {Direction: "out"},
		{Hook: HookXDP, Direction: Egress}, {Hook: HookTC, Mode: ModeGeneric},
	} {
		if err := o.withDefaults().check(); !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	if _, err := Attach(nil, "xdpmon-none", AttachOptions{}); !errors.Is(err, ErrNoInterface) {
		t.Errorf("got %v", err)
	}
}

func TestSIGKILLLeavesNothing(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	for _, hook := range []string{"xdp", "tc"} {
		if hook == "tc" && onThisKernel("tcx") != "tcx" {
			t.Logf("kernel %s has no TCX (6.6): a filter on clsact stays, see TestKilledClsactIsCleared", kernelRelease())
			continue
		}
		child := startAttached(t, hook)
		d, err := inspect(near)
		noError(t, err)
		if len(occupants(d)) == 0 {
			t.Fatal("the child did not attach")
		}
		noError(t, child.kill())
		nothingLeft(t, near)
	}
}

// A filter on clsact survives SIGKILL: the next attach removes it and says so.
func TestKilledClsactIsCleared(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	noError(t, startAttached(t, "clsact").kill())
	d, err := inspect(near)
	noError(t, err)
	if got := occupants(d); len(got) != 2 || !got[0].Ours {
		t.Fatalf("want the two filters of the killed process, found %v", got)
	}
	inst := loadChain(t)
	a, err := Attach(inst, near, AttachOptions{})
	noError(t, err)
	if !strings.Contains(strings.Join(a.Notices, "\n"), "killed xdpmon") {
		t.Errorf("said nothing of the leftover: %q", a.Notices)
	}
	noError(t, a.Close())
	nothingLeft(t, near)
}

func init() {
	helpers["attach"] = func(args []string) error {
		inst, err := Load(nil, Options{Seed: 1})
		if err != nil {
			return err
		}
		opts := AttachOptions{Hook: Hook(args[0]), Direction: Ingress}
		if args[0] == "clsact" {
			opts = AttachOptions{Hook: HookTC, withoutTCX: true, Direction: Both}
		}
		if _, err := Attach(inst, near, opts); err != nil {
			return err
		}
		sayReady()
		select {}
	}
}

func sayReady() { os.Stdout.WriteString("ready\n") }
