package packet_test

import (
	"bufio"
	"io"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	. "github.com/xdpmon/xdpmon/userspace/packet"
)

// The fields that are compared; of several of a kind tshark prints the outermost, as Decode does without Decap.
var tsharkFields = []string{
	"frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "vlan.id",
	"tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.flags",
	"tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr",
	"udp.srcport", "udp.dstport", "dns.id",
}

type tsharkLine map[string]string

// number reads a field, decimal or hexadecimal; -1 when it is absent.
func (l tsharkLine) number(field string) int64 {
	n, err := strconv.ParseInt(l[field], 0, 64)
	if err != nil {
		return -1
	}
	return n
}

// tshark decodes a capture packet by packet: no reassembly, no guessing, nothing relative.
func tshark(t *testing.T, path string, each func(l tsharkLine)) {
	t.Helper()
	args := []string{"-n", "-r", path, "-T", "fields", "-E", "occurrence=f",
		"-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE",
		"-o", "tcp.relative_sequence_numbers:FALSE", "-o", "tcp.analyze_sequence_numbers:FALSE"}
	for _, field := range tsharkFields {
		args = append(args, "-e", field)
	}
	cmd := exec.Command(testutil.NeedTool(t, "tshark"), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l := tsharkLine{}
		for i, value := range strings.Split(lines.Text(), "\t") {
			l[tsharkFields[i]] = value
		}
		each(l)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("tshark: %v", err)
	}
}

// tally counts what was compared.
type tally struct {
	t                 *testing.T
	name              string
	frame             Frame
	n                 int
	tcp, udp, ts, dns int
	addresses, vlans  int
	shortened         int // frames whose record has less than their IP header; tshark trusts the record
	unknownLink       int // packets inside of what the parser does not follow (Cisco FabricPath)
	wrong             int
}

func (c *tally) differ(format string, args ...any) {
	if c.wrong++; c.wrong <= 10 {
		c.t.Errorf("%s: packet %d: "+format, append([]any{c.name, c.n}, args...)...)
	}
}

func TestAgreesWithTshark(t *testing.T) {
	for _, name := range []string{"composite_120s.pcap", "laptop_wan_300s.pcap", "web_reordered.pcap", "speedtest_server.pcap"} {
		t.Run(name, func(t *testing.T) {
			path := testutil.Trace(t, name)
			src, err := capture.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			c := &tally{t: t, name: filepath.Base(path)}
			tshark(t, path, func(l tsharkLine) { c.next(src, l) })
			if err := src.Next(new(Frame)); err != io.EOF {
				t.Errorf("after the last packet: %v", err)
			}
			t.Logf("%d packets: addresses of %d, VLANs of %d, TCP %d (timestamps %d), UDP %d (DNS ids %d) agree, %d differ; "+
				"%d are shorter by their record than by IP, %d in a link layer that is not followed",
				c.n, c.addresses, c.vlans, c.tcp, c.ts, c.udp, c.dns, c.wrong, c.shortened, c.unknownLink)
		})
	}
}

func (c *tally) next(src capture.Source, l tsharkLine) {
	var p Packet
	c.n++
	if err := src.Next(&c.frame); err != nil {
		c.t.Fatal(err)
	}
	reason := Decode(&c.frame, DecodeOptions{}, &p)
	path := outermost(l["frame.protocols"])
	if reason == NotIP && strings.HasPrefix(path, "eth:cfp:") {
		c.unknownLink++
		return
	}
	c.compareVLAN(&p, l)
	c.compareAddresses(&p, l, path)
	c.compareTCP(&p, l, path, reason)
	c.compareUDP(&p, l, path, reason)
}

// outermost cuts tshark's protocols after the first transport: what follows is inside a tunnel or a quotation.
func outermost(protocols string) string {
	for _, transport := range []string{":tcp", ":udp", ":icmp", ":icmpv6", ":gre"} {
		if i := strings.Index(protocols+":", transport+":"); i >= 0 {
			protocols = protocols[:i+len(transport)]
		}
	}
	return protocols
}

// tunnelled reports whether there is more than one network header before the first transport.
func tunnelled(path string) bool {
	return strings.Count(path+":", ":ip:")+strings.Count(path+":", ":ipv6:") > 1
}

func (c *tally) compareVLAN(p *Packet, l tsharkLine) {
	id := l.number("vlan.id")
	if p.Has(VLAN) != (id >= 0) || p.Has(VLAN) && int64(p.VLAN) != id {
		c.differ("VLAN %v %d, tshark has %q (%s)", p.Has(VLAN), p.VLAN, l["vlan.id"], l["frame.protocols"])
		return
	}
	if p.Has(VLAN) {
		c.vlans++
	}
}

func (c *tally) compareAddresses(p *Packet, l tsharkLine, path string) {
	if !p.Has(IP) {
		return
	}
	src, dst := l["ip.src"], l["ip.dst"]
	if p.Src.Is6() {
		src, dst = l["ipv6.src"], l["ipv6.dst"]
	}
	if p.Src != parseAddr(src) || p.Dst != parseAddr(dst) {
		c.differ("addresses %v %v, tshark has %q %q (%s)", p.Src, p.Dst, src, dst, path)
		return
	}
	c.addresses++
}

func parseAddr(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return a
}

func (c *tally) compareTCP(p *Packet, l tsharkLine, path string, reason Reason) {
	theirs := strings.HasSuffix(path, ":tcp") && l.number("tcp.flags") >= 0 && !tunnelled(path)
	if theirs != p.Has(TCP) {
		c.differ("TCP %v (%v), tshark %v (%s, sequence %q)", p.Has(TCP), reason, theirs, path, l["tcp.seq_raw"])
		return
	}
	if !theirs {
		return
	}
	ours := [6]int64{int64(p.SrcPort), int64(p.DstPort), int64(p.Seq), int64(p.Ack), c.payload(p, l), int64(p.TCPFlags)}
	want := [6]int64{l.number("tcp.srcport"), l.number("tcp.dstport"), l.number("tcp.seq_raw"),
		l.number("tcp.ack_raw"), l.number("tcp.len"), l.number("tcp.flags") & 0xff}
	if ours != want {
		c.differ("TCP ports, sequence, acknowledgment, length, flags %v, tshark has %v (%s)", ours, want, path)
		return
	}
	c.tcp++
	c.compareTimestamps(p, l)
}

// payload is ours in tshark's view of it: none for fragments and broken segments. That it never reaches beyond the frame is
// the rule of both.
func (c *tally) payload(p *Packet, l tsharkLine) int64 {
	missing := int64(p.Len) - int64(c.frame.Len)
	if l.number("tcp.len") < 0 && (p.Has(Fragment) || missing > 0) {
		return -1
	}
	if missing > 0 {
		c.shortened++
	}
	return int64(p.Payload)
}

func (c *tally) compareTimestamps(p *Packet, l tsharkLine) {
	val, ecr := l.number("tcp.options.timestamp.tsval"), l.number("tcp.options.timestamp.tsecr")
	if p.Has(TSOpt) != (val >= 0) || p.Has(TSOpt) && (int64(p.TSVal) != val || int64(p.TSEcr) != ecr) {
		c.differ("timestamps %v %d %d, tshark has %d %d", p.Has(TSOpt), p.TSVal, p.TSEcr, val, ecr)
		return
	}
	if p.Has(TSOpt) {
		c.ts++
	}
}

func (c *tally) compareUDP(p *Packet, l tsharkLine, path string, reason Reason) {
	theirs := strings.HasSuffix(path, ":udp") && l.number("udp.srcport") >= 0 && !tunnelled(path)
	if theirs != p.Has(UDP) {
		c.differ("UDP %v (%v), tshark %v (%s)", p.Has(UDP), reason, theirs, path)
		return
	}
	if !theirs {
		return
	}
	if int64(p.SrcPort) != l.number("udp.srcport") || int64(p.DstPort) != l.number("udp.dstport") {
		c.differ("UDP ports %d %d, tshark has %s %s", p.SrcPort, p.DstPort, l["udp.srcport"], l["udp.dstport"])
		return
	}
	c.udp++
	if id := l.number("dns.id"); id >= 0 && (p.SrcPort == 53 || p.DstPort == 53) {
		if int64(p.AppID) != id || p.Valid&(AppRequest|AppResponse) == 0 {
			c.differ("DNS id %d, tshark has %d", p.AppID, id)
			return
		}
		c.dns++
	}
}
