package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// facts are what tools that nobody here wrote say of an incident: tshark of every packet that passed the interface, tc of its queue, ss of the hosts' sockets.
type facts struct {
	onset       time.Time
	rows        []row
	queue       string // tc -s, at the end
	calm, after queueCounts
	sockets     string // ss -tin of the clients, during the incident
	served      string // ... of the servers
}

// row is a packet as tshark sees it.
type row struct {
	at             time.Time
	src, dst       netip.Addr
	sport, dport   uint16
	proto          int
	flags          uint8
	payload, bytes int
	// What tshark's analysis of sequence numbers makes of it.
	retransmission, lostBefore, outOfOrder, zeroWindow bool
	ackRTT, dnsTime                                    time.Duration
	dns                                                bool
	protocols                                          string
}

var fields = []string{"frame.time_epoch", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "ip.proto", "tcp.flags", "tcp.len",
	"frame.len", "tcp.analysis.retransmission", "tcp.analysis.lost_segment", "tcp.analysis.out_of_order", "tcp.analysis.zero_window", "tcp.analysis.ack_rtt", "dns.time", "dns.id", "frame.protocols"}

// dissect reads a capture with tshark.
func dissect(ctx context.Context, path string) ([]row, error) {
	args := []string{"-n", "-r", path, "-T", "fields", "-E", "occurrence=f", "-E", "separator=/t", "-o", "tcp.relative_sequence_numbers:false"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "5", "tshark"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start tshark: %w", err)
	}
	rows, err := readRows(out)
	if err2 := cmd.Wait(); err2 != nil && err == nil {
		err = fmt.Errorf("tshark on %s: %w: %s", path, err2, complaints.String())
	}
	return rows, err
}

func readRows(from io.Reader) (rows []row, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		if len(f) != len(fields) {
			return nil, fmt.Errorf("tshark wrote %d fields of %d: %q", len(f), len(fields), lines.Text())
		}
		rows = append(rows, rowOf(f))
	}
	return rows, lines.Err()
}

// rowOf takes what is there; a packet without IP has no addresses.
func rowOf(f []string) row {
	number := func(s string) int { n, _ := strconv.ParseInt(strings.TrimPrefix(s, "0x"), base(s), 64); return int(n) }
	seconds := func(s string) time.Duration { v, _ := strconv.ParseFloat(s, 64); return time.Duration(v * 1e9) }
	first := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	r := row{at: epoch(f[0]), sport: uint16(number(first(f[5], f[7]))), dport: uint16(number(first(f[6], f[8]))), proto: number(f[9]), flags: uint8(number(f[10])),
		payload: number(f[11]), bytes: number(f[12]), retransmission: f[13] != "", lostBefore: f[14] != "", outOfOrder: f[15] != "", zeroWindow: f[16] != "",
		ackRTT: seconds(f[17]), dnsTime: seconds(f[18]), dns: f[19] != "", protocols: f[20]}
	r.src, _ = netip.ParseAddr(first(f[1], f[3]))
	r.dst, _ = netip.ParseAddr(first(f[2], f[4]))
	return r
}

func base(s string) int {
	if strings.HasPrefix(s, "0x") {
		return 16
	}
	return 10
}

// epoch parses seconds with nine places without losing any.
func epoch(s string) time.Time {
	whole, part, _ := strings.Cut(s, ".")
	sec, _ := strconv.ParseInt(whole, 10, 64)
	ns, _ := strconv.ParseInt((part + "000000000")[:9], 10, 64)
	return time.Unix(sec, ns)
}

func (r row) has(set, of uint8) bool { return r.flags&of == set }
func (r row) isSYN() bool            { return r.has(packet.SYN, packet.SYN|packet.ACK) }
func (r row) isSYNACK() bool         { return r.has(packet.SYN|packet.ACK, packet.SYN|packet.ACK) }

// before and during split what a predicate holds of.
func (f *facts) before(is func(row) bool) []row { return f.pick(is, false) }
func (f *facts) during(is func(row) bool) []row { return f.pick(is, true) }

func (f *facts) pick(is func(row) bool, during bool) (list []row) {
	for _, r := range f.rows {
		if r.at.After(f.onset) == during && is(r) {
			list = append(list, r)
		}
	}
	return list
}

func all(is ...func(row) bool) func(row) bool {
	return func(r row) bool {
		for _, f := range is {
			if !f(r) {
				return false
			}
		}
		return true
	}
}

func from(p netip.Prefix) func(row) bool { return func(r row) bool { return p.Contains(r.src) } }
func to(p netip.Prefix) func(row) bool   { return func(r row) bool { return p.Contains(r.dst) } }
func one(a netip.Addr) netip.Prefix      { return netip.PrefixFrom(a, a.BitLen()) }
func answered(r row) bool                { return r.ackRTT > 0 }
func retransmitted(r row) bool           { return r.retransmission }
func zeroWindow(r row) bool              { return r.zeroWindow }
func lostBefore(r row) bool              { return r.lostBefore }
func data(r row) bool                    { return r.payload > 0 }

// median of a time.
func median(rows []row, of func(row) time.Duration) time.Duration {
	var list []time.Duration
	for _, r := range rows {
		list = append(list, of(r))
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func ackRTT(r row) time.Duration  { return r.ackRTT }
func dnsTime(r row) time.Duration { return r.dnsTime }

func sum(rows []row) (bytes int) {
	for _, r := range rows {
		bytes += r.bytes
	}
	return bytes
}

// different counts the values of something.
func different[K comparable](rows []row, of func(row) K) int {
	m := map[K]struct{}{}
	for _, r := range rows {
		m[of(r)] = struct{}{}
	}
	return len(m)
}

// answerDelay is the median time from a request to the first byte of the answer of a server.
func (f *facts) answerDelay(server netip.Addr, during bool) time.Duration {
	asked := map[netip.AddrPort]time.Time{}
	var delays []row
	for _, r := range f.pick(func(r row) bool { return data(r) && (r.src == server || r.dst == server) }, during) {
		if r.dst == server {
			asked[netip.AddrPortFrom(r.src, r.sport)] = r.at
			continue
		}
		client := netip.AddrPortFrom(r.dst, r.dport)
		if t, ok := asked[client]; ok {
			delays = append(delays, row{ackRTT: r.at.Sub(t)})
			delete(asked, client)
		}
	}
	return median(delays, ackRTT)
}

// queueCounts is what tc says of the FIFO behind the device.
type queueCounts struct{ packets, dropped, backlog int }

// readQueue asks tc.
func readQueue(ctx context.Context, device *netns.Namespace) (c queueCounts, text string, err error) {
	out, err := device.Output(ctx, "tc", "-s", "qdisc", "show", "dev", stage.Out)
	if err != nil {
		return c, "", err
	}
	text = string(out)
	_, fifo, found := strings.Cut(text, "qdisc pfifo")
	if !found {
		return c, text, fmt.Errorf("tc names no pfifo: %s", text)
	}
	var bytes int
	_, sent, _ := strings.Cut(fifo, "Sent ")
	if _, err := fmt.Sscanf(sent, "%d bytes %d pkt (dropped %d,", &bytes, &c.packets, &c.dropped); err != nil {
		return c, text, fmt.Errorf("read what tc writes of the queue: %w: %s", err, fifo)
	}
	_, backlog, _ := strings.Cut(fifo, "backlog ")
	_, backlog, _ = strings.Cut(backlog, "b ")
	number, _, _ := strings.Cut(backlog, "p")
	c.backlog, err = strconv.Atoi(number)
	return c, text, err
}
