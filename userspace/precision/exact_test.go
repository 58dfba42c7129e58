package precision

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/precision"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// mixed is some flows over IPv4 and IPv6, a tenth of it without ports.
func mixed(n int) *traffic.Script {
	rng := rand.New(rand.NewPCG(3, 4))
	var list []packet.Packet
	for k := range n {
		flow := rng.IntN(1 + k%40)
		p := packet.Packet{Time: traffic.Start + int64(k)*1_000_000, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, SrcPort: uint16(1000 + flow%3),
			DstPort: 9, Segs: 1, Payload: 100 + rng.Uint32N(1000), Src: netip.AddrFrom4([4]byte{10, 0, 0, byte(flow)}), Dst: netip.AddrFrom4([4]byte{20, 0, byte(flow), 1})}
		p.Len = p.Payload + 42
		if flow%3 == 0 {
			p.Src, p.Dst, p.Len = netip.AddrFrom16([16]byte{0x20, 1, byte(flow), 15: 1}), netip.AddrFrom16([16]byte{0x20, 2, 15: byte(flow)}), p.Len+20
		}
		if flow%10 == 9 {
			p.Valid, p.Proto, p.SrcPort, p.DstPort, p.Len = packet.IP, 47, 0, 0, p.Len-8
		}
		list = append(list, p)
	}
	return traffic.InTime(list)
}

func windows(t *testing.T, set map[string]string) []report.Line {
	t.Helper()
	return windowsOf(t, mixed(6000), set)
}

func windowsOf(t *testing.T, packets *traffic.Script, set map[string]string) (list []report.Line) {
	t.Helper()
	testutil.NeedRoot(t)
	d, err := algo.Lookup(Name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values(t, set)}}, Seed: 1, Truth: true, Window: 2 * time.Second, Notice: t.Logf,
		Emit: func(l report.Line) error { list = append(list, l); return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "model", traffic.Frames(packets), nil); err != nil {
		t.Fatal(err)
	}
	return list
}

func number(t *testing.T, b report.Body, name string) float64 {
	t.Helper()
	for _, v := range b.Values {
		if v.Name == name {
			f, _ := report.Number(v.Value)
			return f
		}
	}
	t.Fatalf("no value %s", name)
	return 0
}

// With an entry for every flow each is listed with its count, except for packets before its second pass had returned, and
// with an interval that includes them; windows are separate.
func TestRoomForAll(t *testing.T) {
	for _, set := range []map[string]string{{}, {"key": "dst", "count": "bytes", "ways": "3", "entries": "3072", "initial": "1"}, {"family": "4", "admission": "exact"},
		{"key": "service", "admission": "pow2", "ways": "4"}, {"key": "srcdst", "family": "6", "admission": "deterministic"}, {"initial": "0", "key": "proto"}} {
		set["top"] = "1000"
		lines := windows(t, set)
		if len(lines) != 3 {
			t.Fatalf("%v: %d windows", set, len(lines))
		}
		for _, l := range lines {
			unit := 1.0
			if set["count"] == "bytes" {
				unit = fullPacket
			}
			labels := 0
			for _, c := range l.Truth.Tables[0].Columns {
				if c.Label {
					labels++
				}
			}
			found := map[string]float64{}
			for _, row := range l.Report.Tables[0].Rows {
				found[fmt.Sprint(row[:labels])] = row[labels].(float64)
			}
			if len(found) > len(l.Truth.Tables[0].Rows) {
				t.Errorf("%v: %d flows are listed, there are %d", set, len(found), len(l.Truth.Tables[0].Rows))
			}
			for _, row := range l.Truth.Tables[0].Rows {
				got, n := found[fmt.Sprint(row[:labels])], row[labels].(float64)
				if got > n+2*unit || got > 0 && got < n-8*unit || got <= 0 && n > 12*unit {
					t.Errorf("%v, window %d: %v counts %g, in truth %g", set, l.Window.Number, row[:labels], got, n)
				}
			}
			if got := number(t, l.Report, "matched"); got > float64(l.Packets.Used) || got < float64(l.Packets.Used)/2 {
				t.Errorf("%v: %g of %d packets found an entry", set, got, l.Packets.Used)
			}
			if got, want := number(t, l.Report, "total"), number(t, *l.Truth, "total"); got != want || l.Lost["recirculation_refused"] != 0 {
				t.Errorf("%v: %g in all, in truth %g; lost %v", set, got, want, l.Lost)
			}
		}
	}
}

// A row has an interval or bounds: in bytes, which are of few packets or many, and where little of it was counted, bounds that hold the truth.
func TestIntervalOrBounds(t *testing.T) {
	for _, set := range []map[string]string{{"key": "dst", "entries": "64"}, {"key": "dst", "entries": "64", "count": "bytes"}} {
		intervals, bounds := 0, 0
		for _, l := range windows(t, set) {
			at := map[string]int{}
			for i, c := range l.Report.Tables[0].Columns {
				at[c.Name] = i
			}
			amount := l.Report.Tables[0].Columns[at["share"]-1]
			known := map[string]float64{}
			for _, row := range l.Truth.Tables[0].Rows {
				known[fmt.Sprint(row[:at[amount.Name]])] = row[at[amount.Name]].(float64)
			}
			for _, row := range l.Report.Tables[0].Rows {
				of := func(name string) float64 { return row[at[name]].(float64) }
				low, high, least, most := of(amount.Low), of(amount.High), of(amount.Least), of(amount.Most)
				truth, doubtful := known[fmt.Sprint(row[:at[amount.Name]])], row[at["remark"]] != ""
				switch {
				case math.IsNaN(low) != math.IsNaN(high) || math.IsNaN(low) == math.IsNaN(most):
					t.Errorf("%v: interval %g to %g, at most %g", set, low, high, most)
				case math.IsNaN(most):
					intervals++
				case least > truth || truth > 3*most || !doubtful && amount.Name == "packets":
					t.Errorf("%v: %g of [%g, %g], %q", set, truth, least, most, row[at["remark"]])
				default:
					bounds++
				}
			}
		}
		if (intervals == 0) != (set["count"] == "bytes") || bounds == 0 {
			t.Errorf("%v: %d intervals, %d bounds", set, intervals, bounds)
		}
	}
}

// Second passes a second decide whether the initial value is raised, however long a window is. It changes while a bank is closed, so
// for the window after the next.
func TestInitialFollowsPassesASecond(t *testing.T) {
	for passes, raised := range map[string]bool{"40": false, "5": true} {
		lines := windows(t, map[string]string{"passes": passes})
		n := number(t, lines[0].Report, "recirculated")
		if n < 30 || n > 60 || (number(t, lines[2].Report, "initial") > 1) != raised {
			t.Errorf("%g passes in 2 s where %s a second are wanted: then the initial value is %g", n, passes, number(t, lines[2].Report, "initial"))
		}
	}
}

func TestRefusedPasses(t *testing.T) {
	n := make(counts, 16)
	n[bpf.PrecisionPrecisionCounterPRECISION_ADMITTED], n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN] = 10, 7
	if got := n.refused(); got != 3 {
		t.Errorf("%d refused, want 3", got)
	}
	n[bpf.PrecisionPrecisionCounterPRECISION_WRITTEN] = 11 // one was asked for in the window before
	if got := n.refused(); got != 0 {
		t.Errorf("%d refused, want none", got)
	}
}

// The twin has a form for each key of IPv4; whatever else differs is refused.
func TestFormsOfTheTwin(t *testing.T) {
	for _, key := range []string{"5tuple", "srcdst", "src", "dst", "service", "sport", "dport", "proto"} {
		if _, err := descriptor().P4(values(t, map[string]string{"family": "4", "key": key})); err != nil {
			t.Error(err)
		}
	}
	for key, text := range map[string]string{"family": "both", "count": "bytes", "ways": "1", "admission": "exact", "delay": "1"} {
		if _, err := descriptor().P4(values(t, map[string]string{"family": "4", key: text})); err == nil {
			t.Errorf("a twin with %s=%s", key, text)
		}
	}
}

// With contention for entries a second pass still writes only into its own way: no flow has two, and the last one has an entry.
func TestCrowdedWaysAreApart(t *testing.T) {
	for _, ways := range []string{"2", "3", "4"} {
		for _, l := range windows(t, map[string]string{"ways": ways, "entries": "24", "admission": "exact", "initial": "1", "key": "srcdst"}) {
			if n := number(t, l.Report, "flows_with_two_entries"); n != 0 {
				t.Errorf("%s ways: %g flows have two entries", ways, n)
			}
			if passes := number(t, l.Report, "recirculated"); passes < 40 {
				t.Errorf("%s ways: no contention for entries: %g second passes", ways, passes)
			}
		}
	}
}

// A window begins as the one before the last did, whose bank it has: the same packets do the same, also where all that decides is counted.
func TestBanksAreEmptied(t *testing.T) {
	testutil.NeedRoot(t)
	once := *mixed(2000)
	var list []packet.Packet
	for n := range 3 {
		for _, p := range once {
			p.Time += int64(n) * 2e9
			list = append(list, p)
		}
	}
	for _, admission := range []string{"deterministic", "exact"} {
		lines := windowsOf(t, traffic.InTime(list), map[string]string{"entries": "24", "admission": admission, "initial": "1"})
		first, last := number(t, lines[0].Report, "recirculated"), number(t, lines[2].Report, "recirculated")
		if off := math.Abs(first - last); first < 20 || off > 0 && admission == "deterministic" || off > 8*math.Sqrt(first) {
			t.Errorf("%s: %g second passes, then %g", admission, first, last)
		}
	}
}
