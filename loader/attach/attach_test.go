package attach

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/tests/isolated"
)

func TestAttachCountsEveryPacket(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	for _, tc := range []struct {
		name string
		opts Options
		via  []string
	}{
		{"auto", Options{}, []string{"tcx"}},
		{"native", Options{Hook: HookXDP}, []string{"xdp"}},
		{"generic", Options{Hook: HookXDP, Mode: ModeGeneric}, []string{"xdp"}},
		{"auto mode", Options{Hook: HookXDP, Mode: ModeAuto}, []string{"xdp"}},
		{"clsact", Options{Hook: HookTC, WithoutTCX: true}, []string{"clsact"}},
		{"both", Options{Direction: Both}, []string{"tcx", "tcx"}},
		{"both clsact", Options{Direction: Both, WithoutTCX: true}, []string{"clsact", "clsact"}},
		{"native and egress", Options{Hook: HookXDP, Direction: Both}, []string{"xdp", "tcx"}},
		{"egress", Options{Direction: Egress}, []string{"tcx"}},
	} {
		t.Run(tc.name, func(t *testing.T) { attachAndCount(t, tc.opts, tc.via) })
	}
}

// onThisKernel is the mechanism of TC: below 6.6 there is no TCX.
func onThisKernel(via string) string {
	if via == "tcx" && errors.Is(kernel.HaveTCX(), ebpf.ErrNotSupported) {
		return "clsact"
	}
	return via
}

func attachAndCount(t *testing.T, opts Options, via []string) {
	inst := lab.LoadChain(t)
	opts.Notice = t.Logf
	a, err := Attach(inst, lab.Near, opts)
	lab.NoError(t, err)
	for i, p := range a.points {
		if want := onThisKernel(via[i]); p.Via != want {
			t.Errorf("point %d is by %s, want %s", i, p.Via, want)
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
	lab.Quiet(t)
	lab.SendFromPeer(t, in)
	lab.NoError(t, lab.SendUDP(lab.FarIP, out))
	if got := lab.SeenBy(t, inst); got != want {
		t.Errorf("%d packets counted, want %d", got, want)
	}
	lab.NoError(t, a.Close())
	if a.Alive() {
		t.Error("alive after Close")
	}
	lab.NothingLeft(t, lab.Near)
}

func otherXDP(t *testing.T, iface string) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "somebody_else", Type: ebpf.XDP, License: "GPL", Instructions: kernel.Returning(ebpf.XDP, 2).Instructions})
	lab.NoError(t, err)
	d, err := Inspect(iface)
	lab.NoError(t, err)
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: d.Index})
	lab.NoError(t, err)
	t.Cleanup(func() { l.Close(); prog.Close() })
}

func TestOtherXDPProgramStays(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	otherXDP(t, lab.Near)
	inst := lab.LoadChain(t)
	_, err := Attach(inst, lab.Near, Options{Hook: HookXDP})
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "somebody_else") || !strings.Contains(err.Error(), "--hook tc") {
		t.Errorf("want an error that names the owner and the remedy, got %v", err)
	}
	a, err := Attach(inst, lab.Near, Options{})
	lab.NoError(t, err)
	if !strings.Contains(strings.Join(a.Notices, "\n"), "somebody_else") {
		t.Errorf("notices do not name the other program: %q", a.Notices)
	}
	lab.NoError(t, a.Close())
	d, err := Inspect(lab.Near)
	lab.NoError(t, err)
	if got := Occupants(d); len(got) != 1 || got[0].Name != "somebody_else" {
		t.Errorf("the other program should be alone again, found %v", got)
	}
}

func TestOtherTCProgramsStay(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	d, err := Inspect(lab.Near)
	lab.NoError(t, err)
	prog, err := ebpf.NewProgram(kernel.Returning(ebpf.SchedCLS, -1))
	lab.NoError(t, err)
	defer prog.Close()
	foreigners := 1
	if onThisKernel("tcx") == "tcx" {
		tcx, err := link.AttachTCX(link.TCXOptions{Interface: d.Index, Program: prog, Attach: ebpf.AttachTCXIngress})
		lab.NoError(t, err)
		defer tcx.Close()
		foreigners++
	}
	lab.NoError(t, netlink.QdiscAdd(clsactOf(d.Index)))
	foreign := newFilter(d.Index, Ingress, prog, 10)
	foreign.Name = "foreign"
	lab.NoError(t, netlink.FilterAdd(foreign))

	for _, withoutTCX := range []bool{false, true} {
		inst := lab.LoadChain(t)
		a, err := Attach(inst, lab.Near, Options{WithoutTCX: withoutTCX, Direction: Both})
		lab.NoError(t, err)
		lab.Quiet(t)
		lab.SendFromPeer(t, 10)
		if got := lab.SeenBy(t, inst); got != 10 {
			t.Errorf("without TCX %t: %d packets counted, want 10", withoutTCX, got)
		}
		if text := strings.Join(a.Notices, "\n"); strings.Count(text, "xdpmon_probe") != foreigners {
			t.Errorf("notices should name %d other programs: %s", foreigners, text)
		}
		lab.NoError(t, a.Close())
		if got := Occupants(d); len(got) != foreigners {
			t.Errorf("without TCX %t: %d others should be left, found %v", withoutTCX, foreigners, got)
		}
	}
}

// Two xdpmon on the same clsact qdisc: the last one to detach removes it.
func TestClsactIsSharedAndRemovedLast(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	inst := lab.LoadChain(t)
	first, err := Attach(inst, lab.Near, Options{WithoutTCX: true})
	lab.NoError(t, err)
	second, err := Attach(inst, lab.Near, Options{WithoutTCX: true, Direction: Both})
	lab.NoError(t, err)
	lab.NoError(t, first.Close())
	if !second.Alive() {
		t.Error("closing the first one ended the second")
	}
	lab.NoError(t, second.Close())
	lab.NothingLeft(t, lab.Near)
}

func TestAttachFailsAsAWhole(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	inst := lab.LoadChain(t)
	broken := errors.New("injected")
	for _, withoutTCX := range []bool{false, true} {
		for _, step := range []string{"entry ingress", "attach ingress", "entry egress", "attach egress"} {
			fail := func(s string) error {
				if s == step {
					return broken
				}
				return nil
			}
			_, err := Attach(inst, lab.Near, Options{Direction: Both, WithoutTCX: withoutTCX, Fail: fail})
			if !errors.Is(err, broken) {
				t.Errorf("%s: got %v", step, err)
			}
			lab.NothingLeft(t, lab.Near)
		}
	}
}

func TestNativeRefusalNamesReasonAndRemedy(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	inst := lab.LoadChain(t)
	_, err := Attach(inst, "lo", Options{Hook: HookXDP})
	if !errors.Is(err, kernel.ErrUnsupported) || !strings.Contains(err.Error(), "--mode auto") {
		t.Fatalf("want the remedy, got %v", err)
	}
	t.Log(err)
	var notices []string
	a, err := Attach(inst, "lo", Options{Hook: HookXDP, Mode: ModeAuto, Notice: func(f string, args ...any) { notices = append(notices, f) }})
	lab.NoError(t, err)
	defer a.Close()
	if a.points[0].Mode != ModeGeneric || !strings.Contains(strings.Join(notices, "\n"), "WARNING: falling back to generic") {
		t.Errorf("mode %s, notices %q", a.points[0].Mode, notices)
	}
}

func TestOffloadChangesAreReported(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	inst := lab.LoadChain(t)
	a, err := Attach(inst, lab.Near, Options{Hook: HookXDP})
	lab.NoError(t, err)
	t.Logf("native XDP on veth: %v", a.Changed)
	var peer bool
	for _, c := range a.Changed {
		peer = peer || strings.HasPrefix(c.Interface, "peer "+lab.Far)
	}
	if !peer {
		t.Errorf("native XDP changes offloads of a veth's peer, which was not reported: %v", a.Changed)
	}
	lab.NoError(t, a.Close())
	a, err = Attach(inst, lab.Near, Options{Hook: HookTC})
	lab.NoError(t, err)
	defer a.Close()
	if len(a.Changed) != 0 {
		t.Errorf("TC changes no offload, reported %v", a.Changed)
	}
}

func TestLargeMTU(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Sh(t, "ip link set %s mtu 9000", lab.Near)
	lab.Sh(t, "ip -n %s link set %s mtu 9000", lab.PeerNS, lab.Far)
	inst := lab.LoadChain(t)
	a, err := Attach(inst, lab.Near, Options{Hook: HookXDP})
	if kernel.HaveXDPFrags() != nil {
		if !errors.Is(err, kernel.ErrUnsupported) {
			t.Errorf("without xdp.frags an MTU of 9000 is refused with a remedy, got %v", err)
		}
		return
	}
	lab.NoError(t, err)
	lab.NoError(t, a.Close())
}

func TestUsageErrors(t *testing.T) {
	for _, o := range []Options{
		{Hook: "xpd"}, {Mode: "fast"}, {Direction: "out"},
		{Hook: HookXDP, Direction: Egress}, {Hook: HookTC, Mode: ModeGeneric},
	} {
		if err := o.WithDefaults().Check(); !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	if _, err := Attach(nil, "xdpmon-none", Options{}); !errors.Is(err, ErrNoInterface) {
		t.Errorf("got %v", err)
	}
}

func TestSIGKILLLeavesNothing(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	for _, hook := range []string{"xdp", "tc"} {
		if hook == "tc" && onThisKernel("tcx") != "tcx" {
			t.Logf("kernel %s has no TCX (6.6): a filter on clsact stays, see TestKilledClsactIsCleared", kernel.Release())
			continue
		}
		child := startAttached(t, hook)
		d, err := Inspect(lab.Near)
		lab.NoError(t, err)
		if len(Occupants(d)) == 0 {
			t.Fatal("the child did not attach")
		}
		lab.NoError(t, child.Kill())
		lab.NothingLeft(t, lab.Near)
	}
}

// A filter on clsact survives SIGKILL: the next attach removes it and reports that.
func TestKilledClsactIsCleared(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.NoError(t, startAttached(t, "clsact").Kill())
	d, err := Inspect(lab.Near)
	lab.NoError(t, err)
	if got := Occupants(d); len(got) != 2 || !got[0].Ours {
		t.Fatalf("want the two filters of the killed process, found %v", got)
	}
	inst := lab.LoadChain(t)
	a, err := Attach(inst, lab.Near, Options{})
	lab.NoError(t, err)
	if !strings.Contains(strings.Join(a.Notices, "\n"), "killed xdpmon") {
		t.Errorf("no notice of the leftover: %q", a.Notices)
	}
	lab.NoError(t, a.Close())
	lab.NothingLeft(t, lab.Near)
}

func init() {
	lab.Helpers["attach"] = func(args []string) error {
		inst, err := loader.Load(nil, loader.Options{Seed: 1})
		if err != nil {
			return err
		}
		opts := Options{Hook: Hook(args[0]), Direction: Ingress}
		if args[0] == "clsact" {
			opts = Options{Hook: HookTC, WithoutTCX: true, Direction: Both}
		}
		if _, err := Attach(inst, lab.Near, opts); err != nil {
			return err
		}
		lab.SayReady()
		return lab.UntilKilled()
	}
}

// A process that is interrupted while programs are verified, which may take long, attaches none.
func TestInterruptedLoadAttachesNothing(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	for _, withoutTCX := range []bool{false, true} {
		asked, last := 0, 0
		inst, err := loader.Load(nil, loader.Options{Seed: 1, Interrupted: func() error {
			if asked++; asked >= last && last > 0 {
				return context.Canceled
			}
			return nil
		}})
		lab.NoError(t, err)
		for last = 1; ; last++ {
			asked = 0
			a, err := Attach(inst, lab.Near, Options{Direction: Both, WithoutTCX: withoutTCX})
			if err == nil {
				lab.NoError(t, a.Close())
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted at call %d: %v", last, err)
			}
			lab.NothingLeft(t, lab.Near)
		}
		if last < 4 {
			t.Errorf("Interrupted was called %d times while two programs were attached", last-1)
		}
		lab.NoError(t, inst.Close())
	}
}

func startAttached(t *testing.T, hook string) *lab.Child {
	return lab.StartHelper(t, "attach %s", hook)
}

func TestMain(m *testing.M) { lab.Main(m) }

func programsIn(chain *ebpf.Map) (n int) {
	for slot := range chain.MaxEntries() {
		var id ebpf.ProgramID
		if chain.Lookup(slot, &id) == nil {
			n++
		}
	}
	return n
}

// A lazy instance has the programs of the hooks that it is attached to, in its chain's program arrays.
func TestProgramsOfAHookAreLoadedWhenItIsUsed(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	inst, err := loader.Load(lab.FridgeObject(t, 4096), loader.Options{Seed: 1, Lazy: true})
	lab.NoError(t, err)
	defer func() { lab.NoError(t, inst.Close()) }()
	if got := slices.Sorted(maps.Keys(inst.Programs())); len(got) != 0 {
		t.Errorf("before anything is attached: %v", got)
	}
	want := []string{}
	for _, step := range []struct {
		hook    Hook
		program string
		chain   string
	}{{HookTC, "fridge_tc", "chain/chain_tc"}, {HookXDP, "fridge_xdp", "chain/chain_xdp"}} {
		a, err := Attach(inst, lab.Near, Options{Hook: step.hook})
		lab.NoError(t, err)
		want = append(want, step.program)
		if got := slices.Sorted(maps.Keys(inst.Programs())); !slices.Equal(got, want) {
			t.Errorf("attached at %v: %v", step.hook, got)
		}
		if got := programsIn(inst.Maps()[step.chain]); got != 1 {
			t.Errorf("%d programs in %s", got, step.chain)
		}
		lab.NoError(t, a.Close())
	}
	lab.NoError(t, inst.Replace(lab.FridgeObject(t, 8192)))
	if got := slices.Sorted(maps.Keys(inst.Programs())); !slices.Equal(got, want) {
		t.Errorf("the replacement has %v", got)
	}
}
