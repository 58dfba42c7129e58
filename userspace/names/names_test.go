package names

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

const minute = int64(60e9)

// reply is a DNS answer to a question for an address, by way of aliases.
type reply struct {
	asked   string
	kind    dnsmessage.Type
	aliases []string
	addrs   []string
	pointer string
	ttl     uint32
	code    dnsmessage.RCode
	query   bool
}

func name(text string) dnsmessage.Name { return dnsmessage.MustNewName(text) }

func (r reply) message(t *testing.T) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, Response: !r.query, RCode: r.code}}
	kind := r.kind
	if kind == 0 {
		kind = dnsmessage.TypeA
	}
	m.Questions = []dnsmessage.Question{{Name: name(r.asked), Type: kind, Class: dnsmessage.ClassINET}}
	owner := r.asked
	head := func() dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: name(owner), Class: dnsmessage.ClassINET, TTL: r.ttl}
	}
	for _, alias := range r.aliases {
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head(), Body: &dnsmessage.CNAMEResource{CNAME: name(alias)}})
		owner = alias
	}
	for _, text := range r.addrs {
		var body dnsmessage.ResourceBody
		if a := netip.MustParseAddr(text); a.Is4() {
			body = &dnsmessage.AResource{A: a.As4()}
		} else {
			body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head(), Body: body})
	}
	if r.pointer != "" {
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: head(), Body: &dnsmessage.PTRResource{PTR: name(r.pointer)}})
	}
	text, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// udp4 is an IPv4 packet with a datagram from a port.
func udp4(port uint16, msg []byte) []byte {
	ip := make([]byte, 28, 28+len(msg))
	ip[0], ip[8], ip[9] = 0x45, 64, protocolUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(28+len(msg)))
	copy(ip[12:], []byte{10, 0, 0, 53, 10, 0, 0, 1})
	binary.BigEndian.PutUint16(ip[20:], port)
	binary.BigEndian.PutUint16(ip[22:], 40000)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+len(msg)))
	return append(ip, msg...)
}

func udp6(port uint16, msg []byte) []byte {
	ip := make([]byte, 48, 48+len(msg))
	ip[0], ip[6], ip[7] = 0x60, protocolUDP, 64
	binary.BigEndian.PutUint16(ip[4:], uint16(8+len(msg)))
	binary.BigEndian.PutUint16(ip[40:], port)
	binary.BigEndian.PutUint16(ip[44:], uint16(8+len(msg)))
	return append(ip, msg...)
}

func learning(t *testing.T, entries int, files ...string) *Names {
	t.Helper()
	n, err := New(Options{Services: true, DNS: true, Entries: entries, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func dnsOf(n *Names, addr string) string { return n.Address(netip.MustParseAddr(addr)).DNS }

func TestLearnsWhatWasAskedFor(t *testing.T) {
	n := learning(t, 0)
	n.Packet(udp4(53, reply{asked: "WWW.Example.org.", aliases: []string{"cdn.example.net.", "edge.example.net."}, addrs: []string{"192.0.2.1", "192.0.2.2"}}.message(t)), minute)
	n.Packet(udp6(53, reply{asked: "six.example.org.", kind: dnsmessage.TypeAAAA, addrs: []string{"2001:db8::5"}}.message(t)), minute)
	n.Packet(udp4(53, reply{asked: "9.2.0.192.in-addr.arpa.", kind: dnsmessage.TypePTR, pointer: "mail.example.org."}.message(t)), minute)
	n.Packet(udp4(53, reply{asked: "8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", kind: dnsmessage.TypePTR, pointer: "eight.example.org."}.message(t)), minute)
	for addr, want := range map[string]string{"192.0.2.1": "www.example.org", "192.0.2.2": "www.example.org", "2001:db8::5": "six.example.org", "192.0.2.9": "mail.example.org",
		"2001:db8::8": "eight.example.org", "192.0.2.3": "", "::ffff:192.0.2.1": "www.example.org"} {
		if got := dnsOf(n, addr); got != want {
			t.Errorf("%s is %q, want %q", addr, got, want)
		}
	}
	if s, ok := n.Stats(); !ok || s.Answers != 4 || s.Learned != 5 || s.Entries != 5 || s.Malformed != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestBelievesNothingElse(t *testing.T) {
	n := learning(t, 0)
	honest := reply{asked: "a.example.", addrs: []string{"192.0.2.1"}}
	stray := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Questions: []dnsmessage.Question{{Name: name("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
		Answers: []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: name("bank.example."), Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}}}}
	text, err := stray.Pack()
	if err != nil {
		t.Fatal(err)
	}
	fragment := udp4(53, honest.message(t))
	fragment[6] = 0x20
	for what, ip := range map[string][]byte{
		"an owner that was not asked for": udp4(53, text),
		"another port":                    udp4(5353, honest.message(t)),
		"a question":                      udp4(53, reply{asked: "a.example.", addrs: []string{"192.0.2.1"}, query: true}.message(t)),
		"a refusal":                       udp4(53, reply{asked: "a.example.", addrs: []string{"192.0.2.1"}, code: dnsmessage.RCodeNameError}.message(t)),
		"a sinkhole":                      udp4(53, reply{asked: "a.example.", addrs: []string{"0.0.0.0", "127.0.0.1", "224.0.0.1"}}.message(t)),
		"a fragment":                      fragment,
		"nothing":                         nil,
	} {
		if n.Packet(ip, minute); dnsOf(n, "192.0.2.1") != "" {
			t.Fatalf("%s was believed", what)
		}
	}
	if s, _ := n.Stats(); s.Entries != 0 {
		t.Errorf("%+v: something was believed", s)
	}
}

// A capture has Ethernet frames with tags, and raw IP.
func TestFramesOfCaptures(t *testing.T) {
	ip := udp4(53, reply{asked: "a.example.", addrs: []string{"192.0.2.1"}}.message(t))
	mac := make([]byte, 12)
	for what, f := range map[string]packet.Frame{
		"raw":      {Data: ip, Link: packet.LinkRaw},
		"ethernet": {Data: append(append(bytes.Clone(mac), 8, 0), ip...), Link: packet.LinkEthernet},
		"two tags": {Data: append(append(bytes.Clone(mac), 0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0), ip...), Link: packet.LinkEthernet},
	} {
		n := learning(t, 0)
		f.Time = minute
		for cut := range f.Data {
			short := f
			short.Data = f.Data[:cut]
			n.Frame(&short)
		}
		if dnsOf(n, "192.0.2.1") != "" {
			t.Errorf("%s: a cut answer was believed", what)
		}
		if n.Frame(&f); dnsOf(n, "192.0.2.1") != "a.example" {
			t.Errorf("%s: not learned", what)
		}
	}
}

// The cache is bounded by entries, the oldest going first, and by time.
func TestCacheIsBounded(t *testing.T) {
	n := learning(t, 100)
	for i := range 1000 {
		n.Packet(udp4(53, reply{asked: fmt.Sprintf("h%d.example.", i), addrs: []string{netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}).String()}, ttl: 60}.message(t)), minute)
	}
	if s, _ := n.Stats(); s.Entries != 100 || s.Evicted != 900 || s.Learned != 1000 {
		t.Errorf("stats %+v", s)
	}
	if dnsOf(n, "10.1.3.231") != "h999.example" || dnsOf(n, "10.1.0.5") != "" {
		t.Error("the oldest does not go first")
	}
	long := reply{asked: "long.example.", addrs: []string{"192.0.2.7"}, ttl: 3600}
	n.Packet(udp4(53, long.message(t)), 2*minute)
	late := func(now int64) { n.Packet(udp4(53, reply{asked: "x.example."}.message(t)), now) }
	if late(9 * minute); dnsOf(n, "10.1.3.231") == "" {
		t.Error("forgotten within ten minutes")
	}
	if late(12 * minute); dnsOf(n, "10.1.3.231") != "" || dnsOf(n, "192.0.2.7") == "" {
		t.Error("a name of one minute is there after eleven, or one of an hour is not")
	}
	if late(63 * minute); dnsOf(n, "192.0.2.7") != "" {
		t.Error("a name of one hour is there after one")
	}
}

// Whatever an answer has in it, a name is text: in a terminal, in a page, in JSON.
func TestHostileNames(t *testing.T) {
	n := learning(t, 0)
	for i, label := range []string{"\x1b[2J\x1b[31mroot", "<script>alert(1)</script>", "a\x00b", "new\nline", "\xff\xfe", `back\slash"quote`, "\u202eevil", strings.Repeat("x", 63)} {
		var wire dnsmessage.Name
		wire.Length = uint8(copy(wire.Data[:], label+".example."))
		addr := fmt.Sprintf("192.0.2.%d", i+1)
		m := dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Questions: []dnsmessage.Question{{Name: wire, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
			Answers: []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: wire, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()}}}}
		text, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		n.Packet(udp4(53, text), minute)
		got := dnsOf(n, addr)
		if got == "" || got != html.EscapeString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < '!' || r > '~' }) {
			t.Errorf("%q became %q", label, got)
		}
	}
	// lengths and pointers that promise what is not there, loops, and 64 kB of labels
	good := reply{asked: "a.example.", addrs: []string{"198.51.100.1"}}.message(t)
	loop := bytes.Clone(good)
	loop[12], loop[13] = 0xc0, 12
	huge := append(bytes.Clone(good[:12]), bytes.Repeat(append([]byte{63}, bytes.Repeat([]byte("x"), 63)...), 1024)...)
	many := bytes.Clone(good)
	many[4], many[5], many[6], many[7] = 0xff, 0xff, 0xff, 0xff
	for _, msg := range [][]byte{loop, huge, many, bytes.Repeat([]byte{0xff}, 65000)} {
		n.Packet(udp4(53, msg[:min(len(msg), 65507)]), minute)
	}
	if s, _ := n.Stats(); s.Malformed == 0 || s.Entries > 9 {
		t.Errorf("stats %+v", s)
	}
}

func FuzzPacket(f *testing.F) {
	f.Add([]byte{0x45})
	f.Add(udp4(53, []byte{0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1}))
	f.Fuzz(func(t *testing.T, ip []byte) {
		n, _ := New(Options{DNS: true, Entries: 4})
		defer n.Close()
		n.Packet(ip, 1)
		if s, _ := n.Stats(); s.Entries > 4 {
			t.Fatal("more than there is room for")
		}
		for a, at := range n.dns.names {
			if name := at.Value.(*entry).name; name == "" || len(name) > longestName || strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' }) {
				t.Fatalf("%v is %q", a, name)
			}
		}
	})
}

func line() report.Line {
	return report.Line{Report: report.Body{Tables: []report.Table{
		{Name: "flows", Columns: []report.Column{{Name: "src", Label: true}, {Name: "sport", Label: true}, {Name: "dst", Label: true}, {Name: "dport", Label: true},
			{Name: "packets", Unit: report.PacketUnit}, {Name: "bytes", Unit: report.Bytes, Rate: true}},
			Rows: [][]any{{"10.0.0.1", int64(40000), "192.0.2.1", int64(443), 7.0, 700.0}, {"10.0.0.8", int64(1), "10.0.0.9", int64(2), 1.0, 10.0}}},
		{Name: "prefixes", Columns: []report.Column{{Name: "prefix", Label: true}}, Rows: [][]any{{"192.0.2.0/24 > 10.0.0.1"}}},
		{Name: "settings", Settings: true, Columns: []report.Column{{Name: "query", Label: true}}, Rows: [][]any{{"192.0.2.1"}}},
	}}}
}

func TestRowsHaveNames(t *testing.T) {
	n := learning(t, 0, systems(t, filepath.Join(t.TempDir(), "as.mmdb"), "Example & Söhne"))
	n.Packet(udp4(53, reply{asked: "www.example.org.", addrs: []string{"192.0.2.1"}}.message(t)), minute)
	n.SetGuests(map[netip.Addr]report.Guest{netip.MustParseAddr("10.0.0.1"): {Kind: known.GuestDomain, Name: "web-3"}})
	before := line()
	named := n.Line(before)
	if before.Report.Tables[0].Names != nil || named.Report.Tables[2].Names != nil {
		t.Error("the line that was given is changed, or settings are named")
	}
	text, err := named.Record(report.Clock{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"src":"10.0.0.1","sport":40000,"dst":"192.0.2.1","dport":443,"packets":7,"bytes":700,"names":[{"column":"src","of":"10.0.0.1","guest":{"kind":"domain","name":"web-3"}},` +
			`{"column":"dst","of":"192.0.2.1","dns":"www.example.org","as":64500,"as_name":"Example & Söhne","country":"DE"},{"column":"dport","of":"443","service":"https"}]}`,
		`{"src":"10.0.0.8","sport":1,"dst":"10.0.0.9","dport":2,"packets":1,"bytes":10}`,
		`"names":[{"column":"prefix","of":"192.0.2.0/24","as":64500,"as_name":"Example & Söhne","country":"DE"},{"column":"prefix","of":"10.0.0.1","guest":{"kind":"domain","name":"web-3"}}]`,
	} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	shown := strings.Join(report.Text(named, report.Run{}, report.Style{Width: 140}), "\n")
	if !strings.Contains(shown, "web-3 > www.example.org (ht~") {
		t.Errorf("no names in\n%s", shown)
	}
	var none *Names
	if l := none.Line(before); l.Report.Tables[0].Names != nil {
		t.Error("a nil *Names has an answer")
	}
}

func TestFindingsHaveNames(t *testing.T) {
	n := learning(t, 0)
	n.Packet(udp4(53, reply{asked: "db.example.org.", addrs: []string{"192.0.2.1"}}.message(t)), minute)
	n.Packet(udp4(53, reply{asked: "evil.example.org.", addrs: []string{"192.0.2.66"}}.message(t)), minute)
	f := n.Finding(finding.Finding{Kind: finding.Flood, Subject: finding.Subject{Type: finding.Service, Name: "192.0.2.1:5432"}, Because: "most from 192.0.2.66, 192.0.2.66"})
	if s := f.Sentence(); !strings.HasPrefix(s, "192.0.2.1:5432 (postgresql, db.example.org) is flooded") || strings.Count(s, "192.0.2.66 is evil.example.org") != 1 {
		t.Error(s)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back finding.Finding
	if err := json.Unmarshal(text, &back); err != nil || len(back.Names) != 2 || back.Names[0] != f.Names[0] {
		t.Errorf("%v, %+v", err, back.Names)
	}
	// a hostile agent's
	if err := json.Unmarshal([]byte(`{"kind":"scan","names":[{"of":"a","dns":"`+strings.Repeat("x", 1<<16)+`\u001b[2J"}]}`), &back); err != nil || len(back.Names[0].DNS) > 255 {
		t.Errorf("%v, %d characters", err, len(back.Names[0].DNS))
	}
}

// A file that changes is read again; one that is damaged meanwhile changes nothing, and a damaged one at the start names the remedy.
func TestDatabaseChanges(t *testing.T) {
	path := systems(t, filepath.Join(t.TempDir(), "as.mmdb"), "Old\x1b[2J\nName"+strings.Repeat("y", 1000))
	var warnings []string
	n, err := New(Options{Files: []string{path}, Warn: func(f string, args ...any) { warnings = append(warnings, fmt.Sprintf(f, args...)) }})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	of := func() known.Name { return n.Address(netip.MustParseAddr("192.0.2.1")) }
	if got := of(); !strings.HasPrefix(got.ASName, "Old[2JNameyyy") || len(got.ASName) > longestField || got.AS != 64500 || got.Country != "DE" {
		t.Errorf("%+v", got)
	}
	if got := n.Address(netip.MustParseAddr("203.0.113.1")); got.Known() {
		t.Errorf("outside of the file's networks: %+v", got)
	}
	if err := os.WriteFile(path, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n.databases[0].reload()
	}
	if of().AS != 64500 || len(warnings) != 1 || !strings.Contains(warnings[0], remedy) {
		t.Errorf("%+v, warnings %q", of(), warnings)
	}
	systems(t, path, "New name")
	if n.databases[0].reload(); of().ASName != "New name" {
		t.Errorf("not read again: %+v", of())
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{"cut": whole[:len(whole)/2], "empty": {}, "cities": mmdb(map[string]any{"city": "Ulm"})} {
		bad := filepath.Join(t.TempDir(), what)
		if err := os.WriteFile(bad, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{Files: []string{bad}}); !errors.Is(err, ErrDatabase) || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := New(Options{Files: []string{"/nonexistent.mmdb"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func FuzzDatabase(f *testing.F) {
	f.Add(mmdb(map[string]any{"autonomous_system_number": uint32(64500)}))
	path := filepath.Join(f.TempDir(), "fuzz.mmdb")
	f.Fuzz(func(t *testing.T, text []byte) {
		if os.WriteFile(path, text, 0o600) != nil {
			t.Skip()
		}
		n, err := New(Options{Files: []string{path}})
		if err != nil {
			return
		}
		defer n.Close()
		for _, a := range []string{"192.0.2.1", "10.0.0.1", "2001:db8::1"} {
			one := n.Address(netip.MustParseAddr(a))
			if len(one.ASName) > longestField || len(one.Country) > 2 {
				t.Fatalf("%+v", one)
			}
		}
	})
}

// Fields of other makers' files.
func TestFieldsOfDatabases(t *testing.T) {
	for _, c := range []struct {
		record map[string]any
		want   known.Name
	}{
		{map[string]any{"asn": "AS64501", "as_name": "Other", "country_code": "FR", "country": "France"}, known.Name{AS: 64501, ASName: "Other", Country: "FR"}},
		{map[string]any{"country": "IT"}, known.Name{Country: "IT"}},
		{map[string]any{"registered_country": map[string]any{"iso_code": "PL"}}, known.Name{Country: "PL"}},
	} {
		path := filepath.Join(t.TempDir(), "x.mmdb")
		if err := os.WriteFile(path, mmdb(c.record), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := New(Options{Files: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Address(netip.MustParseAddr("192.0.2.77")); got != c.want {
			t.Errorf("%v: %+v", c.record, got)
		}
		n.Close()
	}
}

// The address that was resolved longest ago is forgotten first: one that is resolved again stays.
func TestResolvedAgainStays(t *testing.T) {
	c := newCache(2)
	a, b, d := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	c.put(a, "a", 60, 0)
	c.put(b, "b", 60, 0)
	c.put(a, "again", 60, 0)
	c.put(d, "d", 60, 0)
	c.read = time.Now()
	if c.name(a) != "again" || c.name(b) != "" || c.name(d) != "d" || c.stats() != (Stats{Learned: 4, Evicted: 1, Entries: 2}) {
		t.Errorf("%q, %q, %q: %+v", c.name(a), c.name(b), c.name(d), c.stats())
	}
}
