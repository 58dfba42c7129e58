package waits

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// TestTwentyConnections: of twenty connections one has a receiver that does not read, one a slow path, one a slow server. Each is found by its own
// cause within one window, none by another's, and no other connection is found, whatever of it resembles a cause.
func TestTwentyConnections(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, want := twenty(seed)
			line := measured(t, s, 5*time.Second, nil)[0]
			got := map[string]string{}
			for _, f := range found(line) {
				got[f.Subject.Name] = string(f.Kind)
			}
			if !maps.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
			agrees(t, &line)
		})
	}
}

// found are the findings of one window.
func found(l report.Line) []finding.Finding {
	e := diagnose.New()
	return append(e.Line(l), e.Flush()...)
}

func twenty(seed uint64) (*stage, map[string]string) {
	rng := rand.New(rand.NewPCG(seed, 31))
	s, v6, end := &stage{}, seed%3 == 2, begin+4800*ms
	who := rng.Perm(20)
	for _, n := range who[3:] {
		lookAlikes(s, n, v6, rng, end)
	}
	shut, far, idle := s.conn(who[0], v6, rng), s.conn(who[1], v6, rng), s.conn(who[2], v6, rng)
	at := func() int64 { return begin + rng.Int64N(300*ms) }
	up := func(c *conn) string { return fmt.Sprintf("%v > %v/tcp", c.client, c.server) }
	down := func(c *conn) string { return fmt.Sprintf("%v > %v/tcp", c.server, c.client) }
	until := shut.open(at(), scale) + 1500*ms + rng.Int64N(2000*ms)
	shut.talk(shut.stuff(until-1400*ms, until, seed%2 == 0), end, ms)
	want := map[string]string{down(shut): string(finding.SlowReceiver), up(idle): string(finding.SlowServer)}
	more := 120*ms + rng.Int64N(180*ms)
	if seed%2 == 0 {
		far.legS += more
		want[up(far)] = string(finding.SlowNetwork)
	} else {
		far.legC += more
		want[down(far)] = string(finding.SlowNetwork)
	}
	far.talk(far.open(at(), scale), end, ms)
	idle.talk(idle.open(at(), scale), end, 200*ms+rng.Int64N(200*ms))
	return s, want
}

// agrees compares the answer with the truth: all of it is listed, and between its ends. Where two connections wanted one place, which the answer states, what is
// listed is.
func agrees(t *testing.T, l *report.Line) {
	t.Helper()
	for _, table := range l.Report.Tables {
		truth, _ := report.Find(l.Truth.Tables, table.Name)
		held, all := held(t, l, table.Name)
		if held != all || l.Lost["missed"] == 0 && (all != len(truth.Rows) || len(table.Rows) != all) {
			t.Errorf("%s: %d of %d rows hold the truth, %d are listed, there are %d", table.Name, held, all, len(table.Rows), len(truth.Rows))
		}
	}
	for _, name := range []string{"zero_windows", "small_windows"} {
		if e, ok := report.Find(l.Error.Values, name); !ok || e.Value != 0. {
			t.Errorf("%s: error %v", name, e.Value)
		}
	}
}

// held counts the rows of a table with both ends, and those whose ends hold the truth.
func held(t *testing.T, l *report.Line, name string) (held, all int) {
	t.Helper()
	table, _ := report.Find(l.Report.Tables, name)
	truth, _ := report.Find(l.Truth.Tables, name)
	want := map[string]float64{}
	for _, row := range truth.Rows {
		want[fmt.Sprint(row[:6]...)], _ = report.Number(row[6])
	}
	for _, row := range table.Rows {
		low, _ := report.Number(row[7])
		high, _ := report.Number(row[8])
		exact, known := want[fmt.Sprint(row[:6]...)]
		if !known || math.IsNaN(high) {
			continue
		}
		if all++; exact >= low && exact <= high {
			held++
		} else {
			t.Logf("%v: %.0f, lost %v", row, exact, l.Lost)
		}
	}
	return held, all
}

// TestBounds: in 64 places, which hundreds of connections want one after the other, the ends hold the truth.
func TestBounds(t *testing.T) {
	in, all, crowded := 0, 0, uint64(0)
	for seed := range uint64(3) {
		rng, s := rand.New(rand.NewPCG(seed, 5)), &stage{}
		for n := range 300 {
			c, at := s.conn(n, false, rng), begin+int64(n)*200*ms
			c.legS += rng.Int64N(150 * ms)
			c.talk(c.open(at, scale), at+400*ms, 1+rng.Int64N(200*ms))
		}
		line := measured(t, s, 0, map[string]string{"memory": "5kB", "top": "10000"})[0]
		crowded += line.Lost["crowded"]
		h, a := held(t, &line, "waits")
		in, all = in+h, all+a
	}
	if crowded < 30 || all < 300 || float64(in) < .95*float64(all) {
		t.Errorf("%d of %d rows hold the truth, and %d waits found no place", in, all, crowded)
	}
}

// TestOverWindows: a window that stays closed is seen in each window of time in which it is probed, and the connection's handshake in the first one still tells a slow server.
func TestOverWindows(t *testing.T) {
	rng, s := rand.New(rand.NewPCG(1, 9)), &stage{}
	shut, idle := s.conn(1, false, rng), s.conn(2, false, rng)
	shut.stuff(shut.open(begin, scale), begin+25_000*ms, true)
	idle.talk(idle.open(begin, scale), begin+25_000*ms, 300*ms)
	for n := range 18 {
		lookAlikes(s, 6+7*n, false, rng, begin+25_000*ms)
	}
	for _, line := range measured(t, s, 6*time.Second, nil) {
		if line.Window.Number > 2 { // the client was probed after .2, .6, 1.4, 3, 6.2 and 12.6 s
			break
		}
		causes, _ := report.Find(line.Report.Tables, "causes")
		var list []string
		for _, row := range causes.Rows {
			list = append(list, fmt.Sprint(row[1], " ", row[3], " ", row[5]))
		}
		slices.Sort(list)
		if want := []string{fmt.Sprint(idle.client.Port(), " 443 server"), fmt.Sprint("443 ", shut.client.Port(), " receiver")}; !slices.Equal(list, want) {
			t.Errorf("window %d: %v, want %v", line.Window.Number, list, want)
		}
		agrees(t, &line)
	}
}

// TestLateAcks: ACKs are late because of the path where the handshake was as late, and because of the receiver where it was not. Segments that are sent again are not
// timed: the ACK would tell nothing.
func TestLateAcks(t *testing.T) {
	rng, s := rand.New(rand.NewPCG(4, 4)), &stage{}
	far, tired, lossy := s.conn(1, false, rng), s.conn(2, false, rng), s.conn(3, false, rng)
	far.legC = 300 * ms
	far.talk(far.open(begin, scale), begin+4000*ms, ms)
	at := tired.open(begin, scale)
	tired.legC = 400 * ms
	tired.talk(at, begin+4000*ms, ms)
	for at = lossy.open(begin, scale); at < begin+4000*ms; at += 700 * ms {
		lossy.put(at, false, one{flags: packet.ACK, payload: segment, window: 500})
		lossy.put(at+300*ms, false, one{flags: packet.ACK, payload: segment, window: 500, back: segment})
		lossy.ack(at+301*ms, true, 500)
	}
	line := measured(t, s, 0, nil)[0]
	agrees(t, &line)
	causes, _ := report.Find(line.Report.Tables, "causes")
	var list []string
	for _, row := range causes.Rows {
		list = append(list, fmt.Sprint(row[3], " ", row[5]))
	}
	slices.Sort(list)
	if want := []string{fmt.Sprint(far.client.Port(), " path"), fmt.Sprint(tired.client.Port(), " receiver")}; !slices.Equal(list, want) {
		t.Errorf("%v, want %v", list, want)
	}
	if n, _ := report.Find(line.Report.Values, "segments_repeated"); n.Value != uint64(6) {
		t.Errorf("%v segments were sent again, want 6", n.Value)
	}
}
