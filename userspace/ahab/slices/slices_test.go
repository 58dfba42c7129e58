package slices

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/maps/prefix"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/config"
)

const whole1 = `# all that there is
capacity: 1Gbit
room: 100
slices:
  - name: gold
    weight: 2
    floor: 100Mbit
    ceiling: 500Mbit
    user: source
    prefix4: 24
    prefix6: 64
    match: {sources: [10.0.0.0/8, "2001:db8::/32"]}
    slices:
      - name: web
        match: {destinations: [192.0.2.0/24], sources: [10.1.0.0/16]}
        users: [{prefix: 10.1.2.0/24, weight: 3}]
      - name: rest
  - name: guests
    match: {interfaces: ["vnet*"], each: true, vlans: [5, 6]}
    user: destination
    users: [{prefix: 203.0.113.7, weight: 1000}]
  - name: marked
    match: {marks: [7]}
  - name: others
`

var around = []Interface{{"lo", 1}, {"eth0", 2}, {"vnet1", 3}, {"vnet2", 4}}

func plan(t *testing.T, text string) *Plan {
	t.Helper()
	f, err := Parse("slices.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Plan(around, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func trie(t *testing.T, p *Plan) *prefix.Trie {
	t.Helper()
	trie, err := prefix.Build(p.Roots, p.Rules, 0)
	if err != nil {
		t.Fatal(err)
	}
	return trie
}

func (p *Plan) name(number uint32) string {
	for _, l := range p.Leaves {
		if l.Number == int(number) {
			return l.Name
		}
	}
	return "-"
}

func packet(index, vlan, mark uint32, src, dst string) packetOf {
	a := netip.MustParseAddr(src)
	return packetOf{index, vlan, mark, prefix.KeyOf(a), prefix.KeyOf(netip.MustParseAddr(dst)), a.Is6()}
}

// Who belongs where, and what its user weighs.
func TestMembers(t *testing.T) {
	p := plan(t, whole1)
	members := trie(t, p)
	for _, c := range []struct {
		packet packetOf
		want   string
		weight uint32
	}{
		{packet(2, 0, 0, "10.1.2.3", "192.0.2.9"), "gold/web", 3},
		{packet(2, 0, 0, "10.1.3.3", "192.0.2.9"), "gold/web", 1},
		{packet(2, 0, 0, "10.1.2.3", "192.0.3.9"), "gold/rest", 1},
		{packet(2, 0, 0, "10.2.2.3", "192.0.2.9"), "gold/rest", 1},
		{packet(2, 0, 0, "2001:db8:5::1", "2001:db8::1"), "gold/rest", 1},
		{packet(2, 0, 0, "2001:db9::1", "2001:db8::1"), "others", 1},
		{packet(2, 0, 0, "192.0.2.1", "10.0.0.1"), "others", 1},
		{packet(2, 5, 0, "192.0.2.1", "10.0.0.1"), "others", 1},
		{packet(3, 5, 0, "192.0.2.1", "10.0.0.1"), "guests/vnet1", 1},
		{packet(4, 6, 0, "10.1.2.3", "192.0.2.9"), "guests/vnet2", 1}, // an interface decides before an address
		{packet(4, 6, 0, "10.1.2.3", "203.0.113.7"), "guests/vnet2", 1000},
		{packet(4, 7, 0, "10.1.2.3", "192.0.2.9"), "gold/web", 3},
		{packet(2, 0, 7, "10.1.2.3", "192.0.2.9"), "marked", 1},
		{packet(3, 5, 7, "10.1.2.3", "192.0.2.9"), "guests/vnet1", 1},
	} {
		slice, weight := find(members, c.packet)
		if got := p.name(slice); got != c.want || weight != c.weight {
			t.Errorf("%+v: %s with weight %d, want %s with %d", c.packet, got, weight, c.want, c.weight)
		}
	}
}

// What the file states reaches the tree and the slices.
func TestTree(t *testing.T) {
	p := plan(t, whole1)
	var names []string
	for _, l := range p.Leaves {
		names = append(names, fmt.Sprint(l.Name, " ", l.Number))
	}
	if got := strings.Join(names, ", "); got != "guests/vnet1 1, guests/vnet2 2, marked 3, others 4, gold/web 5, gold/rest 6" {
		t.Error(got)
	}
	gold := p.Nodes[1]
	if p.Nodes[0].Ceiling != 125e6 || p.Nodes[0].Count != 5 || gold.Weight != 2 || gold.Floor != 12.5e6 || gold.Ceiling != 62.5e6 || gold.Count != 2 {
		t.Errorf("%+v", p.Nodes[:2])
	}
	if web := p.Leaves[4]; web.User != 1<<26|24<<28|64<<34 {
		t.Errorf("a user of %s is %#x", web.Name, web.User)
	}
	if l := p.Leaves[0]; l.User != 2<<26|32<<28|128<<34 || int(l.Full) != 125_000_000/6 {
		t.Errorf("%+v", l)
	}
}

// A slice that stays keeps its number, whatever appears and leaves around it; a number of one that left is given again.
func TestNumbersStay(t *testing.T) {
	f, err := Parse("f", []byte(whole1))
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Plan(around, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Plan([]Interface{{"vnet2", 4}, {"vnet3", 9}}, first)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	for _, l := range first.Leaves {
		numbers[l.Name] = l.Number
	}
	for _, l := range second.Leaves {
		if l.Name == "guests/vnet3" {
			if l.Number != numbers["guests/vnet1"] {
				t.Errorf("%s has number %d", l.Name, l.Number)
			}
		} else if l.Number != numbers[l.Name] {
			t.Errorf("%s had number %d and has %d", l.Name, numbers[l.Name], l.Number)
		}
	}
}

// Interfaces beyond the room pass, and are named.
func TestNoRoom(t *testing.T) {
	f, err := Parse("f", []byte("room: 2\nslices: [{name: g, match: {interfaces: ['*'], each: true}}]"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Plan(around, nil)
	if err != nil || len(p.Leaves) != 2 || strings.Join(p.Left, " ") != "vnet1 vnet2" {
		t.Errorf("%+v, %v", p, err)
	}
}

// Everything that can be wrong is refused where it stands.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty: slices are missing"},
		{"slices: []", "1:9: slices is empty"},
		{"slices:\n  - weight: 1", "2:5: a slice lacks name"},
		{"capacity: 5\nslices: [{name: a}]", `1:11: capacity "5" is no rate like 100Mbit or 2.5Gbit`},
		{"capacity: -5Mbit\nslices: [{name: a}]", "allowed are 8kbit to 1Tbit"},
		{"capacity: NaNMbit\nslices: [{name: a}]", "allowed are 8kbit"},
		{"slices:\n  - {name: a}\n  - {name: a, match: {vlans: [1]}}", "3:5: slice a: line 2 has a slice of this name"},
		{"slices:\n  - {name: a}\n  - {name: b}", "3:5: slice b: the same belongs to slice a in line 2"},
		{"slices:\n  - {name: a, weight: 0}", "2:23: weight"},
		{"slices:\n  - {name: a, weight: 1001}", "from 1 to 1000"},
		{"slices:\n  - {name: a, floor: 2Mbit, ceiling: 1Mbit}", "slice a: its floor is 2Mbit, its ceiling 1Mbit"},
		{"capacity: 3Mbit\nslices:\n  - {name: a, floor: 2Mbit}\n  - {name: b, floor: 2Mbit, match: {marks: [1]}}", "1:1: the floors of the slices in it add up to 4Mbit, capacity is 3Mbit"},
		{"slices:\n  - {name: a, match: {sources: [10.0.0.1/8]}}", "is 10.0.0.0/8 meant?"},
		{"slices:\n  - {name: a, match: {sources: [10.0.0/8]}}", `"10.0.0/8" is no prefix`},
		{"slices:\n  - {name: a, match: {sources: ['::ffff:1.2.3.4']}}", "is no prefix"},
		{"slices:\n  - {name: a, match: {vlans: [4096]}}", "from 0 to 4095"},
		{"slices:\n  - {name: a, match: {each: true}}", "name them in interfaces"},
		{"slices:\n  - {name: a, match: {interfaces: ['a b']}}", "a name or a pattern"},
		{"slices:\n  - name: a\n    match: {sources: [10.0.0.0/8]}\n    slices: [{name: b, match: {sources: [11.0.0.0/8]}}]", "4:14: slice b: source 11.0.0.0/8 does not belong to slice a"},
		{"slices:\n  - name: a\n    match: {vlans: [1]}\n    slices: [{name: b, match: {vlans: [2]}}]", "VLAN 2 does not belong to slice a"},
		{"slices:\n  - name: a\n    match: {interfaces: [x]}\n    slices: [{name: b, match: {interfaces: [y]}}]", "names interfaces already"},
		{"slices:\n  - {name: a, users: [{prefix: 10.0.0.1, weight: 2}]}", "set user: source"},
		{"slices:\n  - {name: a, user: source, users: [{prefix: 10.0.0.1, weight: 2}, {prefix: 10.0.0.1, weight: 3}]}", "has two weights"},
		{"slices:\n  - {name: a, user: source, prefix4: 24, users: [{prefix: 10.0.0.1, weight: 2}]}", "distinguished by 24 bits"},
		{"slices:\n  - {name: a, user: source, match: {sources: [11.0.0.0/8]}, users: [{prefix: 10.0.0.1, weight: 2}]}", "does not belong to it"},
		{"slices:\n  - {name: a, user: source, users: [{prefix: 10.0.0.1, weight: 2}], slices: [{name: b}]}", "users are given in the slices in it"},
		{"room: 1\nslices: [{name: a}, {name: b, match: {marks: [1]}}]", "1:1: there are 2 slices, and room is 1: raise it"},
		{"slices:\n  - {name: a, ceiling: 1Mbit, slices: [{name: b, floor: 2Mbit}]}", "slice a: the floors of the slices in it add up to 2Mbit, its ceiling is 1Mbit"},
		{"capacity: 1GB\nslices: [{name: a}]", "a number and kbit, Mbit, Gbit or Tbit"},
		{"slices:\n\t- name: a", "2:2: no YAML: a tab: YAML is indented by spaces"},
		{"slices:\n  - name: a\n\tweight: 2", "3:2: no YAML: a tab: YAML is indented by spaces"},
		{"slices:\n  - {name: a, match: {interfaces: [averyveryverylongname]}}", "a name has 15 characters at most"},
		{"slices:\n  - {name: a, prefix4: 24}", "set user: source or user: destination"},
		{"slices:\n" + strings.Repeat("- {name: a}\n", MaxSlices+1), "2:1: 16384 slices are too many: at most 16383"},
		{"slices:\n- name: a\n  slices:\n" + strings.Repeat("  - {name: a}\n", MaxSlices) + "- {name: b}", "1:1: 16384 slices are too many: at most 16383"},
		{"slices:\n  - {name: a, user: port}", "choose one of 5tuple, source, destination"},
		{"slices:\n  - {name: a, wieght: 2}", `has no key "wieght"`},
		{"x: &x [{name: a, slices: *x}]\nslices: *x", "nested too deeply"},
	} {
		_, err := Parse("f.yaml", []byte(c.text))
		var refused *config.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n\t%v, want %q", c.text, err, c.want)
			continue
		}
		if n := len(refused.Problems); n != 1 && !strings.Contains(c.text, "*x") {
			t.Errorf("%s: %d complaints of one mistake: %v", c.text, n, err)
		}
		for _, p := range refused.Problems {
			if p.Line < 1 || p.Column < 1 {
				t.Errorf("%s: %v stands nowhere", c.text, p)
			}
		}
	}
}

// What is no file with an end, that is there when it is looked at again, is refused at once.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxFile+1); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "no regular file", "/dev/zero": "no regular file", dir: "no regular file", large: "at most 16777216",
		filepath.Join(dir, "none"): "no such file"} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// Names of interfaces that are not there are reported; what fits a pattern may appear.
func TestAbsent(t *testing.T) {
	p := plan(t, "slices:\n  - {name: a, match: {interfaces: [eth0, eth7, 'tap*']}}\n  - {name: b, match: {interfaces: [vnet9]}}\n")
	if got := strings.Join(p.Absent, " "); got != "eth7 vnet9" {
		t.Errorf("absent: %q", got)
	}
}

// matching is what belongs to a rule, as one defines it.
func (r rule) matching(k packetOf) bool {
	for f, key := range [fields]prefix.Key{prefix.Word(k.index), prefix.Word(k.vlan), prefix.Word(k.mark), k.src, k.dst} {
		want := r.parts[f]
		if want != nil && !want.covers(part{key: key, bits: 128, v6: f >= bySource && k.v6}) {
			return false
		}
	}
	return true
}

// Any set of slices sends a packet to the most specific of all that fit.
func TestAgainstDefinition(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	network := func() netip.Prefix {
		if rng.IntN(4) == 0 {
			return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, byte(rng.IntN(2)), 15: byte(rng.IntN(2))}), []int{0, 8, 16, 128}[rng.IntN(4)]).Masked()
		}
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(rng.IntN(2)), byte(rng.IntN(2)), byte(rng.IntN(2))}), []int{0, 8, 16, 24, 32}[rng.IntN(5)]).Masked()
	}
	for range 60 {
		f := &File{Room: 100, Capacity: 1e6}
		for i := range 1 + rng.IntN(12) {
			s := Slice{Name: fmt.Sprint("s", i), Weight: 1, User: Source}
			if rng.IntN(3) == 0 {
				s.Match.Interfaces = []string{around[rng.IntN(4)].Name}
			}
			if rng.IntN(4) == 0 {
				s.Match.VLANs = []uint64{uint64(rng.IntN(3))}
			}
			if rng.IntN(4) == 0 {
				s.Match.Marks = []uint64{uint64(rng.IntN(3))}
			}
			for range rng.IntN(3) {
				s.Match.Sources = append(s.Match.Sources, network())
			}
			for range rng.IntN(3) {
				s.Match.Destinations = append(s.Match.Destinations, network())
			}
			f.Slices = append(f.Slices, s)
		}
		p := &planner{Plan: &Plan{}, file: f, interfaces: around, numbers: map[string]int{}, taken: map[int]bool{}}
		for i := range f.Slices {
			s := &f.Slices[i]
			p.Leaves = append(p.Leaves, Leaf{Name: s.Name, Number: i + 1})
			p.rules = append(p.rules, rulesOf(s, i, p.find(s.Match.Interfaces))...)
		}
		if err := p.compile(); err != nil {
			t.Fatal(err)
		}
		members := trie(t, p.Plan)
		for range 400 {
			src, dst := network().Addr(), network().Addr()
			if src.Is6() != dst.Is6() {
				continue
			}
			k := packetOf{uint32(1 + rng.IntN(5)), uint32(rng.IntN(4)), uint32(rng.IntN(4)), prefix.KeyOf(src), prefix.KeyOf(dst), src.Is6()}
			checkMost(t, p, members, k)
		}
	}
}

// checkMost: what was found is as specific as the most specific rule that fits.
func checkMost(t *testing.T, p *planner, members *prefix.Trie, k packetOf) {
	t.Helper()
	var best, found *rule
	slice, _ := find(members, k)
	for i := range p.rules {
		r := &p.rules[i]
		if !r.matching(k) {
			continue
		}
		if best == nil || specific(*r, *best) > 0 {
			best = r
		}
		if r.leaf+1 == int(slice) && (found == nil || specific(*r, *found) > 0) {
			found = r
		}
	}
	if best == nil != (slice == 0) || best != nil && (found == nil || specific(*best, *found) != 0) {
		t.Fatalf("%+v belongs to slice %d, want %+v", k, slice, best)
	}
}

// Files that are damaged in any way are refused with a place, or are files.
func TestMutations(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range 2000 {
		text := testutil.MutateText(rng, whole1)
		f, err := Parse("f.yaml", []byte(text))
		var problems *config.Error
		switch {
		case errors.As(err, &problems):
			refused++
			if !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Fatalf("%q: %v", text, err)
			}
		case err != nil:
			t.Fatalf("%q: %v", text, err)
		default:
			if _, err := f.Plan(around, nil); err != nil && !errors.Is(err, ErrPlan) {
				t.Fatalf("%q: %v", text, err)
			}
		}
	}
	if refused < 500 {
		t.Errorf("%d of 2,000 are refused: these are no mutations", refused)
	}
}

// The schema that is shipped is the one that the reader is made of, and holds for files that the reader takes.
func TestSchema(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(testutil.Root(t), "deploy", "slices.schema.json")
	shipped, err := os.ReadFile(path)
	if err != nil || string(shipped) != string(text) {
		t.Fatalf("deploy/slices.schema.json is another: make generate (%v)", err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("slices.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("slices.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{whole1: true, "slices: [{name: a}]": true, "slices: [{weight: 1}]": false, "slices: [{name: a, wieght: 2}]": false,
		"capacity: 5\nslices: [{name: a}]": false, "slices: [{name: a, slices: [{name: b, match: {vlans: [4096]}}]}]": false} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		_, refused := Parse("f", []byte(text))
		if err := schema.Validate(v); (err == nil) != good || (refused == nil) != good {
			t.Errorf("%s: schema: %v; reader: %v", text, err, refused)
		}
	}
}

// Shares are multiples of what a leaf would have if all were alike.
func TestShares(t *testing.T) {
	p := plan(t, "capacity: 80Mbit\nslices: [{name: a, weight: 3, match: {marks: [1]}}, {name: b, match: {marks: [2]}}]")
	for _, l := range p.Leaves {
		if want := map[string]float64{"a": 1.5, "b": 0.5}[l.Name]; math.Abs(l.Share-want) > 1e-9 || math.Abs(l.Full-want*5e6) > 1 {
			t.Errorf("%s: share %g of %g bytes a second, want %g", l.Name, l.Share, l.Full, want)
		}
	}
}

// Conditions of a slice are all combinations of its fields; more than a million are none.
func TestConditionsAreBounded(t *testing.T) {
	numbers := func(n int) (list []uint64) {
		for i := range n {
			list = append(list, uint64(i))
		}
		return list
	}
	for _, c := range []struct {
		m    Match
		want int
	}{{Match{}, 1}, {Match{VLANs: numbers(3)}, 3}, {Match{VLANs: numbers(3), Marks: numbers(5)}, 15}, {Match{Interfaces: []string{"a", "b"}, Marks: numbers(5)}, 10}, {Match{VLANs: numbers(1024), Marks: numbers(1025)}, 0}, {Match{Marks: numbers(mostConditions + 1)}, 0}} {
		if got := len(conditions(&c.m)); got != c.want {
			t.Errorf("%d interfaces, %d VLANs, %d marks: %d conditions, want %d", len(c.m.Interfaces), len(c.m.VLANs), len(c.m.Marks), got, c.want)
		}
	}
}
