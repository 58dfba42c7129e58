package carpe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const second = int64(1e9)

// table is a coordinator of windows of a second, and its hosts.
type network struct {
	*coordinator
	t       *testing.T
	hosts   map[string]map[Group]uint32 // what each was sent
	updates int
}

func newNetwork(t *testing.T, set map[string]string) *network {
	t.Helper()
	c, err := descriptor().Coordinate(values(t, set), algo.Env{Setup: algo.Setup{WindowNS: second}, Notice: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return &network{coordinator: c.(*coordinator), t: t, hosts: map[string]map[Group]uint32{}}
}

// flowOf is a flow of IPv4, or of IPv6.
func (n *network) flowOf(number int, six bool) heavy.Key {
	p := packet.Packet{Valid: packet.IP | packet.Ports, Proto: 6, SrcPort: uint16(number), DstPort: 443, Src: netip.AddrFrom4([4]byte{10, byte(number), 1, 2}),
		Dst: netip.AddrFrom4([4]byte{20, 1, 1, 2})}
	if six {
		p.Src, p.Dst = netip.AddrFrom16([16]byte{0x20, 1, byte(number), 15: 1}), netip.AddrFrom16([16]byte{0x20, 2, 15: 9})
	}
	k, _ := n.spec.Of(&p)
	return k
}

func (n *network) receive(host string, now int64, data []byte) error {
	return n.Receive(algo.Incoming{Host: host, Time: now, Now: now, Data: data})
}

// say sends a host's messages at a time, and returns those for hosts.
func (n *network) send(host string, now int64, write func(w *writer)) {
	n.t.Helper()
	w := &writer{config: n.config, epoch: uint64(now / second)}
	write(w)
	for _, m := range w.messages() {
		if err := n.receive(host, now, m); err != nil {
			n.t.Fatalf("%s: %v", host, err)
		}
	}
	n.listen(now)
}

func (n *network) listen(now int64) {
	n.t.Helper()
	for _, sent := range n.Send(now) {
		r, err := n.read(sent.Data)
		if err != nil {
			n.t.Fatal(err)
		}
		for r.more() {
			if r.byte() != recordUpdate {
				n.t.Fatal("no update")
			}
			g, observers := r.group(), r.observers()
			if n.hosts[sent.Host] == nil {
				n.hosts[sent.Host] = map[Group]uint32{}
			}
			n.hosts[sent.Host][g] = observers
			n.updates++
		}
		if r.err != nil {
			n.t.Fatal(r.err)
		}
	}
}

func (n *network) answer(now int64) algo.Result {
	n.t.Helper()
	start := now / second * second
	r, err := n.coordinator.Report(report.Window{Start: start, End: start + second})
	if err != nil {
		n.t.Fatal(err)
	}
	return r
}

var small = map[string]string{"threshold": "1000", "epsilon": "0.1", "s": "1/4", "age": "8"}

// All observers are notified when their number has doubled, a newcomer immediately, and no other host; silent ones are not observers.
func TestDoubling(t *testing.T) {
	for _, six := range []bool{false, true} {
		n := newNetwork(t, small)
		g := n.group.of(n.spec, n.flowOf(1, six))
		hello := func(w *writer) { w.hello(g) }
		for hosts, want := range []struct{ sent, updates int }{{1, 1}, {2, 2}, {2, 1}, {4, 4}, {4, 1}, {4, 1}, {4, 1}, {8, 8}} {
			n.updates = 0
			n.send(fmt.Sprint("host", hosts), 100*second, hello)
			for h := range hosts + 1 {
				if got := n.hosts[fmt.Sprint("host", h)][g]; h == hosts && got != uint32(want.sent) || hosts == 7 && got != 8 {
					t.Errorf("%d hosts: host %d was sent %d, want %d", hosts+1, h, got, want.sent)
				}
			}
			if n.updates != want.updates {
				t.Errorf("%d hosts: %d updates, want %d", hosts+1, n.updates, want.updates)
			}
		}
		n.updates = 0
		n.send("host1", 105*second, hello) // sends it again: the answer may have been lost
		if n.updates != 1 {
			t.Errorf("%d updates for a host that asks again", n.updates)
		}
		n.answer(109 * second) // the others have sent nothing for more than eight windows
		n.listen(109 * second)
		if got := n.hosts["host1"][g]; got != 1 || len(n.groups[g].hosts) != 1 {
			t.Errorf("one of eight observers is left, which was sent %d", got)
		}
		n.Left("host1")
		if len(n.groups) != 0 || len(n.own) != 0 {
			t.Errorf("%d groups are left, of %v", len(n.groups), n.own)
		}
	}
}

// R reports make an elephant, whoever sends them; those of an earlier window do not count.
func TestReportsMakeAnElephant(t *testing.T) {
	n := newNetwork(t, small)
	k, other := n.flowOf(1, false), n.flowOf(2, true)
	now := 1000 * second
	for i := range 9 {
		n.send(fmt.Sprint("host", i%3), now, func(w *writer) { w.report(k, 25, 4) })
	}
	if r := n.answer(now); snapshottest.Value(r.Body, "elephants") != 0 || snapshottest.Value(r.Body, "reports") != 9 {
		t.Errorf("nine reports: %+v", r.Body)
	}
	now += second
	for i := range 10 {
		n.send(fmt.Sprint("host", i%3), now, func(w *writer) { w.report(k, 25, 4); w.report(other, 100, 1) })
	}
	r := n.answer(now)
	if rows := r.Body.Tables[0].Rows; len(rows) != 2 || rows[0][len(n.spec.Columns())] != 1000.0 {
		t.Errorf("ten reports: %v", rows)
	}
	n.answer(now + second)
	if r := n.answer(now + 2*second); snapshottest.Value(r.Body, "flows_reported") != 0 || len(n.ledger.flows) != 0 {
		t.Errorf("windows without reports: %+v, %d flows are stored", r.Body, len(n.ledger.flows))
	}
}

// A restarted coordinator derives from reports the observers, and what they were sent.
func TestRestarts(t *testing.T) {
	n := newNetwork(t, small)
	k := n.flowOf(1, false)
	g := n.group.of(n.spec, k)
	for h := range 4 {
		n.send(fmt.Sprint("host", h), 50*second, func(w *writer) { w.report(k, 25, 4) })
	}
	if n.updates != 0 || n.groups[g].advertised != 4 {
		t.Errorf("%d updates; %+v", n.updates, n.groups[g])
	}
}

// What no host of this plan sends is refused, complete or truncated, and leaves no unbounded state.
func TestHostile(t *testing.T) {
	n := newNetwork(t, map[string]string{"threshold": "1000", "epsilon": "0.1", "s": "1/4", "groups": "16", "flows": "16", "family": "4"})
	now := 1000 * second
	good := &writer{config: n.config, epoch: 1000}
	good.report(n.flowOf(1, false), 100, 1)
	good.hello(n.group.of(n.spec, n.flowOf(1, false)))
	good.lost(3)
	message := good.messages()[0]
	if err := n.receive("host", now, message); err != nil {
		t.Fatal(err)
	}
	for cut := range len(message) {
		if err := n.receive("host", now, message[:cut]); err == nil && cut != 4 && !slices.Contains([]int{4, 22, 27}, cut) {
			if r, _ := n.read(message[:cut]); r != nil && !wellCut(n, message[:cut]) {
				t.Errorf("%d of %d bytes are taken", cut, len(message))
			}
		}
	}
	for _, epoch := range []uint64{0, 1002, 600} {
		w := &writer{config: n.config, epoch: epoch}
		w.report(n.flowOf(1, false), 100, 1)
		if err := n.receive("host", now, w.messages()[0]); err == nil {
			t.Errorf("a report of window %d is taken in window 1000", epoch)
		}
	}
	for _, m := range [][]byte{nil, {2}, {1, 9}, {1, recordReport}, {1, recordUpdate, 4, 10, 1, 20, 1, 2}, {1, recordHello, 6}, {1, recordHello, 5, 1, 2, 3, 4}} {
		if err := n.receive("host", now, m); err == nil {
			t.Errorf("% x is taken", m)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		m := slices.Clone(message)
		for range 1 + rng.IntN(4) {
			m[rng.IntN(len(m))] = byte(rng.Uint32())
		}
		_ = n.receive("hostile", now, m)
	}
	flood := &writer{config: n.config, epoch: 1000}
	for i := range 5000 {
		g := n.group.of(n.spec, n.flowOf(i, false))
		g.Dst = netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 8), byte(i)}), 16)
		flood.hello(g)
	}
	for _, m := range flood.messages() {
		if err := n.receive("flood", now, m); err != nil {
			t.Fatal(err)
		}
	}
	if n.own["flood"] > 32 || n.own["hostile"] > 32 || len(n.groups) > 70 || len(n.ledger.flows) > 16 {
		t.Errorf("%d and %d groups of a host that can hold 16, %d in all; %d flows", n.own["flood"], n.own["hostile"], len(n.groups), len(n.ledger.flows))
	}
	if r := n.answer(now); r.Lost["groups_full"] < 4900 || r.Lost["reports"] < 3 || r.Lost["flows_full"] == 0 {
		t.Errorf("lost: %v", r.Lost)
	}
}

// wellCut: a message that is cut off between two records is a shorter one.
func wellCut(n *network, b []byte) bool {
	fresh := &coordinator{config: n.config, env: n.env, ledger: newLedger(n.config), groups: map[Group]*observerSet{}, own: map[string]int{},
		pending: map[string]map[Group]bool{}, max: 10}
	err := fresh.Receive(algo.Incoming{Host: "x", Now: 1000 * second, Data: append(slices.Clone(b), recordLost, 0)})
	return err == nil
}

// A flow is the same after encoding.
func TestMessages(t *testing.T) {
	for _, kind := range heavy.KindNames {
		n := newNetwork(t, map[string]string{"key": kind, "group": "src/20,dst/9,src6/50,dst6/64", "threshold": "10000"})
		for i := range 40 {
			w := &writer{config: n.config}
			k := n.flowOf(i, i%2 == 1)
			g := n.group.of(n.spec, k)
			w.report(k, uint32(i+1), 8)
			w.hello(g)
			r, err := n.read(w.messages()[0])
			if err != nil {
				t.Fatal(err)
			}
			r.byte()
			r.number(10)
			r.byte()
			got, units, observers := r.key(), r.number(100), r.observers()
			r.byte()
			if group := r.group(); r.err != nil || got != k || units != uint64(i+1) || observers != 8 || group != g || r.more() {
				t.Errorf("%s: %v, %d of %d, %v: %v", kind, got, units, observers, group, r.err)
			}
		}
	}
	n := newNetwork(t, nil)
	w := &writer{config: n.config}
	w.report(n.flowOf(1, false), 500, 2)
	short := len(w.b)
	w.report(n.flowOf(1, false), 500, 2)
	if size := len(w.b) - short; size != 18 {
		t.Errorf("a report of a 5-tuple is %d bytes", size)
	}
}

// A report counts in the answer of its window, or as late: it arrived after that, also over a restart, its window got no answer, or its time is wrong.
func TestLateReports(t *testing.T) {
	n := newNetwork(t, small)
	send := func(window, now int64) error {
		w := &writer{config: n.config, epoch: uint64(window)}
		w.report(n.flowOf(1, false), 100, 1)
		return n.receive("host", now*second, w.messages()[0])
	}
	for _, step := range []struct {
		window, now        int64
		answer             int64 // of which window; 0: none
		reports, late      uint64
		untimely, restarts bool
	}{
		{window: 1000, now: 1000, answer: 1000, reports: 1},
		{window: 1000, now: 1001},
		{window: 1001, now: 1001, restarts: true},
		{window: 1000, now: 1002},
		{window: 1002, now: 1002},
		{window: 1003, now: 1003, answer: 1003, reports: 1, late: 4}, // 1001 and 1002 were not answered
		{window: 900, now: 1004, answer: 1004, late: 1},
		{window: 100, now: 1005, answer: 1005, late: 1, untimely: true},
	} {
		if err := send(step.window, step.now); errors.Is(err, algo.ErrUntimely) != step.untimely || err != nil && !step.untimely {
			t.Errorf("%+v: %v", step, err)
		}
		if step.restarts {
			saved, err := n.Checkpoint()
			if err != nil {
				t.Fatal(err)
			}
			n = newNetwork(t, small)
			if err := n.Restore(saved); err != nil {
				t.Fatal(err)
			}
		}
		if step.answer == 0 {
			continue
		}
		r := n.answer(step.answer * second)
		at := slices.IndexFunc(r.Body.Values, func(v report.Value) bool { return v.Name == "reports" })
		if got := r.Body.Values[at].Value; got != step.reports || r.Lost["reports_late"] != step.late {
			t.Errorf("%+v: %v reports, lost %v", step, got, r.Lost)
		}
	}
}

// Saved state is complete: a coordinator that restores it answers and sends the same.
func TestResume(t *testing.T) {
	n := newNetwork(t, small)
	now := 1000 * second
	for h := range 5 {
		for i := range 7 {
			n.send(fmt.Sprint("host", h), now, func(w *writer) {
				w.hello(n.group.of(n.spec, n.flowOf(i, i%2 == 0)))
				w.report(n.flowOf(i, i%2 == 0), uint32(20*i+1), 4)
			})
		}
	}
	n.send("host1", now, func(w *writer) { w.lost(3) })
	if err := n.Receive(algo.Incoming{Host: "host1", Time: now, Now: now, Missed: 2, Data: []byte{messageVersion}}); err != nil {
		t.Fatal(err)
	}
	saved, err := n.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	other := newNetwork(t, small)
	if err := other.Restore(saved); err != nil {
		t.Fatal(err)
	}
	again, err := other.Checkpoint()
	if err != nil || len(again) != len(saved) {
		t.Errorf("%d bytes are restored of %d, %v", len(again), len(saved), err)
	}
	a, b := n.answer(now), other.answer(now)
	if rows := a.Body.Tables[0].Rows; len(rows) < 3 || !reflect.DeepEqual(rows, b.Body.Tables[0].Rows) {
		t.Errorf("%v, resumed %v", rows, b.Body.Tables[0].Rows)
	}
	if a.Lost["reports"] != 3 || a.Lost["messages"] != 2 || !reflect.DeepEqual(a.Lost, b.Lost) {
		t.Errorf("lost %v, resumed %v", a.Lost, b.Lost)
	}
	other.Joined("host3")
	other.listen(now)
	if len(other.hosts["host3"]) != 7 || !reflect.DeepEqual(other.hosts["host3"], n.hosts["host3"]) {
		t.Errorf("sent %v, before %v", other.hosts["host3"], n.hosts["host3"])
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		m := slices.Clone(saved[:1+rng.IntN(len(saved))])
		m[rng.IntN(len(m))] = byte(rng.Uint32())
		_ = newNetwork(t, small).Restore(m)
	}
}

// Saved state has no weights that are none, wherever it is damaged.
func TestRestoredWeightsAreNumbers(t *testing.T) {
	n := newNetwork(t, small)
	n.send("host", 1000*second, func(w *writer) { w.report(n.flowOf(1, false), 100, 4) })
	saved, err := n.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for at := range len(saved) - 7 {
		for _, x := range []float64{math.NaN(), -1} {
			m := slices.Clone(saved)
			binary.LittleEndian.PutUint64(m[at:], math.Float64bits(x))
			other := newNetwork(t, small)
			if other.Restore(m) != nil {
				continue
			}
			taken++
			for _, a := range other.ledger.flows {
				for _, s := range a.steps {
					if !(s.weight >= 0) || !(s.variance >= 0) {
						t.Errorf("from byte %d of %d on: weight %g, variance %g", at, len(saved), s.weight, s.variance)
					}
				}
			}
		}
	}
	if other := newNetwork(t, small); other.Restore(saved) != nil || len(other.ledger.flows) != 1 {
		t.Errorf("%d flows of the sound state; %d damaged ones are taken", len(other.ledger.flows), taken)
	}
}
