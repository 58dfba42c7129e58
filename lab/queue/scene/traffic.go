package scene

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// Traffic is ten flows that are always there, and bursts of others, as section 5.6.3 of the dissertation has them.
type Traffic struct {
	Background float64       // of the rate, all ten flows together
	Every      time.Duration // between bursts
	Seed       uint64
}

// Ports of the flows; there is one bursty flow for each of the last.
const (
	Sink       = 7
	FirstPort  = 20000
	Background = 10
	Bursty     = 3
	BurstPort  = FirstPort + Background
)

// Bursts last so long on the link.
const (
	ShortestBurst = 50 * time.Microsecond
	LongestBurst  = 5 * time.Millisecond
)

// Size of a frame.
const (
	Size    = 1434
	headers = 14 + 20 + 8
)

// sender of one flow: datagrams that have how many were sent before them.
type sender struct {
	packets *ipv4.PacketConn
	batch   []ipv4.Message
	sent    uint32
}

func (s *Scene) sender(port int) (*sender, error) {
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(AddressA), Port: port}}
	conn, err := s.A.DialFrom(context.Background(), &d, "udp4", fmt.Sprintf("%s:%d", AddressB, Sink))
	if err != nil {
		return nil, err
	}
	one := &sender{packets: ipv4.NewPacketConn(conn.(net.PacketConn))}
	most := int(LongestBurst.Seconds()*s.Rate/8/Size) + 1
	for range most {
		one.batch = append(one.batch, ipv4.Message{Buffers: [][]byte{make([]byte, Size-headers)}})
	}
	return one, nil
}

// send n datagrams at once.
func (s *sender) send(n int) error {
	for _, m := range s.batch[:n] {
		binary.BigEndian.PutUint32(m.Buffers[0], s.sent)
		s.sent++
	}
	for done := 0; done < n; {
		k, err := s.packets.WriteBatch(s.batch[done:n], 0)
		if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.ECONNREFUSED) {
			return err
		}
		done += max(k, 0)
	}
	return nil
}

// Send sends traffic for a while; it returns how many datagrams that were.
func (s *Scene) Send(t Traffic, span time.Duration) (sent uint64, err error) {
	sink, err := s.B.ListenPacket(context.Background(), "udp4", fmt.Sprintf("%s:%d", AddressB, Sink))
	if err != nil {
		return 0, err
	}
	defer sink.Close() // what it does not take is dropped there
	var flows []*sender
	for n := range Background + Bursty {
		one, err := s.sender(FirstPort + n)
		if err != nil {
			return 0, err
		}
		defer one.packets.Close()
		flows = append(flows, one)
	}
	if err := flows[0].send(1); err != nil { // neighbours are asked for
		return 0, err
	}
	time.Sleep(100 * time.Millisecond)
	end := time.Now().Add(span)
	var both sync.WaitGroup
	var errs [2]error
	both.Go(func() { errs[0] = s.background(t, flows[:Background], end) })
	both.Go(func() { errs[1] = s.bursts(t, flows[Background:], end) })
	both.Wait()
	for _, f := range flows {
		sent += uint64(f.sent)
	}
	return sent, errors.Join(errs[:]...)
}

// background: flow n has n + 1 parts of it.
func (s *Scene) background(t Traffic, flows []*sender, end time.Time) error {
	random := rand.New(rand.NewPCG(t.Seed, 1))
	gap := float64(Size) * 8 / (s.Rate * t.Background * float64(s.Queues)) * 1e9
	parts := len(flows) * (len(flows) + 1) / 2
	for at := time.Now(); at.Before(end); at = at.Add(time.Duration(random.ExpFloat64() * gap)) {
		time.Sleep(time.Until(at))
		n, part := 0, random.IntN(parts)
		for ; part > n; n++ {
			part -= n + 1
		}
		if err := flows[n].send(1); err != nil {
			return err
		}
	}
	return nil
}

// bursts of all lengths, each of one flow.
func (s *Scene) bursts(t Traffic, flows []*sender, end time.Time) error {
	random := rand.New(rand.NewPCG(t.Seed, 2))
	shortest, longest := math.Log(ShortestBurst.Seconds()), math.Log(LongestBurst.Seconds())
	for n, at := 0, time.Now(); at.Before(end); n, at = n+1, at.Add(t.Every) {
		time.Sleep(time.Until(at))
		length := math.Exp(shortest + random.Float64()*(longest-shortest))
		if err := flows[n%len(flows)].send(max(1, int(length*s.Rate/8/Size))); err != nil {
			return err
		}
	}
	return nil
}

// Flood sends small datagrams from host A to B until stop, as fast as one thread can.
func Flood(network *netns.Topology, stop *atomic.Bool) (sent uint64, err error) {
	to := fmt.Sprintf("%v:%d", network.B.IPv4, Sink)
	sink, err := network.B.ListenPacket(context.Background(), "udp4", to)
	if err != nil {
		return 0, err
	}
	defer sink.Close()
	conn, err := network.A.Dial(context.Background(), "udp4", to)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	batch := make([]ipv4.Message, 64)
	for n := range batch {
		batch[n].Buffers = [][]byte{make([]byte, 18)}
	}
	for packets := ipv4.NewPacketConn(conn.(net.PacketConn)); !stop.Load(); {
		n, err := packets.WriteBatch(batch, 0)
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return sent, err
		}
		sent += uint64(max(n, 0))
	}
	return sent, nil
}
