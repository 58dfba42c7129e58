package netnstest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// batch is how many datagrams one system call sends: one by one, a call costs more than a datagram.
const batch = 64

// Flood sends datagrams from a host, at most rate a second (0: as fast as it can), until stop. It returns how many left: what the
// kernel has taken, each a packet of its own.
func Flood(tb testing.TB, from *netns.Host, to netip.AddrPort, rate int, stop *atomic.Bool) (sent uint64) {
	tb.Helper()
	conn, err := from.Dial(context.Background(), "udp4", to.String())
	if err != nil {
		tb.Error(err)
		return 0
	}
	defer conn.Close()
	messages := make([]ipv4.Message, batch)
	for i := range messages {
		messages[i].Buffers = [][]byte{[]byte("datagram")}
	}
	packets := ipv4.NewPacketConn(conn.(net.PacketConn))
	began := time.Now()
	for !stop.Load() {
		n, err := packets.WriteBatch(messages, 0)
		switch {
		case err == nil:
			sent += uint64(n)
		case !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.ECONNREFUSED): // nobody listens: of an earlier datagram, none of this call has left
			tb.Error(err)
			return sent
		}
		if rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(sent) / float64(rate) * 1e9))))
		}
	}
	return sent
}
