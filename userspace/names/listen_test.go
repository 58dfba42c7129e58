package names

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"

	"github.com/xdpmon/xdpmon/loader/namespace"
)

// The filter lets answers through, and of those no more than the snap length.
func TestFilter(t *testing.T) {
	vm, err := bpf.NewVM(filter())
	if err != nil {
		t.Fatal(err)
	}
	good := reply{asked: "a.example.", addrs: []string{"192.0.2.1"}}.message(t)
	tcp, fragment, later, options := udp4(53, good), udp4(53, good), udp4(53, good), udp4(53, good)
	tcp[9], fragment[6], later[7] = 6, 0x20, 1
	options = append(append(bytes.Clone(options[:20]), make([]byte, 4)...), options[20:]...)
	options[0] = 0x46
	for what, c := range map[string]struct {
		ip   []byte
		want bool
	}{
		"answer": {udp4(53, good), true}, "IPv6": {udp6(53, good), true}, "with options": {options, true}, "other port": {udp4(54, good), false}, "IPv6, other port": {udp6(5353, good), false},
		"TCP": {tcp, false}, "first fragment": {fragment, false}, "later fragment": {later, false}, "question": {udp4(53, reply{asked: "a.", query: true, addrs: []string{"192.0.2.1"}}.message(t)), false},
		"no records": {udp4(53, reply{asked: "a."}.message(t)), false}, "IP 5": {[]byte{0x50, 0, 0, 0, 0, 0, 17}, false}, "cut": {udp4(53, good)[:30], false}, "empty": {[]byte{}, false},
	} {
		n, err := vm.Run(c.ip)
		if err != nil || n > 0 != c.want {
			t.Errorf("%s: %d bytes, %v; want %v", what, n, err, c.want)
		}
	}
}

// Live: what arrives on the interfaces that are named, and nothing of others.
func TestListens(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	ns, err := namespace.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	n := learning(t, 0)
	var l *Listener
	var server net.PacketConn
	var index int
	if err := ns.Run(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		index = lo.Attrs().Index
		if l, err = Listen(n); err != nil {
			return err
		}
		server, err = net.ListenPacket("udp4", "127.0.0.1:53")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer server.Close()
	client := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40000}
	send := func(i int) {
		addr := netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}).String()
		if _, err := server.WriteTo(reply{asked: "a.example.", addrs: []string{addr}}.message(t), client); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				s, _ := n.Stats()
				t.Fatalf("%s: %+v", what, s)
			}
		}
	}
	l.On(index)
	until("an answer on the interface is learned", func() bool {
		send(2)
		return dnsOf(n, "192.0.0.2") == "a.example"
	})
	// far more than are read: what is dropped is counted, and nothing blocks
	for i := range 4000 {
		send(256 + i)
	}
	until("drops are counted", func() bool { return l.Dropped() > 0 })
	if s, _ := n.Stats(); s.Answers > 4000 {
		t.Errorf("%+v", s)
	}
	l.On(index + 1)
	until("the buffer is read", func() bool {
		before, _ := n.Stats()
		time.Sleep(50 * time.Millisecond)
		after, _ := n.Stats()
		return before == after
	})
	before, _ := n.Stats()
	send(1)
	time.Sleep(20 * time.Millisecond)
	if after, _ := n.Stats(); after != before {
		t.Error("learned from an interface that is not measured")
	}
}
