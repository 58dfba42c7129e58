package pin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/detach"
	"github.com/xdpmon/xdpmon/loader/pin"
	"github.com/xdpmon/xdpmon/loader/status"
	"github.com/xdpmon/xdpmon/loader/watch"
	"github.com/xdpmon/xdpmon/tests/isolated"
)

// pinned runs the calls of a pinned start: open, match, load, attach, commit. The caller closes the parts that succeeded.
type pinned struct {
	pin  *pin.Pin
	seed uint64
	inst *loader.Instance
	mgr  *watch.Manager
}

func startPinned(o pin.Options, opts attach.Options, ifaces ...string) (*pinned, error) {
	return startPinnedWith(nil, o, opts, ifaces...)
}

func startPinnedWith(objects []loader.Object, o pin.Options, opts attach.Options, ifaces ...string) (*pinned, error) {
	return startLoaded(objects, loader.Options{}, o, opts, ifaces...)
}

func startLoaded(objects []loader.Object, load loader.Options, o pin.Options, opts attach.Options, ifaces ...string) (*pinned, error) {
	o.Interfaces = ifaces
	p, err := pin.Open(o)
	if err != nil {
		return nil, err
	}
	r := &pinned{pin: p}
	if !p.Adopts() {
		load.Seed = 42
	}
	if err := p.Match(objects, &load); err != nil {
		return nil, errors.Join(err, r.end())
	}
	r.seed = load.Seed
	if r.inst, err = loader.Load(objects, load); err != nil {
		return nil, errors.Join(err, r.end())
	}
	r.mgr = watch.NewManager(r.inst, watch.Options{Attach: opts, Pin: p, Reattach: true})
	if err := r.mgr.Attach(ifaces...); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// end does what a process does when it stops: the pin stays.
func (r *pinned) end() error {
	var errs []error
	if r.mgr != nil {
		errs = append(errs, r.mgr.Close())
	}
	errs = append(errs, r.pin.Close())
	if r.inst != nil {
		errs = append(errs, r.inst.Close())
	}
	return errors.Join(errs...)
}

func init() {
	lab.Helpers["attach"] = func(args []string) error {
		inst, err := loader.Load(nil, loader.Options{Seed: 1})
		if err != nil {
			return err
		}
		if _, err := attach.Attach(inst, lab.Near, attach.Options{Hook: attach.Hook(args[0])}); err != nil {
			return err
		}
		lab.SayReady()
		return lab.UntilKilled()
	}
	lab.Helpers["pinned"] = func(args []string) error {
		opts := attach.Options{Hook: attach.Hook(args[0]), Direction: attach.Both}
		if args[0] == "clsact" {
			opts.Hook, opts.WithoutTCX = attach.HookTC, true
		}
		if _, err := startPinned(pin.Options{Name: "test"}, opts, lab.Near); err != nil {
			return err
		}
		lab.SayReady()
		return lab.UntilKilled()
	}
}

// Packets are counted before the process is killed, while none runs, and after the next one has adopted the
// pin; none may be missing.
func TestAdoptionLosesNoCount(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Quiet(t)
	for _, hook := range []string{"tc", "xdp", "clsact"} {
		t.Run(hook, func(t *testing.T) { adoptAfterKill(t, hook) })
	}
}

func adoptAfterKill(t *testing.T, hook string) {
	c := lab.StartHelper(t, "pinned %s", hook)
	lab.SendFromPeer(t, 30)
	lab.NoError(t, c.Kill())
	lab.SendFromPeer(t, 40)
	lab.NoError(t, lab.SendUDP(lab.FarIP, 5))

	opts := attach.Options{Hook: attach.Hook(hook), Direction: attach.Both, Notice: t.Logf}
	if hook == "clsact" {
		opts.Hook, opts.WithoutTCX = attach.HookTC, true
	}
	stop := make(chan struct{})
	sent := make(chan int)
	go keepSending(t, stop, sent) // while the programs are exchanged
	r, err := startPinned(pin.Options{Name: "test", Notice: t.Logf}, opts, lab.Near)
	close(stop)
	n := <-sent
	lab.NoError(t, err)
	if n == 0 {
		t.Error("no packet was sent while the programs were exchanged: the test does not cover that")
	}
	lab.SendFromPeer(t, 50)
	if got, want := lab.SeenBy(t, r.inst), uint64(30+40+5+n+50); got != want {
		t.Errorf("%d packets counted, %d were sent (%d during the adoption)", got, want, n)
	}
	if r.seed != 42 {
		t.Errorf("seed %d, want that of the pin", r.seed)
	}
	lab.NoError(t, r.end())
	lab.SendFromPeer(t, 1)
	removed, err := detach.Detach(lab.Near)
	lab.NoError(t, err)
	t.Log(strings.Join(removed, "\n"))
	lab.NothingPinned(t, pin.Root)
	lab.NothingLeft(t, lab.Near)
}

func keepSending(t *testing.T, stop <-chan struct{}, sent chan<- int) {
	n := 0
	for {
		select {
		case <-stop:
			sent <- n
			return
		default:
			lab.SendFromPeer(t, 1)
			n++
		}
	}
}

// pinState is everything below a pin and the programs on the interface, to compare before with after.
func pinState(t *testing.T) []string {
	t.Helper()
	var state []string
	_ = filepath.Walk(filepath.Join(pin.Root, pin.PinFolder), func(path string, _ os.FileInfo, err error) error {
		if err == nil {
			state = append(state, path)
		}
		return nil
	})
	d, err := attach.Inspect(lab.Near)
	lab.NoError(t, err)
	for _, o := range attach.Occupants(d) {
		state = append(state, fmt.Sprintf("%s %s program %d link %d", o.Via, o.Direction, o.Program, o.Link))
	}
	return state
}

// fixed is how all of TestFailedPinIsRolledBack loads, again for each step: `attach` does, and it takes the verifier half the time.
var fixed = loader.Options{Fixed: true}

// Every step of pinning fails once, at the first start and at an adoption. The state afterwards must equal the state
// before, and packets must still be counted.
func TestFailedPinIsRolledBack(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Quiet(t)
	opts := attach.Options{Hook: attach.HookXDP, Direction: attach.Both} // TCX at egress: both kinds of link
	lab.NoError(t, pin.MountBPFFS(pin.Root, t.Logf))
	first := failures(t, opts)
	if first < 10 {
		t.Errorf("only %d steps failed at the first start", first)
	}
	r, err := startLoaded(nil, fixed, pin.Options{Name: "test"}, opts, lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, r.end())
	lab.SendFromPeer(t, 11)
	adoption := failures(t, opts)
	if adoption < 10 {
		t.Errorf("only %d steps failed at the adoption", adoption)
	}
	lab.SendFromPeer(t, 12)
	r, err = startLoaded(nil, fixed, pin.Options{Name: "test"}, opts, lab.Near)
	lab.NoError(t, err)
	if got := lab.SeenBy(t, r.inst); got != 23 {
		t.Errorf("%d packets counted after the failures, want 23", got)
	}
	lab.NoError(t, r.end())
	_, err = detach.Detach(lab.Near)
	lab.NoError(t, err)
	lab.NothingPinned(t, pin.Root)
}

// ownStatus is Status without the attachments of other tests on this machine in their namespaces.
func ownStatus(t *testing.T) []status.Attachment {
	t.Helper()
	info, err := status.List()
	lab.NoError(t, err)
	return slices.DeleteFunc(info, func(a status.Attachment) bool {
		return a.Interface == "" && a.Pin == "" && !slices.Contains(a.PIDs, os.Getpid())
	})
}

var errInjected = errors.New("injected")

// failures lets the first step fail, then the second, and so on until a start succeeds; that one is not committed
// either. It returns the number of steps.
func failures(t *testing.T, opts attach.Options) int {
	t.Helper()
	before := pinState(t)
	for n := 0; ; n++ {
		steps := 0
		fail := func(step string) error {
			steps++
			if steps == n+1 {
				t.Logf("failing %q", step)
				return errInjected
			}
			return nil
		}
		o := opts
		o.Fail = fail
		done := false
		r, err := startLoaded(nil, fixed, pin.Failing(pin.Options{Name: "test"}, func(step string) error {
			if steps == n && step == "swap" {
				done = true
				return errInjected
			}
			return fail(step)
		}), o, lab.Near)
		if err == nil {
			t.Fatalf("step %d was to fail; the start succeeded: %v", n, r.end())
		}
		if !errors.Is(err, errInjected) {
			t.Fatalf("step %d: %v", n, err)
		}
		if after := pinState(t); !slices.Equal(before, after) {
			t.Fatalf("step %d: before\n%s\nafter\n%s", n, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
		if done {
			return n
		}
	}
}

func TestAdoptionIsRefused(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	r, err := startPinned(pin.Options{Name: "test", Notice: t.Logf}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	if _, err := pin.Open(pin.Options{Name: "test"}); !errors.Is(err, pin.ErrInUse) {
		t.Errorf("a pin in use was opened: %v", err)
	}
	lab.NoError(t, r.end())

	p, err := pin.Open(pin.Options{Name: "test", Interfaces: []string{lab.Near}})
	lab.NoError(t, err)
	defer p.Close()
	for name, tc := range map[string]struct {
		objects []loader.Object
		opts    loader.Options
	}{
		"seed: 42 pinned, 43 requested":               {nil, loader.Options{Seed: 43}},
		"algorithms:  pinned, toy requested":          {[]loader.Object{toy(8)}, loader.Options{}},
		"CRC hashes: false pinned, true requested":    {nil, loader.Options{CRC: true}},
		"decapsulation: false pinned, true requested": {nil, loader.Options{Decap: true}},
	} {
		err := p.Match(tc.objects, &tc.opts)
		if !errors.Is(err, pin.ErrDiffers) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "xdpmon detach test") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAdoptionKeepsRegisters(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	first, err := startPinnedWith(lab.FridgeObject(t, 4096), pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	before := mapIDs(t, first.inst)
	lab.NoError(t, first.inst.Maps()["fridge/fridge_entries"].Put(uint32(17), uint64(0x1234)))
	lab.NoError(t, first.end())

	second, err := startPinnedWith(lab.FridgeObject(t, 4096), pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	if after := mapIDs(t, second.inst); !maps.Equal(before, after) {
		t.Errorf("maps before %v, after %v", before, after)
	}
	var word uint64
	lab.NoError(t, second.inst.Maps()["fridge/fridge_entries"].Lookup(uint32(17), &word))
	if word != 0x1234 {
		t.Errorf("register reads %#x", word)
	}
	if info := ownStatus(t); len(info) != 1 || !slices.Equal(info[0].Algorithms, []string{"fridge"}) {
		t.Errorf("status: %+v", info)
	}
	lab.NoError(t, second.end())

	_, err = startPinnedWith(lab.FridgeObject(t, 8192), pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	if !errors.Is(err, pin.ErrDiffers) || !strings.Contains(err.Error(), "fridge map fridge_entries: Array of 4096 entries") {
		t.Errorf("another size: %v", err)
	}
	_, err = detach.Detach(lab.Near)
	lab.NoError(t, err)
	lab.NothingPinned(t, pin.Root)
}

func mapIDs(t *testing.T, inst *loader.Instance) map[string]ebpf.MapID {
	t.Helper()
	ids := map[string]ebpf.MapID{}
	for name, m := range inst.Maps() {
		info, err := m.Info()
		lab.NoError(t, err)
		ids[name], _ = info.ID()
	}
	return ids
}

// toy is an object with one array of n entries.
func toy(n uint32) loader.Object {
	return loader.Object{Name: "toy", Spec: &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"cells": {Name: "cells", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: n}},
		Programs: map[string]*ebpf.ProgramSpec{"toy_xdp": {Type: ebpf.XDP, Instructions: asm.Instructions{asm.Return()}}},
	}}
}

func TestDifferencesNameTheSize(t *testing.T) {
	small, large := pin.DescribeObjects([]loader.Object{toy(8)}, loader.Options{}), pin.DescribeObjects([]loader.Object{toy(16)}, loader.Options{})
	diffs := small.Differences(large)
	if len(diffs) != 1 || !strings.Contains(diffs[0], "toy map cells: Array of 8 entries") || !strings.Contains(diffs[0], "Array of 16 entries") {
		t.Errorf("got %q", diffs)
	}
	if diffs := small.Differences(small); diffs != nil {
		t.Errorf("a pin differs from itself: %q", diffs)
	}
}

// A pinned interface is removed while the process runs: the pin can still be removed by its name.
func TestDetachOfWaitingInterface(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	r, err := startPinned(pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, r.mgr.Start(context.Background()))
	lab.Sh(t, "ip link del %s", lab.Near)
	for deadline := time.Now().Add(lab.Patience); len(r.mgr.Attachments()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the manager did not notice")
		}
	}
	lab.NoError(t, r.end())
	_, err = detach.Detach(lab.Near)
	lab.NoError(t, err)
	lab.NothingPinned(t, pin.Root)
}

// Another network namespace may have an interface of the same name: its pin is not ours.
func TestPinsBelongToANamespace(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	r, err := startPinned(pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, r.end())
	lab.InPeer(t, func() error {
		if _, err := detach.Detach(lab.Near); !errors.Is(err, detach.ErrNothing) {
			return fmt.Errorf("detached from another namespace: %w", err)
		}
		p, err := pin.Open(pin.Options{Name: "test", Interfaces: []string{lab.Near}})
		if err != nil {
			return err
		}
		defer p.Close()
		if err := p.Match(nil, &loader.Options{}); !errors.Is(err, pin.ErrDiffers) || strings.Contains(err.Error(), "named") {
			return fmt.Errorf("adopted in another namespace: %w", err)
		}
		return nil
	})
	_, err = detach.Detach(lab.Near)
	lab.NoError(t, err)
}

// A pinned link whose interface was deleted and made again (ENOLINK) is replaced; the counts stay.
func TestAdoptionAfterInterfaceIsCreatedAgain(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Quiet(t)
	r, err := startPinned(pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, r.end())
	lab.SendFromPeer(t, 7)
	lab.Sh(t, "ip link del %s", lab.Near)
	lab.AddVeth(t)
	lab.Quiet(t)
	r, err = startPinned(pin.Options{Name: "test", Notice: t.Logf}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	lab.SendFromPeer(t, 8)
	if got := lab.SeenBy(t, r.inst); got != 15 {
		t.Errorf("%d packets counted, want 15", got)
	}
	lab.NoError(t, r.end())
	info := ownStatus(t)
	if len(info) != 1 || info[0].Pin != "test" || info[0].Interface != lab.Near {
		t.Errorf("status: %+v", info)
	}
}

// Another hook than the pinned one: the old attachment is detached, so that nothing is counted twice.
func TestAdoptionAtAnotherHook(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Quiet(t)
	for _, withoutTCX := range []bool{false, true} {
		t.Run(fmt.Sprintf("without TCX %t", withoutTCX), func(t *testing.T) { changeHooks(t, withoutTCX) })
	}
}

func changeHooks(t *testing.T, withoutTCX bool) {
	hooks := []attach.Options{{Hook: attach.HookTC}, {Hook: attach.HookXDP}, {Hook: attach.HookXDP, Mode: attach.ModeGeneric}, {Hook: attach.HookTC, Direction: attach.Both}, {Hook: attach.HookTC, Direction: attach.Egress}}
	want := uint64(0)
	for i, opts := range hooks {
		opts.WithoutTCX = withoutTCX
		r, err := startPinned(pin.Options{Name: "test"}, opts, lab.Near)
		lab.NoError(t, err)
		lab.NoError(t, r.end())
		if opts.Direction != attach.Egress {
			lab.SendFromPeer(t, 10)
			want += 10
		}
		if opts.Direction != "" {
			lab.NoError(t, lab.SendUDP(lab.FarIP, 3))
			want += 3
		}
		d, err := attach.Inspect(lab.Near)
		lab.NoError(t, err)
		if n, points := len(attach.Occupants(d)), map[bool]int{true: 2, false: 1}[opts.Direction == attach.Both]; n != points {
			t.Errorf("start %d: %d programs on the interface, want %d: %v", i, n, points, attach.Occupants(d))
		}
	}
	r, err := startPinned(pin.Options{Name: "test"}, hooks[0], lab.Near)
	lab.NoError(t, err)
	if got := lab.SeenBy(t, r.inst); got != want {
		t.Errorf("%d packets counted, want %d", got, want)
	}
	lab.NoError(t, r.end())
	_, err = detach.Detach(lab.Near)
	lab.NoError(t, err)
	lab.NothingPinned(t, pin.Root)
}

// Kernels below 5.16 cannot exchange two folders: the old one is renamed, and restored if the process dies then.
func TestSwapByStepping(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.NoError(t, pin.MountBPFFS(pin.Root, t.Logf))
	dir := filepath.Join(pin.Root, "xdpmon-swap")
	current, next := filepath.Join(dir, pin.CurrentPins), filepath.Join(dir, pin.NextPins)
	lab.NoError(t, os.MkdirAll(filepath.Join(current, "a"), 0o700))
	lab.NoError(t, os.MkdirAll(filepath.Join(next, "b"), 0o700))
	lab.NoError(t, pin.SwapByStepping(next, current))
	if _, err := os.Stat(filepath.Join(current, "b")); err != nil {
		t.Error(err)
	}
	lab.NoError(t, os.MkdirAll(next, 0o700))
	lab.NoError(t, os.Rename(current, current+pin.AsideSuffix)) // killed here
	lab.NoError(t, pin.RecoverPins(dir))
	if _, err := os.Stat(filepath.Join(current, "b")); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestPinNames(t *testing.T) {
	for _, name := range []string{"", "../x", "a.b", "a/b", strings.Repeat("a", 64), "-a"} {
		if _, err := pin.Open(pin.Options{Name: name}); !errors.Is(err, attach.ErrUsage) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"eth0.100", "fridge/.bss", "a~1b", "a~0.b"} {
		if got := pin.NameOfPin(pin.PinName(name)); got != name {
			t.Errorf("%s was decoded as %s", name, got)
		}
	}
	if pin.PinName("eth0.100") == pin.PinName("eth0~100") || strings.Contains(pin.PinName("eth0.100"), ".") {
		t.Error("names of interfaces with dots must differ and have no dot")
	}
}

// A removed interface ends its pinned link: detach still removes the pin.
func TestDetachOfVanishedInterface(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	r, err := startPinned(pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, r.end())
	lab.Sh(t, "ip link del %s", lab.Near)
	info := ownStatus(t)
	if len(info) != 1 || !strings.Contains(info[0].Problem, "no interface any more") {
		t.Errorf("status: %+v", info)
	}
	removed, err := detach.Detach(lab.Near)
	lab.NoError(t, err)
	t.Log(removed)
	lab.NothingPinned(t, pin.Root)
	if _, err := detach.Detach(lab.Near); !errors.Is(err, detach.ErrNothing) {
		t.Errorf("got %v", err)
	}
}

// Packets of one interface are never reported as those of another; a further interface may be added.
func TestPinStaysWithItsInterface(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Quiet(t)
	lab.Sh(t, "ip link add xdpmon-k0 type bridge")
	r, err := startPinned(pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, r.end())
	before := pinState(t)
	_, err = startPinned(pin.Options{Name: "test"}, attach.Options{}, "xdpmon-k0")
	if !errors.Is(err, pin.ErrDiffers) || !strings.Contains(err.Error(), "interface "+lab.Near+" is pinned and was not named") {
		t.Errorf("the pin of %s for another interface: %v", lab.Near, err)
	}
	if after := pinState(t); !slices.Equal(before, after) {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	lab.SendFromPeer(t, 9)
	r, err = startPinned(pin.Options{Name: "test"}, attach.Options{}, "xdpmon-k0", lab.Near)
	lab.NoError(t, err)
	if got := lab.SeenBy(t, r.inst); got != 9 {
		t.Errorf("%d packets counted, want 9", got)
	}
	lab.NoError(t, r.end())
}

// A pin is detached by its name, an instance by its number, and both from a namespace that does not have the interface.
func TestDetachByPinAndByInstance(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	r, err := startPinned(pin.Options{Name: "test"}, attach.Options{Direction: attach.Both}, lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, r.end())
	elsewhere := func(name string) {
		t.Helper()
		lab.InPeer(t, func() error {
			removed, err := detach.Detach(name)
			t.Logf("%q", removed)
			return err
		})
	}
	elsewhere("test")
	lab.NothingPinned(t, pin.Root)
	lab.NothingLeft(t, lab.Near)

	c := lab.StartHelper(t, "attach tc")
	status := ownStatus(t)
	if len(status) == 0 || status[0].Instance == 0 {
		t.Fatalf("status: %+v", status)
	}
	elsewhere(fmt.Sprint(status[0].Instance))
	lab.NothingLeft(t, lab.Near)
	lab.NoError(t, c.Kill())
	for _, name := range []string{"test", fmt.Sprint(status[0].Instance), "0", "4294967295"} {
		if _, err := detach.Detach(name); !errors.Is(err, detach.ErrNothing) {
			t.Errorf("detach %s: %v", name, err)
		}
	}
}

// An attachment that was detached while its process ran leaves no pin when the process ends.
func TestDetachedPinIsRemovedWithItsProcess(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	r, err := startPinned(pin.Options{Name: "test"}, attach.Options{}, lab.Near)
	lab.NoError(t, err)
	removed, err := detach.Detach(lab.Near)
	lab.NoError(t, err)
	t.Log(removed)
	lab.NoError(t, r.end())
	lab.NothingPinned(t, pin.Root)
}

// A start that was killed before it pinned anything leaves a folder, which is removed. A folder that a process uses stays.
func TestEmptyPinFoldersGo(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.NoError(t, pin.MountBPFFS(pin.Root, t.Logf))
	lab.NoError(t, os.MkdirAll(filepath.Join(pin.Root, pin.PinFolder, "left", pin.NextPins, "maps"), 0o700))
	p, err := pin.Open(pin.Options{Name: "busy"})
	lab.NoError(t, err)
	if got := pin.Names(pin.Root); !slices.Equal(got, []string{"busy"}) {
		t.Errorf("pins after another one was opened: %v", got)
	}
	if _, err := detach.Detach(lab.Near); !errors.Is(err, detach.ErrNothing) {
		t.Error(err)
	}
	if got := pin.Names(pin.Root); !slices.Equal(got, []string{"busy"}) {
		t.Errorf("pins after a detach: %v", got)
	}
	lab.NoError(t, p.Close())
	lab.NothingPinned(t, pin.Root)
}

// A pin below a private mount is removed with the process: `ip netns exec` makes such a mount.
func TestPinBelowPrivateMountsIsWarnedOf(t *testing.T) {
	if !lab.Isolated(t) { // mounts its own /sys
		return
	}
	j := lab.NewJournal()
	p, err := pin.Open(pin.Options{Name: "test", Notice: j.Notice})
	lab.NoError(t, err)
	lab.NoError(t, p.Close())
	if !strings.Contains(j.Text(), "WARNING: the pin test will be removed with this process") {
		t.Errorf("notices: %q", j.Text())
	}
	if pin.IsPrivateMount("/usr") {
		t.Error("a mount of all processes is called private")
	}
}

func TestMain(m *testing.M) { lab.Main(m) }
