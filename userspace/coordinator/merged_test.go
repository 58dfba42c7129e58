package coordinator

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	xmaps "github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/countmin"
	"github.com/xdpmon/xdpmon/tests/outcome"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/feed"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	"github.com/xdpmon/xdpmon/userspace/keys"
	_ "github.com/xdpmon/xdpmon/userspace/lean"
	"github.com/xdpmon/xdpmon/userspace/packet"
	_ "github.com/xdpmon/xdpmon/userspace/precision"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// tallied is the Count-Min Sketch of these tests: three rows of counters.
type tallied struct {
	head  snapshot.Head
	array [countMinRows]*xmaps.Array
}

const countMinRows = 3

func rowOf(n int) string { return fmt.Sprintf("countmin_row%d", n) }

func (*tallied) Configure(*ebpf.CollectionSpec) error { return nil }
func (*tallied) Needs() xmaps.Need                    { return 0 }

func (c *tallied) Bind(set *xmaps.Set) (err error) {
	for n := range c.array {
		if c.array[n], err = set.Array(rowOf(n)); err != nil {
			return err
		}
	}
	return nil
}

func (c *tallied) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s := snapshot.New(c.head, w)
	for n, a := range c.array {
		words, err := a.ReadReset(bank, nil)
		if err != nil {
			return nil, err
		}
		s.Words[rowOf(n)] = words
	}
	return s, nil
}

type talliedConfig struct{}

func (talliedConfig) New(env algo.Env) (algo.Instance, error) { return &tallied{head: env.Head}, nil }

func (talliedConfig) Report(s *snapshot.Snapshot) (algo.Result, error) {
	r, sum := s.Read(), uint64(0)
	for _, n := range r.Words(rowOf(0), 1024) {
		sum += n
	}
	return algo.Result{Body: report.Body{Values: []report.Value{{Name: "packets", Value: sum}}}, Used: sum, Lost: map[string]uint64{}}, r.Err()
}

func (talliedConfig) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if err := algo.SameHashes(a, b); err != nil {
		return nil, err
	}
	s := snapshot.Together(a, b)
	for n := range countMinRows {
		s.Words[rowOf(n)] = snapshot.Sum(a.Words[rowOf(n)], b.Words[rowOf(n)])
	}
	return s, nil
}

func init() {
	algo.Register(&algo.Descriptor{Name: "countmin", Summary: "packets by flow", Layout: 1, Spec: countmin.LoadCountmin, Config: fixed(talliedConfig{})})
}

// hostsOf is how many hosts traffic is spread over.
const hostsOf = 4

// kind is an algorithm, its traffic, and how that is spread.
type kind struct {
	name, algorithm string
	set             map[string]string
	open            func(seed uint64) (traffic.Model, error)
	host            func(p *packet.Packet, n int) int
	// same compares what the coordinator has put together with one host that saw everything: cells that differ, of how many.
	same func(t *testing.T, merged, whole *snapshot.Snapshot) (differ, of int)
}

// byFlow: both directions of a connection pass the same host.
func byFlow(p *packet.Packet, _ int) int {
	sum := uint64(0)
	for _, end := range []netip.AddrPort{netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)} {
		x := uint64(14695981039346656037)
		b, _ := end.MarshalBinary()
		for _, c := range b {
			x = (x ^ uint64(c)) * 1099511628211
		}
		sum += x * x >> 7
	}
	return int(sum >> 20 % hostsOf)
}

// byPacket: a flow's packets pass all hosts by turns.
func byPacket(_ *packet.Packet, n int) int { return n % hostsOf }

// spread is one host's share of a model, or all of it, followed by a packet that ends the window.
type spread struct {
	traffic.Model
	kind *kind
	host int // -1: all
	n    int
	end  int64
}

func (m *spread) Next(p *packet.Packet) bool {
	for m.Model.Next(p) {
		if p.Time >= m.end {
			break
		}
		if m.n++; m.host < 0 || m.kind.host(p, m.n) == m.host {
			return true
		}
	}
	if m.end == 0 {
		return false
	}
	*p = packet.Packet{Time: m.end + int64(window), Valid: packet.IP | packet.Ports, Proto: 17, Segs: 1, Len: 60,
		Src: netip.AddrFrom4([4]byte{192, 0, 2, 1}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, 2}), SrcPort: 9, DstPort: 9}
	m.end = 0
	return true
}

const window = 2 * time.Second

// scanned is how many destinations a scanner tries.
const scanned = 400

// scans are sources of which each packet has another destination.
func scans(seed uint64) (traffic.Model, error) {
	var list []packet.Packet
	for n := range scanned {
		for key := range 20 {
			list = append(list, packet.Packet{Time: traffic.Start + int64(len(list))*1000, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1,
				TCPFlags: packet.SYN, Len: 54, Src: netip.AddrFrom4([4]byte{10, byte(seed), 0, byte(key)}), SrcPort: uint16(20000 + n), DstPort: uint16(1 + n),
				Dst: netip.AddrFrom4([4]byte{11, byte(key), byte(n >> 8), byte(n)})})
		}
	}
	s := traffic.Script(list)
	return &s, nil
}

func kinds() []kind {
	lean := traffic.LeanOptions{Packets: 8_000, Flows: 400, Heavy: 40, Victims: 10, Span: 1500 * time.Millisecond,
		Delay: 20 * time.Millisecond, Loss: 0.08, Late: 0.04, Again: 0.02}
	return []kind{
		{name: "fridge", algorithm: "fridge", set: map[string]string{"fridges": "1024@1/2"}, host: byFlow, open: func(seed uint64) (traffic.Model, error) {
			return traffic.NewInsistent(traffic.InsistentOptions{Requests: 8000, Gap: 150 * time.Microsecond, Delay: 100 * time.Millisecond, Seed: seed}), nil
		}},
		{name: "beaucoup", algorithm: "beaucoup", host: byPacket, open: scans, same: sameVectors,
			set: map[string]string{"queries": "spread: count distinct dst by src > 200 in 10m", "export": "true"}},
		{name: "lean", algorithm: "lean", set: map[string]string{"memory": "40kB"}, host: byFlow, same: sameSketches, open: func(seed uint64) (traffic.Model, error) {
			lean.Seed = seed
			return traffic.NewLean(lean)
		}},
		{name: "precision", algorithm: "precision", set: map[string]string{"top": "64", "entries": "512"}, host: byPacket, open: func(seed uint64) (traffic.Model, error) {
			return precision.Sizes{Flows: 1500, Packets: 9000, Offset: 5, Skew: 0.9, Drawn: true, Seed: seed, Scattered: true}.New().Model(), nil
		}},
		{name: "countmin", algorithm: "countmin", host: byPacket, same: sameWords, open: func(seed uint64) (traffic.Model, error) {
			return precision.Sizes{Flows: 3000, Packets: 9000, Offset: 5, Skew: 0.9, Drawn: true, Seed: seed, Scattered: true}.New().Model(), nil
		}},
	}
}

// sameWords compares all registers.
func sameWords(_ *testing.T, merged, whole *snapshot.Snapshot) (differ, of int) {
	for name, words := range whole.Words {
		for n, w := range words {
			if of++; len(merged.Words[name]) != len(words) || merged.Words[name][n] != w {
				differ++
			}
		}
	}
	return differ, of
}

// sameSketches compares the rows of lean's Count Sketches of what is counted without a coin.
func sameSketches(t *testing.T, merged, whole *snapshot.Snapshot) (differ, of int) {
	for _, register := range []string{"lean_loss", "lean_ooo", "lean_ret"} {
		for row := range 5 {
			name := fmt.Sprintf("%s_%d", register, row)
			d, n := sameWords(t, merged, &snapshot.Snapshot{Words: map[string]snapshot.Words{name: whole.Words[name]}})
			differ, of = differ+d, of+n
			if d > 0 {
				t.Logf("%s: %d of %d cells differ", name, d, n)
			}
		}
	}
	return differ, of
}

// sameVectors compares beaucoup's collectors: which coupons of which key of which query are there, on whatever host.
func sameVectors(t *testing.T, merged, whole *snapshot.Snapshot) (differ, of int) {
	whole.Offset = 0
	twice, err := algo.Merge(whole, whole) // collectors in their own form; a coupon counts once
	if err != nil {
		t.Fatal(err)
	}
	vectors := func(s *snapshot.Snapshot) map[string]uint64 {
		all := map[string]uint64{}
		const width = 4 + compile.WordCount
		for w := range slices.Chunk(s.Words["spans"], width) {
			all[fmt.Sprint(s.Texts["queries"][w[0]], w[4:])] |= w[2]
		}
		return all
	}
	a, b := vectors(merged), vectors(twice)
	for key, coupons := range b {
		if of++; a[key] != coupons {
			differ++
		}
	}
	for key := range a {
		if _, there := b[key]; !there {
			differ++
		}
	}
	return differ, of
}

// measured is a run of a kind: what each host brings, what one host would have brought, and the truth.
type measuredRun struct {
	parts [hostsOf]*snapshot.Snapshot
	whole *snapshot.Snapshot
	truth *report.Body
}

// chosen is the algorithm with its parameters.
func (k *kind) chosen(t *testing.T) (*algo.Descriptor, algo.Values) {
	t.Helper()
	d, err := algo.Lookup(k.algorithm)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, k.set)
	if err != nil {
		t.Fatal(err)
	}
	return d, v
}

// brought is a window of a host.
type brought struct {
	snapshot *snapshot.Snapshot
	truth    *report.Body
}

// firstWindow is the window of what a host sees of a model.
func firstWindow(t *testing.T, s *session.Repeated, k *kind, m traffic.Model, seed uint64, host int) brought {
	t.Helper()
	var lines []report.Line
	if err := s.Replay(context.Background(), seed, "model", traffic.Frames(&spread{Model: m, kind: k, host: host, end: traffic.Start + int64(window)}),
		func(l report.Line) error { lines = append(lines, l); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 {
		t.Fatalf("%s: %d windows", k.name, len(lines))
	}
	one, err := snapshot.Decode(lines[0].Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return brought{one, lines[0].Truth}
}

// replays makes the runs of a kind through the real programs.
func replays(t *testing.T, k *kind, runs int) (list []measuredRun) {
	t.Helper()
	d, v := k.chosen(t)
	s, err := session.NewRepeated(context.Background(), session.Config{Window: window, Truth: true, Snapshots: true,
		Proven: k.algorithm != "countmin", Algorithms: []session.Selected{{Descriptor: d, Values: v}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := func(seed uint64, host int) brought {
		m, err := k.open(seed)
		if err != nil {
			t.Fatal(err)
		}
		return firstWindow(t, s, k, m, seed, host)
	}
	for seed := range uint64(runs) {
		all := first(seed+1, -1)
		r := measuredRun{whole: all.snapshot, truth: all.truth}
		for host := range hostsOf {
			r.parts[host] = first(seed+1, host).snapshot
		}
		list = append(list, r)
	}
	return list
}

// live makes of a replayed window one of an agent, which ends with the window of that number.
func live(t *testing.T, s *snapshot.Snapshot, a *agentUnderTest, index int64) []byte {
	t.Helper()
	c := *s
	c.Replay, c.Hashes = false, snapshot.HashMark(seed) // each run has hashes of its own, alike on all hosts
	start := index*int64(window) - a.Clock().Offset
	moved := start - c.Window.Start
	c.Window = report.Window{Start: start, End: start + int64(window)}
	if events, ok := c.Words["events"]; ok && s.Algorithm == "beaucoup" {
		c.Words = maps.Clone(c.Words)
		events = slices.Clone(events)
		for n := 1; n < len(events); n += 5 + compile.WordCount {
			events[n] += uint64(moved)
		}
		c.Words["events"] = events
	}
	data, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// runsAsked is the number of runs of a study: few, or from the environment (`make fleet`).
func runsAsked(few int) int {
	if n, err := strconv.Atoi(os.Getenv("XDPMON_FLEET_RUNS")); err == nil {
		return n
	}
	return few
}

// Traffic is spread over four hosts, whose clocks are off by half a second and more: what the coordinator answers is held against one host
// that saw everything, cell by cell, and against the exact truth of all packets. Windows are replayed, everything after that is real: agents'
// links, mutual TLS, the bus, clocks, merging, reports.
func TestFourHosts(t *testing.T) {
	testutil.NeedRoot(t)
	runs := runsAsked(1)
	list := kinds()
	replayed := make([][]measuredRun, len(list))
	for n := range list {
		replayed[n] = replays(t, &list[n], runs)
	}

	var asked []string
	for _, k := range list {
		var set []string
		for _, key := range slices.Sorted(maps.Keys(k.set)) {
			set = append(set, fmt.Sprintf("%s: %q", key, k.set[key]))
		}
		asked = append(asked, fmt.Sprintf("%s: {%s}", k.algorithm, strings.Join(set, ", ")))
	}
	s := newSite(t)
	lines := s.together(strings.Join(asked, ", "), runs, len(list), func(run, host int) (all []*snapshot.Snapshot) {
		for n := range list {
			all = append(all, replayed[n][run].parts[host])
		}
		return all
	})
	for n, k := range list {
		judge(t, &k, replayed[n], lines)
		cost(t, &k, replayed[n][0].parts[:])
	}
}

// cost is the cost of a host's window at the coordinator: reading, judging and merging it.
func cost(t *testing.T, k *kind, parts []*snapshot.Snapshot) {
	t.Helper()
	var encoded [][]byte
	bytes := 0
	for _, p := range parts {
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		encoded, bytes = append(encoded, data), bytes+len(data)
	}
	const times = 25
	began := time.Now()
	for range times {
		p := newPeriod()
		for _, data := range encoded {
			s, err := snapshot.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			result, err := reported(s)
			if err == nil {
				p.flows.see("h", result.Body)
				err = p.add(s)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%s: a window of a host is %d bytes and takes %.2f ms", k.name, bytes/len(parts), time.Since(began).Seconds()*1e3/times/float64(len(parts)))
}

// together brings windows of four hosts, whose clocks are off by half a second and more, to a coordinator, and returns its answers: of so
// many algorithms in each run.
func (s *site) together(algorithms string, runs, streams int, brought func(run, host int) []*snapshot.Snapshot) []report.Line {
	t := s.t
	t.Helper()
	const wait = 5 * time.Minute
	slack := window // how soon windows are late
	if runs > 10 {
		slack = 20 * window
	}
	s.measured = fmt.Sprintf("{name: m, window: %v, wait: %v, seed: %d, algorithms: {%s}}", window, wait, seed, algorithms)
	s.make(keys.Coordinator, "central")
	s.skew = map[string]time.Duration{"h0": 500 * time.Millisecond, "h1": -500 * time.Millisecond, "h2": 3 * time.Hour}
	for host := range hostsOf {
		s.make(keys.Agent, fmt.Sprintf("h%d", host))
	}
	c := s.coordinator("central", "127.0.0.1:0", "", 10_000)
	var agents []*agentUnderTest
	for host := range hostsOf {
		a := s.agent(fmt.Sprintf("h%d", host), "tls://"+c.address)
		eventually(t, "an answer", func() bool { return a.Clock().Known })
		agents = append(agents, a)
	}
	bring := func(index int64, run int) {
		for host, a := range agents {
			for _, one := range brought(run, host) {
				a.hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: one.Algorithm, Identity: report.Identity{Instance: "m"}, Snapshot: live(t, one, a, index)}})
			}
		}
	}
	answers := func() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.lines) }
	// From the first window the coordinator knows the participants: it is answered after its wait. Later ones are answered as soon
	// as all are there.
	first := (time.Now().UnixNano() - int64(wait) + int64(slack)) / int64(window)
	bring(first, 0)
	eventually(t, "the first window", func() bool { return answers() == streams })
	for run := range runs {
		bring(first+1+int64(run), run)
		eventually(t, "a window of all hosts", func() bool { return answers() == (run+2)*streams })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[streams:]
}

// links are those of a network of 6 leaves and 4 spines: 30. Traffic of a leaf's network to another leaf crosses one spine.
func links() (names []string, paths string, of map[[3]int][]string) {
	rng, of := rand.New(rand.NewPCG(1, 15)), map[[3]int][]string{}
	var b strings.Builder
	for leaf := range 6 {
		names = append(names, fmt.Sprintf("out%d", leaf))
		of[[3]int{leaf, 0, 6}] = []string{names[len(names)-1]}
		fmt.Fprintf(&b, "10.%d.0.0/16 0.0.0.0/0 out%d\n", leaf, leaf)
		for spine := range 4 {
			names = append(names, fmt.Sprintf("l%d-s%d", leaf, spine))
		}
		for net := range 4 {
			for to := range 6 {
				if s := rng.IntN(4); to != leaf {
					path := []string{fmt.Sprintf("l%d-s%d", leaf, s), fmt.Sprintf("l%d-s%d", to, s)}
					of[[3]int{leaf, net, to}] = path
					fmt.Fprintf(&b, "10.%d.%d.0/24 10.%d.0.0/16 %s\n", leaf, net, to, strings.Join(path, " "))
				}
			}
		}
	}
	return names, b.String(), of
}

// lossy is traffic of which one link loses 1 % and all others 0.02 %, as it arrives at a host.
func lossy(seed uint64, flows int, bad string, of map[[3]int][]string, host int) traffic.Model {
	rng := rand.New(rand.NewPCG(seed, 16))
	var list []packet.Packet
	for n := range flows {
		from, net := rng.IntN(6), rng.IntN(4)
		to := (from + 1 + rng.IntN(5)) % 6
		destination := netip.AddrFrom4([4]byte{10, byte(to), 0, byte(1 + rng.IntN(250))})
		path := of[[3]int{from, net, to}]
		if rng.IntN(6) == 0 {
			to, path, destination = 6, of[[3]int{from, 0, 6}], netip.AddrFrom4([4]byte{198, 51, 100, byte(n)})
		}
		good := 1.
		for _, l := range path {
			if l == bad {
				good *= .99
			} else {
				good *= .9998
			}
		}
		packets := int(min(20/math.Pow(1-rng.Float64(), .9), 10_000))
		p := packet.Packet{Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.ACK, Payload: 1000, Len: 1054,
			Src: netip.AddrFrom4([4]byte{10, byte(from), byte(net), byte(1 + rng.IntN(250))}), Dst: destination, SrcPort: uint16(1024 + n), DstPort: 443}
		at, gap := traffic.Start+rng.Int64N(1e8), int64(1.5e9)/int64(packets)
		for i := range packets {
			keep := rng.Float64() < good || i == 0 || i == packets-1
			if p.Time, p.Seq = at+int64(i)*gap, uint32(1000*i); keep && to%hostsOf == host {
				list = append(list, p)
			}
		}
	}
	return traffic.InTime(list)
}

// One of 30 links loses packets. Four hosts measure losses where flows arrive, and the coordinator, which has the paths, names the link.
func TestSuspectLink(t *testing.T) {
	testutil.NeedRoot(t)
	runs, flows := runsAsked(1), 1500
	if runs > 1 {
		flows = 5000
	}
	names, paths, of := links()
	var bad []string
	k := kind{name: "suspects", algorithm: "lean", set: map[string]string{"stat": "loss", "top": "128"}}
	var parts [][hostsOf]*snapshot.Snapshot
	d, v := k.chosen(t)
	r, err := session.NewRepeated(context.Background(), session.Config{Window: window, Snapshots: true, Proven: true, Algorithms: []session.Selected{{Descriptor: d, Values: v}}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for run := range runs {
		bad = append(bad, names[(7*run+3)%len(names)])
		var all [hostsOf]*snapshot.Snapshot
		for host := range hostsOf {
			k.host = func(*packet.Packet, int) int { return host }
			all[host] = firstWindow(t, r, &k, lossy(uint64(run), flows, bad[run], of, host), uint64(run+1), host).snapshot
		}
		parts = append(parts, all)
	}
	s := newSite(t)
	s.paths = filepath.Join(s.dir, "paths")
	if err := os.WriteFile(s.paths, []byte(paths), 0o600); err != nil {
		t.Fatal(err)
	}
	first := 0
	for run, l := range s.together("lean: {stat: loss, top: 128}", runs, 1, func(run, host int) []*snapshot.Snapshot { return []*snapshot.Snapshot{parts[run][host]} }) {
		at := slices.IndexFunc(l.Report.Tables, func(t report.Table) bool { return t.Name == "suspect_links" })
		if at < 0 || len(l.Report.Tables[at].Rows) == 0 {
			t.Fatalf("run %d: no links: %+v", run, l.Report.Values)
		}
		if l.Report.Tables[at].Rows[0][0] == bad[run] {
			first++
		} else {
			t.Logf("run %d: %s loses, and %v is named first", run, bad[run], l.Report.Tables[at].Rows[0])
		}
	}
	t.Logf("the lossy link of %d is first in %d of %d runs of %d flows", len(names), first, runs, flows)
	if float64(first) < .95*float64(runs)-3*math.Sqrt(.05*.95*float64(runs)) {
		t.Errorf("first in %d of %d runs", first, runs)
	}
}

// judge holds the answers of a kind against one host and the truth.
func judge(t *testing.T, k *kind, runs []measuredRun, lines []report.Line) {
	t.Helper()
	run, differ, crowded, cells, held, of, whole, all := 0, 0, 0, 0, 0, 0, 0, 0
	for _, l := range lines {
		if l.Algorithm != k.algorithm {
			continue
		}
		r := runs[run]
		run++
		if l.Hosts.Merged != hostsOf || l.Hosts.Missing != 0 || l.Hosts.Skewed != 0 || l.Hosts.Unmeasured != 0 || l.Lost["windows_unfit"] != 0 {
			t.Errorf("%s, run %d: %+v, lost %v", k.name, run, l.Hosts, l.Lost)
		}
		merged, err := snapshot.Decode(l.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if k.same != nil {
			d, n := k.same(t, merged, r.whole)
			if cells += n; !roomy(t, r.whole) && d <= n/100 { // a flow or two
				crowded, d = crowded+d, 0
			}
			differ += d
		}
		if k.algorithm == "fridge" {
			sumOfParts(t, l.Report, r.parts[:])
		}
		if r.truth == nil {
			continue
		}
		inside, n := 0, 0
		if k.algorithm == "beaucoup" {
			for _, row := range l.Report.Tables[0].Rows {
				if n++; row[3].(float64) <= scanned && scanned <= row[4].(float64) {
					inside++
				}
			}
		}
		for _, o := range outcome.Of(l.Report, *r.truth) {
			if o.Enclosed && o.Judged && o.Promise == report.Interval {
				if n++; o.Holds() {
					inside++
				}
			}
		}
		held, of, all = held+inside, of+n, all+1
		if inside == n {
			whole++
		}
	}
	share := float64(held) / float64(max(of, 1))
	t.Logf("%s: %d runs of %d hosts; %d of %d cells are not those of one host (%d more where that one had no room for all flows); %d of %d intervals hold the truth (%.3f); all of them in %d of %d runs",
		k.name, run, hostsOf, differ, cells, crowded, held, of, share, whole, all)
	if run != len(runs) || k.same != nil && (cells == 0 || differ > 0) {
		t.Errorf("%s: %d of %d runs, %d of %d cells differ", k.name, run, len(runs), differ, cells)
	}
	if of > 0 && share < .95-3*math.Sqrt(.95*.05/float64(of)) {
		t.Errorf("%s: %.3f of %d intervals hold the truth", k.name, share, of)
	}
}

// roomy reports whether one host had room in its tables for everything: what one flow keeps another one out of, four hosts may all have.
func roomy(t *testing.T, whole *snapshot.Snapshot) bool {
	t.Helper()
	r, err := algo.Report(whole)
	if err != nil {
		t.Fatal(err)
	}
	return r.Lost["loss_not_followed"]+r.Lost["ooo_not_watched"]+r.Lost["retrans_not_watched"] == 0
}

// sumOfParts: what is merged is the sum of its parts.
func sumOfParts(t *testing.T, merged report.Body, parts []*snapshot.Snapshot) {
	t.Helper()
	var count, variance float64
	for _, p := range parts {
		r, err := algo.Report(p)
		if err != nil {
			t.Fatal(err)
		}
		d := r.Body.Distributions[0]
		count, variance = count+d.Count, variance+d.CountErr*d.CountErr
	}
	d := merged.Distributions[0]
	if math.Abs(d.Count-count) > 1e-9*count || math.Abs(d.CountErr-math.Sqrt(variance)) > 1e-6*d.CountErr {
		t.Errorf("%g ± %g delays are merged of %g ± %g", d.Count, d.CountErr, count, math.Sqrt(variance))
	}
}
