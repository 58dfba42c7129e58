package ahab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/ahab"
	configured "github.com/xdpmon/xdpmon/userspace/ahab/slices"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/session"
)

const sound = `capacity: 10Mbit
slices:
  - name: a
    weight: 2
    floor: 1Mbit
    ceiling: 9Mbit
    user: source
    match: {sources: [10.0.0.0/8]}
    users: [{prefix: 10.1.0.0/16, weight: 3}]
  - name: b
    match: {vlans: [5], marks: [1, 2]}
  - name: rest
`

// 200 files that are damaged somewhere, one after the other while packets are looked up: what is refused is reported with its place, and changes
// neither what slices may take nor who belongs to them.
func TestMutationsUnderTraffic(t *testing.T) {
	testutil.NeedRoot(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "slices.yaml")
	written := time.Now()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		written = written.Add(time.Second) // each is another file
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	write(sound)
	d, err := algo.Lookup(ahab.Name)
	if err != nil {
		t.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, map[string]string{"config": path})
	if err != nil {
		t.Fatal(err)
	}
	notices, last := 0, ""
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Seed: 1,
		Notice: func(format string, args ...any) { notices, last = notices+1, fmt.Sprintf(format, args...) }}, false)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load(objects, loader.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	set, err := inst.Set(ahab.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := instances[0].Bind(set); err != nil {
		t.Fatal(err)
	}
	program, err := inst.Entry(loader.EntryConfig{Kind: loader.XDP, IfIndex: 1, Frags: true})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	state := func() []uint64 {
		t.Helper()
		elements, err := set.Array("ahab_slices")
		if err != nil {
			t.Fatal(err)
		}
		words, err := elements.Read(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		members, err := set.Array("ahab_members")
		if err != nil {
			t.Fatal(err)
		}
		all, err := members.Read(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		words = slices.Clone(words)
		for n := 5; n < len(words); n += 6 { // until when nobody is limited: renewed by every tick
			words[n] = 0
		}
		return append(words, all...)
	}
	now := int64(1)
	tick := func() {
		t.Helper()
		if _, err := program.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 20}); err != nil {
			t.Fatal(err)
		}
		now += int64(250 * time.Millisecond)
		if err := instances[0].(algo.Controller).Tick(now); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		tick()
	}
	refused := 0
	for refused < 200 {
		text := testutil.MutateText(rng, sound)
		_, err := configured.Parse(path, []byte(text))
		var problems *config.Error
		if !errors.As(err, &problems) {
			continue // a file like any other
		}
		if !strings.HasPrefix(err.Error(), path+":") {
			t.Fatalf("%v stands nowhere", err)
		}
		refused++
		before, earlier := state(), notices
		write(text)
		for tick(); notices == earlier; { // a file may be read during ticks
			tick()
		}
		if notices != earlier+1 {
			t.Fatalf("%d messages of %q", notices-earlier, text)
		}
		if !slices.Equal(before, state()) {
			t.Fatalf("what was refused has changed something: %q", text)
		}
	}
	write(strings.Replace(sound, "10Mbit", "20Mbit", 1)) // one that is right is taken
	before := state()
	for deadline := time.Now().Add(time.Minute); slices.Equal(before, state()); {
		if tick(); time.Now().After(deadline) {
			t.Fatal("a file that is right has changed nothing")
		}
	}
	var large strings.Builder // the loop runs while it is read, or limits would end with their lease
	large.WriteString("capacity: 10Mbit\nroom: 4\nslices:\n")
	for n := range 16_000 {
		fmt.Fprintf(&large, "  - {name: s%d, weight: %d, match: {sources: [10.1.%d.%d]}}\n", n, n%9+1, n>>8, n&255)
	}
	earlier := notices
	write(large.String())
	if tick(); notices != earlier {
		t.Fatal("the loop has waited for a file of 16,000 slices")
	}
	for notices == earlier {
		tick()
	}
	before, earlier = state(), notices // a folder in the place of the file is reported, once
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		tick()
	}
	if notices != earlier+1 || !strings.Contains(last, "no regular file") || !slices.Equal(before, state()) {
		t.Errorf("%d messages of a folder, the last %q", notices-earlier, last)
	}
}
