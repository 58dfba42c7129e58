package sweep

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/share"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// shareable are the algorithms whose programs instances can share, with their default parameters: those that only measure, from arrays.
func shareable(t *testing.T) (list []session.Selected) {
	t.Helper()
	for _, d := range algo.All() {
		values, err := algo.NewValues(d.Name, d.Params, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := session.Selected{Descriptor: d, Values: values}
		object, _ := objectOf(t, s)
		spec, err := object.Whole()
		if err == nil {
			err = share.Collection(spec, 2, share.NumberSpec())
		}
		switch {
		case object.Enforces:
		case errors.Is(err, share.ErrNotShared):
			t.Logf("%s is loaded for each instance: %v", d.Name, err)
		case err != nil:
			t.Fatal(err)
		default:
			list = append(list, s)
		}
	}
	if len(list) < 8 {
		t.Errorf("%d algorithms can be shared", len(list))
	}
	return list
}

// loadFor loads algorithms for a replay, among so many instances that share their programs.
func loadFor(t *testing.T, list []session.Selected, alike int) *loader.Instance {
	t.Helper()
	objects, instances, err := session.Objects(session.Config{Algorithms: list, Seed: 7}, true)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load(objects, loader.Options{Seed: 7, Replay: true, Alike: alike})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inst.Close() })
	if err := inst.Alone(); err != nil {
		t.Fatalf("it shares no programs: %v", err)
	}
	for n, o := range objects {
		set, err := inst.Set(o.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := instances[n].Bind(set); err != nil {
			t.Fatal(err)
		}
	}
	return inst
}

// wordsOf are all words of an instance's arrays, each CPU's added up.
func wordsOf(t *testing.T, inst *loader.Instance, list []session.Selected) map[string][][]uint64 {
	t.Helper()
	all := map[string][][]uint64{}
	for _, s := range list {
		set, err := inst.Set(s.Descriptor.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range set.Names() {
			a, err := set.Array(name)
			if err != nil {
				t.Fatal(err)
			}
			for bank := 0; bank < a.Banks && a.Kind != ""; bank++ {
				words, err := a.Read(bank, nil)
				if err != nil {
					t.Fatal(err)
				}
				all[name] = append(all[name], words)
			}
		}
	}
	return all
}

// feeder sends packets to an instance's entry program one by one, each at its time. The replay's own driver serves instances alone.
type feeder struct {
	entry *ebpf.Program
	coin  uint32
	last  int64
}

// feed replays the odd captures to an instance, and packets of a provider's mixture, IPv4 and IPv6. It stays on one core.
func feed(t *testing.T, inst *loader.Instance, seed uint64, odd frames) {
	t.Helper()
	entry, err := inst.Entry(loader.EntryConfig{Kind: loader.XDP, Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Close()
	testutil.OnOneCore(t)
	f := &feeder{entry: entry, coin: uint32(seed) | 1}
	for n := range odd {
		f.one(t, &odd[n])
	}
	for _, v6 := range []bool{false, true} {
		model, err := traffic.NewISP(traffic.ISPOptions{Packets: 2000, V6: v6, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		first := f.last
		var packer builder.Packer
		var p packet.Packet
		var frame packet.Frame
		for model.Next(&p) {
			if err := packer.Frame(&p, &frame); err != nil {
				t.Fatal(err)
			}
			frame.Time += first
			f.one(t, &frame)
		}
	}
}

// one sends a frame after its struct replay_meta.
func (f *feeder) one(t *testing.T, frame *packet.Frame) {
	t.Helper()
	f.coin += 0x9e3779b9
	f.last = max(f.last, frame.Time)
	n := min(len(frame.Data), 1500)
	b := binary.NativeEndian.AppendUint64(make([]byte, 0, 2048), uint64(max(frame.Time, 1)))
	b = binary.NativeEndian.AppendUint32(b, uint32(frame.Len))
	b = binary.NativeEndian.AppendUint32(b, f.coin|1)
	b = binary.NativeEndian.AppendUint64(b, 0)
	b = binary.NativeEndian.AppendUint32(b, 1)
	b = binary.NativeEndian.AppendUint32(b, uint32(n)<<16)
	meta := len(b)
	b = append(append(b, frame.Data[:n]...), make([]byte, max(0, 14-n))...)
	context := struct{ Data, End, Meta, Interface, Queue, Egress uint32 }{Data: uint32(meta), End: uint32(len(b))}
	if _, err := f.entry.Run(&ebpf.RunOptions{Data: b, Context: context}); err != nil {
		t.Fatal(err)
	}
}

// Instances that share their programs leave the same words as one alone does that is sent the same packets, in every array of every algorithm; one without
// packets keeps its initial words, whatever is sent to the other two.
func TestAlikeAnswers(t *testing.T) {
	testutil.NeedRoot(t)
	seed, odd, list := testutil.Seed(t), cornerFrames(t), shareable(t)
	alone := loadFor(t, list, 0)
	var alike [3]*loader.Instance
	for n := range alike {
		alike[n] = loadFor(t, list, len(alike))
	}
	before := wordsOf(t, alike[1], list)
	compareWords(t, "at the start", before, wordsOf(t, alone, list))
	feed(t, alike[2], seed, odd)
	feed(t, alike[0], seed+1, odd[:len(odd)/2])
	feed(t, alone, seed, odd)
	after := wordsOf(t, alike[2], list)
	compareWords(t, "after the same packets", after, wordsOf(t, alone, list))
	compareWords(t, "after other instances' packets", wordsOf(t, alike[1], list), before)
	changed := 0
	for name := range after {
		if !slices.EqualFunc(after[name], before[name], slices.Equal[[]uint64]) {
			changed++
		}
	}
	if changed < len(after)/3 {
		t.Errorf("packets have changed %d arrays of %d", changed, len(after))
	}
}

func compareWords(t *testing.T, when string, got, want map[string][][]uint64) {
	t.Helper()
	for name := range want {
		if !slices.EqualFunc(got[name], want[name], slices.Equal[[]uint64]) {
			t.Errorf("%s: %s differs", when, name)
		}
	}
}
