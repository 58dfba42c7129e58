package main

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// Names that are right and names that are nearly right.
func TestSubjects(t *testing.T) {
	a := netip.MustParseAddr("10.2.3.4")
	for _, c := range []struct {
		subject      subject
		right, wrong string
	}{
		{network(netip.MustParsePrefix("10.2.3.0/24")), "10.2.3.0/24", "10.2.0.0/16 10.2.4.0/24 10.2.3.4 xdpmon-out"},
		{network(netip.MustParsePrefix("fd00:1:2:3::/64")), "fd00:1:2::/56 fd00:1:2:3::/64", "fd00:1::/32 fd00:1:3::/56 10.2.3.0/24"},
		{hostOf(a), "10.2.3.4 10.2.3.0/24 10.2.3.4/32", "10.2.3.5 10.2.0.0/16 10.2.3.44"},
		{sender(a), "10.2.3.4 10.2.3.4:5>10.9.9.9:443/tcp", "10.2.3.45:1>10.2.3.4:443/tcp 10.9.9.9:443>10.2.3.4:5/tcp"},
		{service(netip.AddrPortFrom(a, 443)), "10.2.3.4:443 10.2.3.4", "10.2.3.4:80 10.2.3.0/24"},
		{network20(netip.MustParsePrefix("10.2.16.0/20")), "10.2.16.0/20 10.2.16.0/21 10.2.0.0/16", "10.2.32.0/20 10.0.0.0/8"},
	} {
		for name := range strings.FieldsSeq(c.right) {
			if !c.subject.right(name) {
				t.Errorf("%s is not %s", name, c.subject.what)
			}
		}
		for name := range strings.FieldsSeq(c.wrong) {
			if c.subject.right(name) {
				t.Errorf("%s is %s", name, c.subject.what)
			}
		}
	}
}

func finding(kind, name string, at int) (f found) {
	f.Kind, f.Subject.Name, f.at = kind, name, time.Unix(int64(at), 0)
	return f
}

// What is missing, late, wrong, out of order, or ends with the wrong code is counted, and only that.
func TestJudge(t *testing.T) {
	onset, window := time.Unix(100, 0), 2*time.Second
	s := &staged{expect: []want{{scan, exactly("a")}, {dnsIsSlow, exactly("b")}}, also: []want{{flood, anything}}}
	first, second, third := finding(scan, "a", 103), finding(dnsIsSlow, "b", 106), finding(flood, "c", 104)
	for _, c := range []struct {
		name           string
		began, summary []found
		code           int
		want           judged
	}{
		{"all", []found{third, first, second}, []found{third, first, second}, 4, judged{expected: 2, found: 2, inTime: 2, order: true, code: true}},
		{"other order", []found{first, second}, []found{second, first}, 4, judged{expected: 2, found: 2, inTime: 2, code: true}},
		{"one is missing", []found{second}, []found{second}, 4, judged{expected: 2, found: 1, inTime: 1, missed: s.expect[:1], order: true, code: true}},
		{"one is late", []found{first, finding(dnsIsSlow, "b", 109)}, nil, 4, judged{expected: 2, found: 2, inTime: 1, late: s.expect[1:], order: true, code: true}},
		{"one is wrong", []found{first, second, finding(scan, "b", 104)}, nil, 4, judged{expected: 2, found: 2, inTime: 2, wrong: []found{finding(scan, "b", 104)}, order: true, code: true}},
		{"nothing, and code 4", nil, nil, 4, judged{expected: 2, missed: s.expect, order: true}},
	} {
		got := judgeLive(s, &answer{began: c.began, summary: c.summary, code: c.code}, onset, window)
		if got.expected != c.want.expected || got.found != c.want.found || got.inTime != c.want.inTime || len(got.missed) != len(c.want.missed) || len(got.late) != len(c.want.late) ||
			len(got.wrong) != len(c.want.wrong) || got.order != c.want.order || got.code != c.want.code {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// What a capture cannot show is not asked of it, and is not wrong there either.
func TestJudgeCapture(t *testing.T) {
	s := &staged{expect: []want{{lossIsHere, here}}, hidden: true, capturedAlso: []want{{lossIsBefore, anything}}}
	a := &answer{began: []found{finding(lossIsBefore, "10.1.2.0/24", 1)}, code: 4}
	if j := judgeCapture(s, &facts{}, a); !j.clean() || j.expected != 0 {
		t.Errorf("%+v", j)
	}
	if j := judgeLive(s, a, time.Unix(0, 0), time.Second); len(j.missed) != 1 || len(j.wrong) != 1 {
		t.Errorf("live: %+v", j)
	}
}

// What tshark writes is read field by field; a field too few is an error.
func TestReadRows(t *testing.T) {
	line := "1700000000.123456789\t10.1.2.3\t10.4.5.6\t\t\t443\t50000\t\t\t6\t0x0012\t0\t74\t\t1\t\t\t0.020500000\t\t\teth:ethertype:ip:tcp"
	rows, err := readRows(strings.NewReader(line + "\n"))
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	r := rows[0]
	if !r.isSYNACK() || r.isSYN() || r.src.String() != "10.1.2.3" || r.dport != 50000 || r.ackRTT != 20500*time.Microsecond || !r.lostBefore || r.retransmission || r.bytes != 74 ||
		r.at.UnixNano() != 1700000000123456789 {
		t.Errorf("%+v", r)
	}
	if _, err := readRows(strings.NewReader("1\t2\n")); err == nil {
		t.Error("two fields are read")
	}
}

// A seed draws the same incident each time, and another seed another one.
func TestDraw(t *testing.T) {
	names := map[string]bool{}
	for _, in := range incidents {
		if names[in.name] {
			t.Errorf("%s is listed twice", in.name)
		}
		names[in.name] = true
		of := func(seed uint64) string { return in.draw(newWorld(seed, in.name)).what }
		if a, b := of(1), of(1); a != b {
			t.Errorf("%s: %q, then %q", in.name, a, b)
		}
		if s := in.draw(newWorld(1, in.name)); s.proof == nil && in.name != "windows-late" {
			t.Errorf("%s has no proof", in.name)
		}
	}
	if len(incidents) < 24+2+2 {
		t.Errorf("%d incidents", len(incidents))
	}
}

// Windows are late where the bank changed late by the harness' clock: one that only says so is not, nor one at another time, nor one that was read seldom.
func TestFlips(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(100, 0).Add(time.Duration(s * 1e9)) }
	f, c := &flips{}, &chain{}
	for n, read := range []float64{0, 1.9, 2, 3.9, 4, 7.1, 7.2, 9, 9.1} { // banks change just before the even ones
		f.step(c, uint64(n/2%2), at(read), at(read))
	}
	high := 2.4e9
	for _, c := range []struct {
		name  string
		kind  string
		since float64
		want  bool
	}{{"late", windowsLate, 4.05, true}, {"in time", windowsLate, 2.05, false}, {"at another time", windowsLate, 6, false}, {"another kind", scan, 4.05, false}} {
		n := &found{Kind: c.kind, Since: at(c.since).UnixNano(), High: &high}
		if got := f.show(n); got != c.want {
			t.Errorf("%s: %t; %+v", c.name, got, f.ended)
		}
	}
	seldom, c := &flips{}, &chain{}
	for n, read := range []float64{0, 1.9, 2, 2.6, 4.6} { // the last window may have been 2 s long
		seldom.step(c, uint64(n/2%2), at(read), at(read))
	}
	if seldom.show(&found{Kind: windowsLate, Since: at(2).UnixNano(), High: &high}) {
		t.Errorf("a window that may have been in time is late: %+v", seldom.ended)
	}
}
