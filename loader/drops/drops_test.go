package drops

import (
	"errors"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/loader/kernel"
	lab "github.com/xdpmon/xdpmon/tests/isolated"
)

func TestMain(m *testing.M) { lab.Main(m) }

// watched is a counter that watches the near end, and its index.
func watched(t *testing.T, interfaces int) (*Counter, int) {
	t.Helper()
	c, err := Open(interfaces)
	if errors.Is(err, kernel.ErrUnsupported) {
		t.Skip(err)
	}
	lab.NoError(t, err)
	t.Cleanup(func() { lab.NoError(t, c.Close()) })
	i, err := net.InterfaceByName(lab.Near)
	lab.NoError(t, err)
	lab.NoError(t, c.Watch(i.Index))
	return c, i.Index
}

// packets returns what was dropped on an interface, by reason.
func packets(t *testing.T, c *Counter, ifindex int) map[string]uint64 {
	t.Helper()
	all, err := c.Read()
	lab.NoError(t, err)
	found := map[string]uint64{}
	for _, n := range all[ifindex] {
		found[n.Reason] += n.Packets
	}
	return found
}

// number is the first group of a pattern in a text, as a number.
func number(t *testing.T, text, pattern string) uint64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%s is not in:\n%s", pattern, text)
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	lab.NoError(t, err)
	return n
}

// Nobody listens at the port of the first packets, nobody reads the socket of the next ones, and a queue is short: the kernel's own counters have the same numbers.
func TestReasons(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	c, index := watched(t, 1)
	lab.SendFromPeer(t, 50)
	all, err := c.Read()
	lab.NoError(t, err)
	if len(all) != 2 || len(all[index]) != 1 || all[index][0] != (Count{"NO_SOCKET", 50, 50 * (8 + 6)}) {
		t.Errorf("a closed port: %+v", all)
	}

	conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: 7777})
	lab.NoError(t, err)
	defer conn.Close()
	lab.NoError(t, conn.SetReadBuffer(1))
	lab.SendFromPeer(t, 200)
	snmp, err := os.ReadFile("/proc/net/snmp")
	lab.NoError(t, err)
	full := number(t, string(snmp), `Udp: \d+ \d+ \d+ \d+ (\d+)`)
	row := index
	if !c.Sockets() {
		row = 0 // that of packets without a known interface
	}
	if got := packets(t, c, row)["SOCKET_RCVBUFF"]; got != full || full < 100 {
		t.Errorf("a full socket: %d dropped, of which %d counted", full, got)
	}

	lab.Sh(t, "tc qdisc add dev %s root tbf rate 8kbit burst 1600 limit 1600", lab.Near)
	lab.NoError(t, lab.SendUDP(lab.FarIP, 200))
	queue := number(t, lab.Sh(t, "tc -s qdisc show dev %s", lab.Near), `dropped (\d+)`)
	var queued uint64
	for reason, n := range packets(t, c, index) {
		if strings.HasPrefix(reason, "QDISC") {
			queued += n
		}
	}
	if queued != queue || queue < 50 {
		t.Errorf("a short queue: %d dropped, of which %d counted: %v", queue, queued, packets(t, c, index))
	}
}

// Only the watched interface is counted: not one with the same number in another namespace, and nothing from before it was watched.
func TestWatchedOnly(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Sh(t, "ip link add xdpmon-c0 type veth peer name xdpmon-c1")
	c, index := watched(t, 1)
	if err := c.Watch(index + 1); !errors.Is(err, ErrFull) {
		t.Errorf("a second interface in a table of one: %v", err)
	}
	lab.NoError(t, lab.SendUDP(lab.FarIP, 20)) // dropped in the namespace of the other end
	if got := packets(t, c, index); len(got) > 0 {
		t.Errorf("drops of another namespace: %v", got)
	}
	lab.SendFromPeer(t, 3)
	lab.NoError(t, c.Unwatch(index))
	lab.SendFromPeer(t, 5)
	lab.NoError(t, c.Watch(index))
	if got := packets(t, c, index); len(got) > 0 {
		t.Errorf("drops from before it was watched: %v", got)
	}
	lab.SendFromPeer(t, 7)
	if got := packets(t, c, index); got["NO_SOCKET"] != 7 {
		t.Errorf("7 dropped, counted: %v", got)
	}
}

// Without privileges the error names the remedy.
func TestNoPrivilege(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.DropAllCaps(t)
	if _, err := Open(1); err == nil || !strings.Contains(err.Error(), "CAP_BPF") {
		t.Errorf("%v", err)
	}
}
