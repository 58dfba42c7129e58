package emulator

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/heap"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// pump forwards the packets of one direction on a thread of its own.
type pump struct {
	counters
	in, out *socket
	stop    int // eventfd
	path    *path
	pool    pool
	way     heap.Heap[transit]
	order   uint64
	decoder packet.Decoder
	pkt     packet.Packet

	leaving [batchSize]transit
	msgs    [batchSize]mmsghdr
	iovecs  [batchSize]unix.Iovec
}

func newPump(in, out *socket, stop int, l *path) *pump {
	return &pump{in: in, out: out, stop: stop, path: l}
}

func now() int64 { return time.Now().UnixNano() }

// run is the thread: the kernel wakes it for packets and for the time when the next one is due.
func (p *pump) run() {
	prepareThread()
	for p.wait() {
		for p.take() == batchSize {
			p.sendDue()
		}
		p.sendDue()
	}
}

// wait returns false when the link is closed.
func (p *pump) wait() bool {
	fds := [2]unix.PollFd{{Fd: int32(p.stop), Events: unix.POLLIN}, {Fd: int32(p.in.fd), Events: unix.POLLIN}}
	var timeout *unix.Timespec
	if len(p.way) > 0 {
		ts := unix.NsecToTimespec(max(p.way[0].due-now(), 0))
		timeout = &ts
	}
	if err := ppoll(fds[:], timeout); err != 0 && err != unix.EINTR {
		return false
	}
	if fds[1].Revents&unix.POLLERR != 0 && fds[1].Revents&unix.POLLIN == 0 {
		time.Sleep(time.Millisecond) // the interface is down
	}
	return fds[0].Revents == 0
}

// take reads a batch and decides about each packet in it.
func (p *pump) take() int {
	n, err := p.in.receive()
	if err != nil {
		return 0
	}
	t := now()
	for i := range n {
		frame, arrived := p.in.arrival(i)
		if arrived == 0 || arrived > t {
			arrived = t
		}
		if len(frame) > vnetHeader {
			p.arrive(frame, arrived)
		}
	}
	return n
}

func (p *pump) arrive(frame []byte, arrived int64) {
	p.received.Add(1)
	if isAggregate(frame) {
		p.aggregates.Add(1)
	}
	bytes := frame[vnetHeader:]
	f := packet.Frame{Time: arrived, Data: bytes, Len: len(bytes)}
	reason := p.decoder.Decode(&f, packet.DecodeOptions{}, &p.pkt)
	v := verdict{fate: Passed, due: arrived}
	if isControl(&p.pkt, reason) {
		p.control.Add(1)
	} else {
		v = p.path.decide(arrived, &p.pkt, len(bytes))
	}
	if v.fate != Passed {
		p.fate(v.fate)
		p.report(p.event(arrived, v, false), v.fate, 0)
		return
	}
	if v.reordered {
		p.reordered.Add(1)
	}
	p.send(frame, arrived, v, false)
	if v.twice {
		p.duplicated.Add(1)
		p.send(frame, arrived, v, true)
	}
}

// send puts a packet on its way.
func (p *pump) send(frame []byte, arrived int64, v verdict, duplicate bool) {
	p.order++
	p.path.underway++
	p.way.Push(transit{due: v.due, order: p.order, frame: p.pool.copy(frame), event: p.event(arrived, v, duplicate)})
}

// event starts a report; nil when OnPacket is nil.
func (p *pump) event(arrived int64, v verdict, duplicate bool) *Event {
	if p.path.OnPacket == nil {
		return nil
	}
	return &Event{Packet: p.pkt, Arrived: arrived, Due: v.due, Duplicate: duplicate, Reordered: v.reordered}
}

func (p *pump) report(e *Event, fate Fate, sent int64) {
	if e == nil {
		return
	}
	e.Fate, e.Sent = fate, sent
	p.path.OnPacket(*e)
}

// sendDue sends what is due.
func (p *pump) sendDue() {
	for {
		n, t := 0, now()
		for n < batchSize && len(p.way) > 0 && p.way[0].due <= t {
			p.leaving[n] = p.way.Pop()
			n++
		}
		if n == 0 {
			p.missed.Add(p.in.drops())
			return
		}
		p.transmit(p.leaving[:n])
	}
}

// transmit passes a batch to the interface. A packet that it refuses is Failed; the packets after it are sent.
func (p *pump) transmit(batch []transit) {
	for len(batch) > 0 {
		n, err := p.sendmmsg(batch)
		t := now()
		for _, tr := range batch[:n] {
			p.left(len(tr.frame)-vnetHeader, t-tr.due)
			p.finish(tr, Passed, t)
		}
		batch = batch[n:]
		switch {
		case err == 0:
		case err == unix.EAGAIN:
			fds := [1]unix.PollFd{{Fd: int32(p.out.fd), Events: unix.POLLOUT}}
			_ = ppoll(fds[:], &unix.Timespec{Nsec: 10e6})
		case err != unix.EINTR && len(batch) > 0:
			p.fate(Failed)
			p.finish(batch[0], Failed, 0)
			batch = batch[1:]
		}
	}
}

func (p *pump) finish(tr transit, fate Fate, sent int64) {
	p.path.underway--
	p.report(tr.event, fate, sent)
	p.pool.put(tr.frame)
}

// sendmmsg returns how many were sent, and the error that stopped it before the next one.
func (p *pump) sendmmsg(batch []transit) (int, unix.Errno) {
	for i, tr := range batch {
		p.iovecs[i].Base = &tr.frame[0]
		p.iovecs[i].SetLen(len(tr.frame))
		p.msgs[i].hdr.Iov = &p.iovecs[i]
		p.msgs[i].hdr.Iovlen = 1
	}
	n, _, err := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(p.out.fd), uintptr(unsafe.Pointer(&p.msgs[0])),
		uintptr(len(batch)), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
