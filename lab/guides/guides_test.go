// Package guides runs the commands of docs/guides, page by page, on traffic that is made for them.
package guides

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// block is a fenced block of commands, with what it has to print.
type block struct {
	commands string
	prints   []*regexp.Regexp
}

var (
	fenced = regexp.MustCompile("(?s)```sh\n(.*?)```\n((?:<!-- prints: [^\n]* -->\n)*)")
	prints = regexp.MustCompile(`<!-- prints: ([^\n]*) -->`)
	files  = regexp.MustCompile("(?s)<!-- file: ([^\n]*) -->\n```[a-z]*\n(.*?)```\n")
)

// written are the files that a page has, by their paths; they are in the folder where its commands run.
func written(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range files.FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = m[2]
	}
	return all
}

func blocks(t *testing.T, page string) (list []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		b := block{commands: m[1]}
		for _, p := range prints.FindAllStringSubmatch(m[2], -1) {
			b.prints = append(b.prints, regexp.MustCompile(p[1]))
		}
		list = append(list, b)
	}
	return list
}

// TestGuides: every block of every page ends without an error and prints what its page expects. The blocks of a page run one after the other in one folder,
// which has captures, in a namespace with an eth0 on which connections are opened.
func TestGuides(t *testing.T) {
	testutil.NeedRoot(t)
	root := testutil.Root(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs/guides/*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d guides: %v", len(pages), err)
	}
	bin := programs(t, root)
	network := place(t)
	tested := 0
	for _, page := range pages {
		list := blocks(t, page)
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			dir := t.TempDir()
			captures(t, dir)
			for name, text := range written(t, page) {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				save(t, path, text)
			}
			for _, b := range list {
				out := run(t, network, dir, bin, b.commands)
				for _, want := range b.prints {
					tested++
					if !want.MatchString(out) {
						t.Errorf("%q is not in what this prints:\n%s\n%s", want, b.commands, out)
					}
				}
			}
		})
	}
	if tested < 10 {
		t.Errorf("only %d expectations", tested)
	}
}

// programs is a PATH of both, built or those of the folder XDPMON_BIN, with a sudo beside them that changes nothing.
func programs(t *testing.T, root string) string {
	t.Helper()
	bin, built := t.TempDir(), os.Getenv("XDPMON_BIN")
	if built == "" {
		built = bin
		build := exec.Command("go", "build", "-o", bin+"/", "./cmd/xdpmon", "./cmd/xdpmon-coordinator")
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return bin + ":" + built
}

// run is a block of commands; any that fails ends it, as would be seen by hand.
func run(t *testing.T, network *netns.Topology, dir, bin, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8",
		"XDPMON="+testutil.Root(t), "GOPROXY=off", "GOSUMDB=off") // a module outside of this one uses the checkout; no network is here
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := network.A.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Errorf("%v:\n%s\n%s", err, commands, out.String())
	}
	return out.String()
}

// place is a namespace with an interface that guides call eth0, and a peer that answers; connections are opened until the test ends.
func place(t *testing.T) *netns.Topology {
	t.Helper()
	network := netnstest.New(t, netns.Options{})
	h, err := network.A.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	link, err := h.LinkByName(network.A.Interface)
	if err == nil {
		err = errors.Join(h.LinkSetDown(link), h.LinkSetName(link, "eth0"), h.LinkSetUp(link))
	}
	if err != nil {
		t.Fatal(err)
	}
	if addresses, err := h.AddrList(link, netlink.FAMILY_V4); err != nil || len(addresses) == 0 {
		t.Fatalf("the renamed interface has lost its address: %v", err)
	}
	l, err := network.B.Listen(context.Background(), "tcp4", network.B.IPv4.String()+":443")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, opened := make(chan struct{}), make(chan struct{})
	go func() { defer close(served); serve(l) }()
	go func() { defer close(opened); open(ctx, network, l.Addr().String()) }()
	t.Cleanup(func() { cancel(); <-opened; l.Close(); <-served })
	return network
}

func serve(l net.Listener) {
	answer := make([]byte, 20_000)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Write(answer)
		c.Close()
	}
}

func open(ctx context.Context, network *netns.Topology, to string) {
	for ctx.Err() == nil {
		c, err := network.A.Dial(ctx, "tcp4", to)
		if err == nil {
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Addresses of the captures.
var (
	fastServer = netip.MustParseAddr("192.0.2.1")   // answers after 10 ms
	slowServer = netip.MustParseAddr("192.0.3.1")   // answers after 80 ms
	scanner    = netip.MustParseAddr("203.0.113.9") // tries 300 ports
	victim     = netip.MustParseAddr("192.0.2.80")  // of 3,000 sources
)

// captures are capture.pcap, before.pcap and after.pcap of a queue, and host1.pcap and host2.pcap, which see a flood's halves.
func captures(t *testing.T, dir string) {
	t.Helper()
	save := func(name string, packets []packet.Packet) {
		var b bytes.Buffer
		if err := traffic.WritePcap(&b, traffic.InTime(packets)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const ms = int64(time.Millisecond)
	var all []packet.Packet
	for n := range 1000 { // 20 seconds
		at, client := traffic.Start+int64(n)*20*ms, netip.AddrFrom4([4]byte{10, 0, byte(n % 4), byte(n % 200)})
		all = append(all, connection(at, client, fastServer, 10*ms, n)...)
		all = append(all, connection(at+7*ms, client, slowServer, 80*ms, n)...)
	}
	for n := range 300 {
		p := syn(traffic.Start+5000*ms+int64(n)*ms, scanner, fastServer, n)
		p.DstPort = uint16(1 + n)
		all = append(all, p)
	}
	save("capture.pcap", all)

	var before, after []packet.Packet
	for n := range 4000 { // a burst every 100 ms: one flow of twenty packets, and one of one
		p := segment(traffic.Start+int64(n/20)*100*ms+int64(n%20)*10_000, netip.AddrFrom4([4]byte{10, 0, 0, 1}), n)
		if n%20 == 19 {
			p.Src = netip.AddrFrom4([4]byte{10, 0, 0, 2})
		}
		before = append(before, p)
		p.Time += int64(n%20) * ms
		after = append(after, p)
	}
	save("before.pcap", before)
	save("after.pcap", after)

	var halves [2][]packet.Packet
	for n := range 3000 {
		half := &halves[n%2]
		*half = append(*half, syn(traffic.Start+int64(n)*ms/2, netip.AddrFrom4([4]byte{172, 16, byte(n >> 8), byte(n)}), victim, n))
	}
	save("host1.pcap", halves[0])
	save("host2.pcap", halves[1])
}

func syn(at int64, src, dst netip.Addr, n int) packet.Packet {
	return packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.SYN, Seq: uint32(n) * 7919, Src: src, Dst: dst, SrcPort: uint16(20000 + n), DstPort: 443}
}

// connection is a handshake, a segment that is sent twice where n is a multiple of ten, and its ACK.
func connection(at int64, client, server netip.Addr, delay int64, n int) []packet.Packet {
	ask := syn(at, client, server, n)
	reply := ask
	reply.Time, reply.Src, reply.Dst, reply.SrcPort, reply.DstPort = at+delay, server, client, ask.DstPort, ask.SrcPort
	reply.TCPFlags, reply.Seq, reply.Ack = packet.SYN|packet.ACK, 1, ask.Seq+1
	done := ask
	done.Time, done.TCPFlags, done.Seq, done.Ack = reply.Time+200_000, packet.ACK, ask.Seq+1, 2
	data := segment(done.Time+100_000, client, n)
	data.Dst, data.SrcPort, data.Seq = server, ask.SrcPort, ask.Seq+1
	list := []packet.Packet{ask, reply, done, data}
	if n%10 == 0 {
		again := data
		again.Time += int64(30 * time.Millisecond)
		list = append(list, again)
	}
	return list
}

func segment(at int64, src netip.Addr, n int) packet.Packet {
	return packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.ACK, Seq: uint32(n) * 1000, Ack: 2, Src: src, Dst: fastServer, SrcPort: 30000, DstPort: 443,
		Payload: 1000}
}
