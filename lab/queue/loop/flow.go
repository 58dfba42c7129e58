package main

import (
	"net"

	"golang.org/x/sys/unix"
)

// flow is a connection as its sender's kernel has seen it.
type flow struct {
	Size     int     `json:",omitempty"` // bytes that it was given
	Time     float64 `json:",omitempty"` // from connect() to the last byte at the other end, ms; 0: it did not end
	Segments uint32  // that arrived
	Marked   uint32  // ... with an ECN mark
	Again    uint32  `json:",omitempty"` // segments that were sent again
	Timeouts uint32  `json:",omitempty"`
}

// flowOf is empty where the kernel does not answer.
func flowOf(c net.Conn) (f flow) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return f
	}
	_ = raw.Control(func(fd uintptr) {
		if i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			f = flow{Segments: i.Delivered, Marked: i.Delivered_ce, Again: i.Total_retrans, Timeouts: uint32(i.Total_rto)}
		}
	})
	return f
}

// less is what has happened since.
func (f flow) less(before flow) flow {
	f.Segments -= before.Segments
	f.Marked -= before.Marked
	f.Again -= before.Again
	f.Timeouts -= before.Timeouts
	return f
}

// share of the segments that were marked.
func (f flow) share() float64 { return float64(f.Marked) / float64(max(1, f.Segments)) }

func total(flows []flow) (sum flow) {
	for _, f := range flows {
		sum.Size += f.Size
		sum.Segments += f.Segments
		sum.Marked += f.Marked
		sum.Again += f.Again
		sum.Timeouts += f.Timeouts
	}
	return sum
}
