package loader

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

	"github.com/xdpmon/xdpmon/bpf/fridge"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// pinned runs the calls of a pinned start: open, match, load, attach, commit. What succeeds is left for the caller to close.
type pinned struct {
	pin  *Pin
	inst *Instance
	mgr  *Manager
}

func startPinned(o PinOptions, opts AttachOptions, ifaces ...string) (*pinned, error) {
	return startPinnedWith(nil, o, opts, ifaces...)
}

func startPinnedWith(objects []Object, o PinOptions, opts AttachOptions, ifaces ...string) (*pinned, error) {
	o.Interfaces = ifaces
	p, err := OpenPin(o)
	if err != nil {
		return nil, err
	}
	r := &pinned{pin: p}
	load := Options{Seed: 0}
	if !p.Adopts() {
		load.Seed = 42
	}
	if err := p.Match(objects, &load); err != nil {
		return nil, errors.Join(err, r.end())
	}
	if r.inst, err = Load(objects, load); err != nil {
		return nil, errors.Join(err, r.end())
	}
	r.mgr = NewManager(r.inst, ManagerOptions{Attach: opts, Pin: p, Reattach: true})
	if err := r.mgr.Attach(ifaces...); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// end is what a process does when it stops: the pin goes on.
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
	helpers["pinned"] = func(args []string) error {
		opts := AttachOptions{Hook: Hook(args[0]), Direction: Both}
		if args[0] == "clsact" {
			opts.Hook, opts.withoutTCX = HookTC, true
		}
		if _, err := startPinned(PinOptions{Name: "test"}, opts, near); err != nil {
			return err
		}
		sayReady()
		select {}
	}
}

// Packets are counted before the process is killed, while none runs, and after the next one has adopted the
// pin; none may be missing.
func TestAdoptionLosesNoCount(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	quiet(t)
	for _, hook := range []string{"tc", "xdp", "clsact"} {
		t.Run(hook, func(t *testing.T) { adoptAfterKill(t, hook) })
	}
}

func adoptAfterKill(t *testing.T, hook string) {
	c := startHelper(t, "pinned %s", hook)
	sendFromPeer(t, 30)
	noError(t, c.kill())
	sendFromPeer(t, 40)
	noError(t, sendUDP(farIP, 5))

	opts := AttachOptions{Hook: Hook(hook), Direction: Both, Notice: t.Logf}
	if hook == "clsact" {
		opts.Hook, opts.withoutTCX = HookTC, true
	}
	stop := make(chan struct{})
	sent := make(chan int)
	go keepSending(t, stop, sent) // while the programs are exchanged
	r, err := startPinned(PinOptions{Name: "test", Notice: t.Logf}, opts, near)
	close(stop)
	n := <-sent
	noError(t, err)
	if n == 0 {
		t.Error("no packet was sent while the programs were exchanged: the test says nothing about that")
	}
	sendFromPeer(t, 50)
	if got, want := seenBy(t, r.inst), uint64(30+40+5+n+50); got != want {
		t.Errorf("%d packets counted, %d were sent (%d during the adoption)", got, want, n)
	}
	if r.inst.opts.Seed != 42 {
		t.Errorf("seed %d, want that of the pin", r.inst.opts.Seed)
	}
	noError(t, r.end())
	sendFromPeer(t, 1)
	removed, err := Detach(near)
	noError(t, err)
	t.Log(strings.Join(removed, "\n"))
	nothingPinned(t, bpffsRoot)
	nothingLeft(t, near)
}

func keepSending(t *testing.T, stop <-chan struct{}, sent chan<- int) {
	n := 0
	for {
		select {
		case <-stop:
			sent <- n
			return
		default:
			sendFromPeer(t, 1)
			n++
		}
	}
}

// nothingPinned fails when a pin is left.
func nothingPinned(t *testing.T, root string) {
	t.Helper()
	_ = filepath.Walk(filepath.Join(root, pinFolder), func(path string, _ os.FileInfo, err error) error {
		if err == nil {
			t.Errorf("still there: %s", path)
		}
		return nil
	})
}

// pinState is everything below a pin and what runs on the interface, to compare before with after.
func pinState(t *testing.T) []string {
	t.Helper()
	var state []string
	_ = filepath.Walk(filepath.Join(bpffsRoot, pinFolder), func(path string, _ os.FileInfo, err error) error {
		if err == nil {
			state = append(state, path)
		}
		return nil
	})
	d, err := inspect(near)
	noError(t, err)
	for _, o := range occupants(d) {
		state = append(state, fmt.Sprintf("%s %s program %d link %d", o.Via, o.Direction, o.Program, o.Link))
	}
	return state
}

// Every step of pinning fails once, at the first start and at an adoption. What was there before is what must be
// there afterwards, and it must still count.
func TestFailedPinIsRolledBack(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	quiet(t)
	opts := AttachOptions{Hook: HookXDP, Direction: Both} // TCX at egress: both kinds of link
	noError(t, mountBPFFS(bpffsRoot, t.Logf))
	first := failures(t, opts)
	if first < 10 {
		t.Errorf("only %d steps failed at the first start", first)
	}
	r, err := startPinned(PinOptions{Name: "test"}, opts, near)
	noError(t, err)
	noError(t, r.end())
	sendFromPeer(t, 11)
	adoption := failures(t, opts)
	if adoption < 10 {
		t.Errorf("only %d steps failed at the adoption", adoption)
	}
	sendFromPeer(t, 12)
	r, err = startPinned(PinOptions{Name: "test"}, opts, near)
	noError(t, err)
	if got := seenBy(t, r.inst); got != 23 {
		t.Errorf("%d packets counted after the failures, want 23", got)
	}
	noError(t, r.end())
	_, err = Detach(near)
	noError(t, err)
	nothingPinned(t, bpffsRoot)
}

// ownStatus is Status without what other tests on this machine have attached in their namespaces.
func ownStatus(t *testing.T) []AttachmentInfo {
	t.Helper()
	info, err := Status()
	noError(t, err)
	return slices.DeleteFunc(info, func(a AttachmentInfo) bool {
		return a.Interface == "" && a.Pin == "" && !slices.Contains(a.PIDs, os.Getpid())
	})
}

var errInjected = errors.New("injected")

// failures lets the first step fail, then the second, and so on until a start succeeds; that one is not committed
// either. It returns the number of steps.
func failures(t *testing.T, opts AttachOptions) int {
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
		o.fail = fail
		done := false
		r, err := startPinned(PinOptions{Name: "test", fail: func(step string) error {
			if steps == n && step == "swap" {
				done = true
				return errInjected
			}
			return fail(step)
		}}, o, near)
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
	if !isolated(t) {
		return
	}
	veth(t)
	r, err := startPinned(PinOptions{Name: "test", Notice: t.Logf}, AttachOptions{}, near)
	noError(t, err)
	if _, err := OpenPin(PinOptions{Name: "test"}); !errors.Is(err, ErrPinInUse) {
		t.Errorf("a pin in use was opened: %v", err)
	}
	noError(t, r.end())

	p, err := OpenPin(PinOptions{Name: "test", Interfaces: []string{near}})
	noError(t, err)
	defer p.Close()
	for name, tc := range map[string]struct {
		objects []Object
		opts    Options
	}{
		"seed: 42 pinned, 43 asked for":         {nil, Options{Seed: 43}},
		"algorithms:  pinned, toy asked for":    {[]Object{toy(8)}, Options{}},
		"CRC hashes: false pinned, true asked":  {nil, Options{CRC: true}},
		"decapsulation: false pinned, true ask": {nil, Options{Decap: true}},
	} {
		err := p.Match(tc.objects, &tc.opts)
		if !errors.Is(err, ErrPinDiffers) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "xdpmon detach test") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fridgeObject is a real algorithm with n entries.
func fridgeObject(t *testing.T, n uint32) []Object {
	t.Helper()
	spec, err := fridge.LoadFridge()
	noError(t, err)
	noError(t, xmaps.SetEntries(spec, "fridge_entries", n))
	return []Object{{Name: "fridge", Spec: spec}}
}

func TestAdoptionKeepsRegisters(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	first, err := startPinnedWith(fridgeObject(t, 4096), PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	before := mapIDs(t, first.inst)
	noError(t, first.inst.Maps()["fridge/fridge_entries"].Put(uint32(17), uint64(0x1234)))
	noError(t, first.end())

	second, err := startPinnedWith(fridgeObject(t, 4096), PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	if after := mapIDs(t, second.inst); !maps.Equal(before, after) {
		t.Errorf("maps before %v, after %v", before, after)
	}
	var word uint64
	noError(t, second.inst.Maps()["fridge/fridge_entries"].Lookup(uint32(17), &word))
	if word != 0x1234 {
		t.Errorf("register reads %#x", word)
	}
	if info := ownStatus(t); len(info) != 1 || !slices.Equal(info[0].Algorithms, []string{"fridge"}) {
		t.Errorf("status: %+v", info)
	}
	noError(t, second.end())

	_, err = startPinnedWith(fridgeObject(t, 8192), PinOptions{Name: "test"}, AttachOptions{}, near)
	if !errors.Is(err, ErrPinDiffers) || !strings.Contains(err.Error(), "fridge map fridge_entries: Array of 4096 entries") {
		t.Errorf("another size: %v", err)
	}
	_, err = Detach(near)
	noError(t, err)
	nothingPinned(t, bpffsRoot)
}

func mapIDs(t *testing.T, inst *Instance) map[string]ebpf.MapID {
	t.Helper()
	ids := map[string]ebpf.MapID{}
	for name, m := range inst.Maps() {
		info, err := m.Info()
		noError(t, err)
		ids[name], _ = info.ID()
	}
	return ids
}

// toy is an object with one array of n entries.
func toy(n uint32) Object {
	return Object{Name: "toy", Spec: &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"cells": {Name: "cells", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: n}},
		Programs: map[string]*ebpf.ProgramSpec{"toy_xdp": {Type: ebpf.XDP, Instructions: asm.Instructions{asm.Return()}}},
	}}
}

func TestDifferencesNameTheSize(t *testing.T) {
	small, large := describeObjects([]Object{toy(8)}, Options{}), describeObjects([]Object{toy(16)}, Options{})
	diffs := small.differences(large)
	if len(diffs) != 1 || !strings.Contains(diffs[0], "toy map cells: Array of 8 entries") || !strings.Contains(diffs[0], "Array of 16 entries") {
		t.Errorf("got %q", diffs)
	}
	if diffs := small.differences(small); diffs != nil {
		t.Errorf("a pin differs from itself: %q", diffs)
	}
}

// A pinned interface goes while the process runs: the pin can still be removed by its name.
func TestDetachOfWaitingInterface(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	r, err := startPinned(PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	noError(t, r.mgr.Start(context.Background()))
	sh(t, "ip link del %s", near)
	for deadline := time.Now().Add(patience); len(r.mgr.Attachments()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the manager did not notice")
		}
	}
	noError(t, r.end())
	_, err = Detach(near)
	noError(t, err)
	nothingPinned(t, bpffsRoot)
}

// Another network namespace may have an interface of the same name: its pin is none of ours.
func TestPinsBelongToANamespace(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	r, err := startPinned(PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	noError(t, r.end())
	inPeer(t, func() error {
		if _, err := Detach(near); !errors.Is(err, ErrNothingAttached) {
			return fmt.Errorf("detached from another namespace: %w", err)
		}
		p, err := OpenPin(PinOptions{Name: "test", Interfaces: []string{near}})
		if err != nil {
			return err
		}
		defer p.Close()
		if err := p.Match(nil, &Options{}); !errors.Is(err, ErrPinDiffers) || strings.Contains(err.Error(), "named") {
			return fmt.Errorf("adopted in another namespace: %w", err)
		}
		return nil
	})
	_, err = Detach(near)
	noError(t, err)
}

// A pinned link whose interface was deleted and made again (ENOLINK) is replaced; the counts stay.
func TestAdoptionAfterInterfaceCameBack(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	quiet(t)
	r, err := startPinned(PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	noError(t, r.end())
	sendFromPeer(t, 7)
	sh(t, "ip link del %s", near)
	addVeth(t)
	quiet(t)
	r, err = startPinned(PinOptions{Name: "test", Notice: t.Logf}, AttachOptions{}, near)
	noError(t, err)
	sendFromPeer(t, 8)
	if got := seenBy(t, r.inst); got != 15 {
		t.Errorf("%d packets counted, want 15", got)
	}
	noError(t, r.end())
	info := ownStatus(t)
	if len(info) != 1 || info[0].Pin != "test" || info[0].Interface != near {
		t.Errorf("status: %+v", info)
	}
}

// Another hook than the pinned one: the old attachment is taken off, so that nothing is counted twice.
func TestAdoptionAtAnotherHook(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	quiet(t)
	for _, withoutTCX := range []bool{false, true} {
		t.Run(fmt.Sprintf("without TCX %t", withoutTCX), func(t *testing.T) { changeHooks(t, withoutTCX) })
	}
}

func changeHooks(t *testing.T, withoutTCX bool) {
	hooks := []AttachOptions{{Hook: HookTC}, {Hook: HookXDP}, {Hook: HookXDP, Mode: ModeGeneric}, {Hook: HookTC, Direction: Both}, {Hook: HookTC, Direction: Egress}}
	want := uint64(0)
	for i, opts := range hooks {
		opts.withoutTCX = withoutTCX
		r, err := startPinned(PinOptions{Name: "test"}, opts, near)
		noError(t, err)
		noError(t, r.end())
		if opts.Direction != Egress {
			sendFromPeer(t, 10)
			want += 10
		}
		if opts.Direction != "" {
			noError(t, sendUDP(farIP, 3))
			want += 3
		}
		d, err := inspect(near)
		noError(t, err)
		if n, points := len(occupants(d)), map[bool]int{true: 2, false: 1}[opts.Direction == Both]; n != points {
			t.Errorf("start %d: %d programs on the interface, want %d: %v", i, n, points, occupants(d))
		}
	}
	r, err := startPinned(PinOptions{Name: "test"}, hooks[0], near)
	noError(t, err)
	if got := seenBy(t, r.inst); got != want {
		t.Errorf("%d packets counted, want %d", got, want)
	}
	noError(t, r.end())
	_, err = Detach(near)
	noError(t, err)
	nothingPinned(t, bpffsRoot)
}

// Kernels below 5.16 cannot exchange two folders: the old one steps aside, and comes back if the process dies then.
func TestSwapByStepping(t *testing.T) {
	if !isolated(t) {
		return
	}
	noError(t, mountBPFFS(bpffsRoot, t.Logf))
	dir := filepath.Join(bpffsRoot, "xdpmon-swap")
	current, next := filepath.Join(dir, currentPins), filepath.Join(dir, nextPins)
	noError(t, os.MkdirAll(filepath.Join(current, "a"), 0o700))
	noError(t, os.MkdirAll(filepath.Join(next, "b"), 0o700))
	noError(t, swapByStepping(next, current))
	if _, err := os.Stat(filepath.Join(current, "b")); err != nil {
		t.Error(err)
	}
	noError(t, os.MkdirAll(next, 0o700))
	noError(t, os.Rename(current, current+asideSuffix)) // killed here
	noError(t, recoverPins(dir))
	if _, err := os.Stat(filepath.Join(current, "b")); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestPinNames(t *testing.T) {
	for _, name := range []string{"", "../x", "a.b", "a/b", strings.Repeat("a", 64), "-a"} {
		if _, err := OpenPin(PinOptions{Name: name}); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"eth0.100", "fridge/.bss", "a~1b", "a~0.b"} {
		if got := nameOfPin(pinName(name)); got != name {
			t.Errorf("%s came back as %s", name, got)
		}
	}
	if pinName("eth0.100") == pinName("eth0~100") || strings.Contains(pinName("eth0.100"), ".") {
		t.Error("names of interfaces with dots must be told apart and hold no dot")
	}
}

// An interface that vanished takes its pinned link along: detach still removes the pin.
func TestDetachOfVanishedInterface(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	r, err := startPinned(PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	noError(t, r.end())
	sh(t, "ip link del %s", near)
	info := ownStatus(t)
	if len(info) != 1 || !strings.Contains(info[0].Problem, "no interface any more") {
		t.Errorf("status: %+v", info)
	}
	removed, err := Detach(near)
	noError(t, err)
	t.Log(removed)
	nothingPinned(t, bpffsRoot)
	if _, err := Detach(near); !errors.Is(err, ErrNothingAttached) {
		t.Errorf("got %v", err)
	}
}

// What passed one interface is never reported as another's; a further one may join.
func TestPinStaysWithItsInterface(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	quiet(t)
	sh(t, "ip link add xdpmon-k0 type bridge")
	r, err := startPinned(PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	noError(t, r.end())
	before := pinState(t)
	_, err = startPinned(PinOptions{Name: "test"}, AttachOptions{}, "xdpmon-k0")
	if !errors.Is(err, ErrPinDiffers) || !strings.Contains(err.Error(), "interface "+near+" is pinned and was not named") {
		t.Errorf("the pin of %s for another interface: %v", near, err)
	}
	if after := pinState(t); !slices.Equal(before, after) {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	sendFromPeer(t, 9)
	r, err = startPinned(PinOptions{Name: "test"}, AttachOptions{}, "xdpmon-k0", near)
	noError(t, err)
	if got := seenBy(t, r.inst); got != 9 {
		t.Errorf("%d packets counted, want 9", got)
	}
	noError(t, r.end())
}

// A pin is detached by its name, an instance by its number, and both from a namespace that does not have the interface.
func TestDetachByPinAndByInstance(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	r, err := startPinned(PinOptions{Name: "test"}, AttachOptions{Direction: Both}, near)
	noError(t, err)
	noError(t, r.end())
	elsewhere := func(name string) {
		t.Helper()
		inPeer(t, func() error {
			removed, err := Detach(name)
			t.Logf("%q", removed)
			return err
		})
	}
	elsewhere("test")
	nothingPinned(t, bpffsRoot)
	nothingLeft(t, near)

	c := startAttached(t, "tc")
	status := ownStatus(t)
	if len(status) == 0 || status[0].Instance == 0 {
		t.Fatalf("status: %+v", status)
	}
	elsewhere(fmt.Sprint(status[0].Instance))
	nothingLeft(t, near)
	noError(t, c.kill())
	for _, name := range []string{"test", fmt.Sprint(status[0].Instance), "0", "4294967295"} {
		if _, err := Detach(name); !errors.Is(err, ErrNothingAttached) {
			t.Errorf("detach %s: %v", name, err)
		}
	}
}

// What was detached while its process ran is not left behind when that ends.
func TestDetachedPinGoesWithItsProcess(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	r, err := startPinned(PinOptions{Name: "test"}, AttachOptions{}, near)
	noError(t, err)
	removed, err := Detach(near)
	noError(t, err)
	t.Log(removed)
	noError(t, r.end())
	nothingPinned(t, bpffsRoot)
}

// A start that was killed before it pinned anything leaves a folder. One that a process works on stays.
func TestEmptyPinFoldersGo(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	noError(t, mountBPFFS(bpffsRoot, t.Logf))
	noError(t, os.MkdirAll(filepath.Join(bpffsRoot, pinFolder, "left", nextPins, "maps"), 0o700))
	p, err := OpenPin(PinOptions{Name: "busy"})
	noError(t, err)
	if got := pinsUnder(bpffsRoot); !slices.Equal(got, []string{"busy"}) {
		t.Errorf("pins after another one was opened: %v", got)
	}
	if _, err := Detach(near); !errors.Is(err, ErrNothingAttached) {
		t.Error(err)
	}
	if got := pinsUnder(bpffsRoot); !slices.Equal(got, []string{"busy"}) {
		t.Errorf("pins after a detach: %v", got)
	}
	noError(t, p.Close())
	nothingPinned(t, bpffsRoot)
}

// A pin below a mount that nobody else sees is gone with the process: `ip netns exec` makes such.
func TestPinBelowPrivateMountsIsWarnedOf(t *testing.T) {
	if !isolated(t) { // mounts its own /sys
		return
	}
	j := newJournal()
	p, err := OpenPin(PinOptions{Name: "test", Notice: j.notice})
	noError(t, err)
	noError(t, p.Close())
	if !strings.Contains(j.text(), "WARNING: the pin test will be gone with this process") {
		t.Errorf("it said %q", j.text())
	}
	if isPrivateMount("/usr") {
		t.Error("a mount that everybody has is called private")
	}
}
