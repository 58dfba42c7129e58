package beaucoup

import (
	"errors"
	"io"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// All cores have the packets of the same keys at the same time, each in another order. Coupons are a union, so that what
// is collected is what one core collects; a key alerts once. If a collector starts on two cores at once, one may write its
// first coupon over the other's: a collector may lack one coupon a core, and never has one too many.
func TestAllCoresOnTheSameKeys(t *testing.T) {
	const keys, each, seed = 50, 300, 21
	if runtime.NumCPU() < 2 {
		t.Skip("one core has no races")
	}
	set := map[string]string{"queries": stays + "; ports: count distinct dport by src > 60000 in 10m if vlan=9"}
	model := &scans{keys: keys, each: each, gap: 1000}
	one := start(t, set, true, seed)
	feedAll(t, one.inst, model)
	want, _, _ := one.window(t, traffic.Start+keys*each*1000)

	all := start(t, set, false, seed)
	entry, err := all.inst.Entry(loader.EntryConfig{Kind: loader.XDP, IfIndex: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Close()
	frames := framesOf(t, &scans{keys: keys, each: each, gap: 1000})
	onEveryCore(t, func(core int) error { return runAll(entry, frames, core) })
	got, used, _ := all.window(t, monotonic(t))
	if sent := uint64(len(frames) * runtime.NumCPU()); used != sent {
		t.Errorf("%d packets were sent and %d counted", sent, used)
	}
	lacking := missing(t, one, all)
	t.Logf("%d coupons lacking of %d collectors", lacking, keys)
	for key, times := range alertsOf(t, &got, "stays") {
		if times != 1 {
			t.Errorf("%s: %d alerts", key, times)
		}
	}
	if a, b := len(alertsOf(t, &got, "stays")), len(alertsOf(t, &want, "stays")); a > b || a < b-lacking {
		t.Errorf("%d keys alert on all cores and %d on one, with %d coupons lacking", a, b, lacking)
	}
}

// missing counts the coupons of the registers that got lacks; it must have no other.
func missing(t *testing.T, want, got *running) (n int) {
	t.Helper()
	w, g := registers(t, want), registers(t, got)
	for slot := range w {
		if g[slot]&^w[slot] != 0 {
			t.Errorf("collector %d has coupons %x that it has not drawn", slot, g[slot]&^w[slot])
		}
		if lacks := bits.OnesCount64(w[slot] &^ g[slot]); lacks > runtime.NumCPU()-1 {
			t.Errorf("collector %d lacks %d coupons", slot, lacks)
		}
		n += bits.OnesCount64(w[slot] &^ g[slot])
	}
	return n
}

func registers(t *testing.T, r *running) []uint64 {
	t.Helper()
	array, err := r.set.Array("beaucoup_vectors")
	if err != nil {
		t.Fatal(err)
	}
	words, err := array.Read(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for slot := range words { // above are the ends of windows, in the clocks of the packets
		words[slot] &= math.MaxUint32
	}
	return words
}

func framesOf(t *testing.T, m traffic.Model) (frames [][]byte) {
	t.Helper()
	src := traffic.Frames(m)
	for {
		var f packet.Frame
		if err := src.Next(&f); errors.Is(err, io.EOF) {
			return frames
		} else if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, append([]byte(nil), f.Data...))
	}
}

// runAll sends every frame to the program, starting with another key.
func runAll(entry *ebpf.Program, frames [][]byte, core int) error {
	for n := range frames {
		if _, err := entry.Run(&ebpf.RunOptions{Data: frames[(n+core)%len(frames)]}); err != nil {
			return err
		}
	}
	return nil
}

func onEveryCore(t *testing.T, f func(core int) error) {
	t.Helper()
	var wait sync.WaitGroup
	for core := range runtime.NumCPU() {
		wait.Add(1)
		go func() {
			defer wait.Done()
			runtime.LockOSThread() // not unlocked: the thread ends with its affinity
			var cpus unix.CPUSet
			cpus.Set(core)
			if err := unix.SchedSetaffinity(0, &cpus); err != nil {
				t.Error(err)
				return
			}
			if err := f(core); err != nil {
				t.Error(err)
			}
		}()
	}
	wait.Wait()
}
