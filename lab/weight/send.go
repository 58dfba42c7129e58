package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// sender writes frames to the other ends of interfaces.
type sender struct {
	socket     int
	to         []syscall.SockaddrLinklayer
	frame      []byte
	sent, late uint64 // late: rounds that began more than a tenth of a second after their time
}

func newSender(host *netns.Namespace, many int) (s *sender, err error) {
	s = &sender{frame: datagram()}
	err = host.Run(func() (err error) {
		if s.socket, err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0); err != nil {
			return err
		}
		for n := range many {
			device, err := net.InterfaceByName(fmt.Sprintf("xdpmon-e%d", n))
			if err != nil {
				return err
			}
			s.to = append(s.to, syscall.SockaddrLinklayer{Protocol: 8, Ifindex: device.Index, Halen: 6})
		}
		return nil
	})
	return s, err
}

func (s *sender) close() { syscall.Close(s.socket) }

// datagram of 100 bytes to port 9, whose source port and address are those of a flow.
func datagram() []byte {
	b := make([]byte, 114)
	b[12], b[14], b[22], b[23] = 8, 0x45, 64, 17
	binary.BigEndian.PutUint16(b[16:], 100)
	binary.BigEndian.PutUint32(b[26:], 0xcb007100) // 203.0.113.0
	binary.BigEndian.PutUint32(b[30:], 0xc6336401) // 198.51.100.1
	binary.BigEndian.PutUint16(b[36:], 9)
	binary.BigEndian.PutUint16(b[38:], 80)
	return b
}

// send so many packets a second through each interface, a hundred rounds a second.
func (s *sender) send(rate int, end time.Time) error {
	const rounds = 100
	began := time.Now()
	for round := 0; time.Now().Before(end); round++ {
		due := began.Add(time.Duration(round) * time.Second / rounds)
		wait := time.Until(due)
		if time.Sleep(wait); wait < -100*time.Millisecond {
			s.late++
		}
		packets := rate*(round+1)/rounds - rate*round/rounds
		for k := range packets {
			s.frame[29] = byte(round + k) // 256 sources
			binary.BigEndian.PutUint16(s.frame[34:], uint16(1024+round%4096))
			checksum(s.frame[14:34])
			for n := range s.to {
				if err := syscall.Sendto(s.socket, s.frame, 0, &s.to[n]); err != nil && !errors.Is(err, syscall.ENOBUFS) {
					return err
				}
				s.sent++
			}
		}
	}
	return nil
}

func checksum(header []byte) {
	header[10], header[11] = 0, 0
	sum := uint32(0)
	for n := 0; n < len(header); n += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[n:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum))
}
