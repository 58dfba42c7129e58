package emulator

import (
	"encoding/binary"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	vnetHeader = 10           // bytes of struct virtio_net_hdr in front of every frame
	frameMax   = 1<<16 + 1024 // bytes; the longest aggregate with its headers
	batchSize  = 32
	controlMax = 128
)

// socket is a packet socket on one interface.
type socket struct {
	fd    int
	batch *batch
}

// openSocket opens a packet socket in the network namespace of the calling thread.
func openSocket(iface string) (*socket, error) {
	dev, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, fmt.Errorf("find interface %s: %w", iface, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open packet socket: %w", err)
	}
	s := &socket{fd: fd, batch: newBatch()}
	if err := s.prepare(dev.Index); err != nil {
		s.close()
		return nil, fmt.Errorf("prepare packet socket on %s: %w", iface, err)
	}
	return s, nil
}

func (s *socket) prepare(index int) error {
	for _, opt := range []struct{ level, name, value int }{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32 << 20},
		{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 32 << 20},
	} {
		if err := unix.SetsockoptInt(s.fd, opt.level, opt.name, opt.value); err != nil {
			return fmt.Errorf("set option %d of level %d: %w", opt.name, opt.level, err)
		}
	}
	return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index})
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func (s *socket) close() { _ = unix.Close(s.fd) }

// drops returns the packets that the kernel dropped since the last call because this end did not read fast enough.
func (s *socket) drops() uint64 {
	var stats unix.TpacketStats
	size := uint32(unsafe.Sizeof(stats))
	if _, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_PACKET, unix.PACKET_STATISTICS, uintptr(unsafe.Pointer(&stats)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return 0
	}
	return uint64(stats.Drops)
}

// mmsghdr is struct mmsghdr of the kernel.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

// batch is the memory of one recvmmsg. Every pointer in it points into its own slices, which are valid as long as it.
type batch struct {
	msgs    [batchSize]mmsghdr
	iovecs  [batchSize]unix.Iovec
	frames  [batchSize][]byte
	control [batchSize][controlMax]byte
}

func newBatch() *batch {
	b := &batch{}
	for i := range batchSize {
		b.frames[i] = make([]byte, frameMax)
		b.iovecs[i].Base = &b.frames[i][0]
		b.iovecs[i].SetLen(frameMax)
		b.msgs[i].hdr.Iov = &b.iovecs[i]
		b.msgs[i].hdr.Iovlen = 1
		b.msgs[i].hdr.Control = &b.control[i][0]
	}
	return b
}

// receive reads what is there, at most a batch, without waiting.
func (s *socket) receive() (int, error) {
	for i := range s.batch.msgs {
		s.batch.msgs[i].hdr.SetControllen(controlMax)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.batch.msgs[0])),
		batchSize, unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, fmt.Errorf("receive: %w", errno)
	}
	return int(n), nil
}

// arrival is message i of the last batch: header and frame, and the kernel's time of its arrival in ns, 0 if unknown.
func (s *socket) arrival(i int) (frame []byte, time int64) {
	m := &s.batch.msgs[i]
	frame = s.batch.frames[i][:m.len]
	control := s.batch.control[i][:m.hdr.Controllen]
	for len(control) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		size := int(h.Len)
		if size < unix.SizeofCmsghdr || size > len(control) {
			break
		}
		body := control[unix.SizeofCmsghdr:size]
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(body) >= 16:
			time = int64(binary.NativeEndian.Uint64(body))*1e9 + int64(binary.NativeEndian.Uint64(body[8:]))
		case h.Level == unix.SOL_PACKET && h.Type == unix.PACKET_AUXDATA && len(body) >= 20:
			frame = s.untag(i, frame, body)
		}
		control = control[min((size+7)&^7, len(control)):]
	}
	return frame, time
}

// untag inserts a VLAN tag that the kernel stores outside of the frame (struct tpacket_auxdata).
func (s *socket) untag(i int, frame, aux []byte) []byte {
	const addresses = vnetHeader + 12
	status := binary.NativeEndian.Uint32(aux)
	if status&unix.TP_STATUS_VLAN_VALID == 0 || len(frame) < addresses || len(frame)+4 > frameMax {
		return frame
	}
	tagged := s.batch.frames[i][:len(frame)+4]
	copy(tagged[addresses+4:], frame[addresses:])
	tpid := uint16(unix.ETH_P_8021Q)
	if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = binary.NativeEndian.Uint16(aux[18:])
	}
	binary.BigEndian.PutUint16(tagged[addresses:], tpid)
	binary.BigEndian.PutUint16(tagged[addresses+2:], binary.NativeEndian.Uint16(aux[16:]))
	moveChecksum(tagged, 4)
	return tagged
}

// moveChecksum adjusts the offsets in the virtio header, which count from the frame's start, after headers moved by n bytes.
func moveChecksum(frame []byte, n uint16) {
	const needsChecksum, hdrLen, csumStart = 1, 2, 6
	if frame[0]&needsChecksum != 0 {
		binary.NativeEndian.PutUint16(frame[csumStart:], binary.NativeEndian.Uint16(frame[csumStart:])+n)
	}
	if v := binary.NativeEndian.Uint16(frame[hdrLen:]); v != 0 {
		binary.NativeEndian.PutUint16(frame[hdrLen:], v+n)
	}
}

// isAggregate reports whether a frame is more than one segment: the header in front names a segmentation.
func isAggregate(frame []byte) bool { return frame[1] != 0 }
