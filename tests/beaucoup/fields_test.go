package beaucoup

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// frameList is a capture of a few frames.
type frameList []packet.Frame

// Next implements capture.Source.
func (l *frameList) Next(f *packet.Frame) error {
	if len(*l) == 0 {
		return io.EOF
	}
	*f, *l = (*l)[0], (*l)[1:]
	return nil
}

// Progress implements capture.Source.
func (l *frameList) Progress() (read, total int64) { return 0, 0 }

// Close implements capture.Source.
func (l *frameList) Close() error { return nil }

// Skipped implements capture.Source.
func (l *frameList) Skipped() map[string]uint64 { return nil }

func (l *frameList) add(change func(*builder.Spec)) {
	s := builder.Spec{IP: builder.IP{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("198.51.100.2")},
		TCP: &builder.TCP{SrcPort: 1000, DstPort: 443, Flags: packet.SYN}, Time: int64(1_000_000_000 + 1000*len(*l))}
	change(&s)
	*l = append(*l, builder.MustBuild(&s))
}

func over6(src, dst string) func(*builder.Spec) {
	return func(s *builder.Spec) { s.IP = builder.IP{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst)} }
}

func udp(sport, dport uint16, msg []byte) func(*builder.Spec) {
	return func(s *builder.Spec) {
		s.TCP, s.UDP, s.Payload = nil, &builder.UDP{SrcPort: sport, DstPort: dport}, msg
	}
}

func flags(f uint8) func(*builder.Spec) { return func(s *builder.Spec) { s.TCP.Flags = f } }

func vlan(id uint16) func(*builder.Spec) {
	return func(s *builder.Spec) { s.VLANs = []builder.VLAN{{ID: id}} }
}

// asked is a running instance that is asked one query after the other.
type asked struct {
	*running
	feed *replay.Replayer
}

func newAsked(t *testing.T) *asked {
	t.Helper()
	a := &asked{running: start(t, map[string]string{"queries": "all: count distinct dns.qname by dns.id > 1 in 1s", "budget": "1", "export": "true"}, true, 1)}
	var err error
	if a.feed, err = replay.New(a.inst, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.feed.Close() })
	return a
}

// ask is the report of a query on frames. Every query has its own name, so that it starts without state.
func (a *asked) ask(t *testing.T, query string, l *frameList) report.Body {
	t.Helper()
	queries, err := compile.ParseQueries(query)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Update(queries); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for i := range *l {
		if err := a.feed.Feed(&(*l)[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.feed.Flush(); err != nil {
		t.Fatal(err)
	}
	body, _, _ := a.window(t, traffic.Start)
	return body
}

// oneOfEach is one packet of many kinds.
func oneOfEach() *frameList {
	l := &frameList{}
	for _, change := range []func(*builder.Spec){
		func(*builder.Spec) {}, flags(packet.SYN | packet.ACK), flags(packet.ACK | packet.PSH), flags(packet.FIN | packet.ACK), flags(packet.RST),
		vlan(7), vlan(4095), over6("2001:db8:1::1", "2001:db8:2::2"), over6("2001:db8:1:5::9", "2001:db8:2::2"),
		udp(5000, 6000, make([]byte, 10)), udp(5000, 53, builder.DNS(0xabcd, false)), udp(53, 5000, builder.DNS(0xabcd, true)),
		func(s *builder.Spec) { s.TCP, s.Echo = nil, &builder.Echo{ID: 9, Seq: 1} },
	} {
		l.add(change)
	}
	return l
}

// With a threshold of 1 every packet with the query's fields alerts, with its key; no other packet does.
func TestFields(t *testing.T) {
	r := newAsked(t)
	example := packet.HashName(1, packet.WireName("example.org"))
	for query, want := range map[string][]string{
		"vlan":                                 {"vlan=4095", "vlan=7"},
		"vlan+dport":                           {"vlan=4095 dport=443", "vlan=7 dport=443"},
		"src if ipv6":                          {"src=2001:db8:1:5::9", "src=2001:db8:1::1"},
		"src/48 if tcp":                        {"src=2001:db8:1::/48"}, // of IPv4 it would leave ::/48
		"src/48 if ipv6":                       {"src=2001:db8:1::/48"},
		"src/64+dst/33 if ipv6":                {"src=2001:db8:1:5::/64 dst=2001:db8::/33", "src=2001:db8:1::/64 dst=2001:db8::/33"},
		"src/24":                               {"src=192.0.2.0/24"},
		"dst/8+src/32 if udp":                  {"dst=198.0.0.0/8 src=192.0.2.1/32"},
		"sport if udp":                         {"sport=5000", "sport=53"},
		"dport if udp and dport=53":            {"dport=53"},
		"proto":                                {"proto=1", "proto=17", "proto=6"},
		"proto if icmp":                        {"proto=1"},
		"tcp.flags":                            {"tcp.flags=17", "tcp.flags=18", "tcp.flags=2", "tcp.flags=24", "tcp.flags=4"},
		"tcp.flags if tcp.syn":                 {"tcp.flags=18", "tcp.flags=2"},
		"tcp.flags if tcp.syn and not tcp.ack": {"tcp.flags=2"},
		"tcp.flags if not tcp.syn and tcp.ack": {"tcp.flags=17", "tcp.flags=24"},
		"tcp.flags if tcp.flags=4":             {"tcp.flags=4"},
		"vlan if vlan=7":                       {"vlan=7"},
		"dns.id":                               {"dns.id=43981"},
		"dns.qname":                            {fmt.Sprintf("dns.qname=%016x", example)},
		"dns.qname+src if dport=53":            {fmt.Sprintf("dns.qname=%016x src=192.0.2.1", example)},
	} {
		key, filter, _ := strings.Cut(query, " if ")
		text := fmt.Sprintf("q: count distinct timestamp by %s > 1 in 10s", key)
		if filter != "" {
			text += " if " + filter
		}
		b := r.ask(t, text, oneOfEach())
		if got := keysOf(&b, "q"); !slices.Equal(got, want) {
			t.Errorf("%s: alerts for %q, want %q", text, got, want)
		}
	}
}

func keysOf(b *report.Body, query string) (keys []string) {
	for _, row := range b.Tables[0].Rows {
		if row[0] == query {
			keys = append(keys, row[1].(string))
		}
	}
	slices.Sort(keys)
	return keys
}

// A name is shown where it is known.
func TestNames(t *testing.T) {
	l := replayed(t, oneOfEach(), session.Config{Seed: 5}, map[string]string{"queries": "q: count distinct timestamp by dns.qname > 1 in 10s",
		"budget": "1", "names": "example.com,Example.Org"})[0]
	if got := keysOf(&l.Report, "q"); !slices.Equal(got, []string{"dns.qname=Example.Org"}) {
		t.Errorf("alerts for %q", got)
	}
}

// Packets that agree in all of an attribute's bits draw one coupon between them, others of their own. With 32 coupons of
// probability 1/32 every attribute draws exactly one, so k attributes collect at most k; that 40 packets with 40 attributes
// collect fewer than 10 different coupons has a probability below 10^-10 (occupancy).
func TestAttributes(t *testing.T) {
	vary := map[string]func(*builder.Spec, int){
		"low byte of dst":   func(s *builder.Spec, n int) { s.IP.Dst = netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}) },
		"third byte of dst": func(s *builder.Spec, n int) { s.IP.Dst = netip.AddrFrom4([4]byte{198, 51, byte(n), 2}) },
		"host of dst6": func(s *builder.Spec, n int) {
			over6("2001:db8::1", fmt.Sprintf("2001:db8:2::%x", n+1))(s)
		},
		"net of dst6": func(s *builder.Spec, n int) {
			over6("2001:db8::1", fmt.Sprintf("2001:db8:%x::1", n+1))(s)
		},
		"dport": func(s *builder.Spec, n int) { s.TCP.DstPort = uint16(n + 1) },
		"name":  func(s *builder.Spec, n int) { udp(5000, 53, nameQuery(fmt.Sprintf("\x03www\x03h%02d\x00", n)))(s) },
		"case of a name": func(s *builder.Spec, n int) {
			name := []byte("\x0aabcdefghij\x00")
			for bit := range 10 {
				name[1+bit] -= byte(n>>bit&1) * 32
			}
			udp(5000, 53, nameQuery(string(name)))(s)
		},
		"id":      func(s *builder.Spec, n int) { udp(5000, 53, builder.DNS(uint16(n), false))(s) },
		"nothing": func(*builder.Spec, int) {},
	}
	r := newAsked(t)
	for n, c := range []struct {
		attribute, what string
		many            bool
	}{
		{"dst", "low byte of dst", true}, {"dst/24", "low byte of dst", false}, {"dst/24", "third byte of dst", true}, {"dst/16", "third byte of dst", false},
		{"dst", "host of dst6", true}, {"dst/64", "host of dst6", false}, {"dst/48", "net of dst6", true}, {"src+dport", "low byte of dst", false},
		{"src+dport", "dport", true}, {"dns.qname", "name", true}, {"dns.qname", "case of a name", false}, {"dns.qname", "id", false},
		{"dns.id", "id", true}, {"dns.id", "name", false}, {"timestamp", "nothing", true}, {"src+dst", "nothing", false},
	} {
		l := &frameList{}
		for n := range 40 {
			l.add(func(s *builder.Spec) { s.Time = 1_000_000_000; vary[c.what](s, n) }) // all at once
		}
		b := r.ask(t, fmt.Sprintf("q%d: count distinct %s by proto > 43 in 10s", n, c.attribute), l)
		if drawn := number(t, &b, "coupons_drawn"); drawn != 40 {
			t.Errorf("%s: 40 packets drew %g coupons", c.attribute, drawn)
		}
		if fresh := number(t, &b, "coupons_new"); c.many && fresh < 10 || !c.many && fresh != 1 {
			t.Errorf("distinct %s while %s varies: %g different coupons", c.attribute, c.what, fresh)
		}
	}
}

// nameQuery is a DNS message with a question for a name in wire format.
func nameQuery(name string) []byte {
	return append([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, name+"\x00\x01\x00\x01"...)
}
