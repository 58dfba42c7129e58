package names

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Bounds of the live traffic that is read.
const (
	answersPerSecond = 500
	burst            = 100
	snapLength       = 1500    // of a packet, from its IP header on
	bufferBytes      = 1 << 18 // of queued packets
	etherAll         = 0x0003  // ETH_P_ALL
)

// Listener learns from DNS answers that arrive on interfaces. It reads a packet socket with a filter in the kernel that passes nothing else, at a bounded rate:
// beyond it packets wait in the socket's buffer, and are dropped there and counted if it is full. Outgoing packets are not read, since that would
// cost a copy of each.
type Listener struct {
	names atomic.Pointer[Names]
	file  *os.File
	raw   syscallConn
	wants atomic.Pointer[map[int]bool] // interfaces by index
	mu    sync.Mutex
	drops uint64
	done  chan struct{}
}

type syscallConn interface{ Control(func(fd uintptr)) error }

// Listen opens the socket, which requires CAP_NET_RAW; reading it does not.
func Listen(n *Names) (*Listener, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0) // of no protocol: nothing arrives before the filter is there
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, fmt.Errorf("listen for DNS answers: %w: it takes CAP_NET_RAW and AF_PACKET when the process starts (systemd: AmbientCapabilities, CapabilityBoundingSet, RestrictAddressFamilies)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for DNS answers: %w", err)
	}
	if err := prepare(fd); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("listen for DNS answers: %w", err)
	}
	l := &Listener{file: os.NewFile(uintptr(fd), "dns answers"), done: make(chan struct{})}
	if l.raw, err = l.file.SyscallConn(); err != nil {
		return nil, fmt.Errorf("listen for DNS answers: %w", err)
	}
	l.names.Store(n)
	go l.run()
	return l, nil
}

func prepare(fd int) error {
	filter, err := bpf.Assemble(filter())
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		program[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}); err != nil {
		return os.NewSyscallError("attach filter", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return os.NewSyscallError("ignore outgoing packets", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bufferBytes); err != nil {
		return os.NewSyscallError("bound buffer", err)
	}
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: etherAll<<8 | etherAll>>8}))
}

// filter passes UDP from port 53 that is marked as an answer with records, not fragmented, without IPv6 extension headers.
func filter() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 6, SkipTrue: 14},
		bpf.LoadAbsolute{Off: 6, Size: 1}, // next header
		bpf.LoadConstant{Dst: bpf.RegX, Val: 40},
		bpf.Jump{Skip: 4},
		bpf.LoadAbsolute{Off: 6, Size: 2}, // flags and offset
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: 9},
		bpf.LoadMemShift{Off: 0}, // X = length of the header
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolUDP, SkipTrue: 6},
		bpf.LoadIndirect{Off: 0, Size: 2}, // source port
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: portDNS, SkipTrue: 4},
		bpf.LoadIndirect{Off: udpHeader + 2, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: 0x80, SkipTrue: 2},
		bpf.LoadIndirect{Off: udpHeader + 6, Size: 2}, // answers
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: snapLength},
	}
}

// Feed passes answers to another *Names.
func (l *Listener) Feed(n *Names) {
	if l != nil {
		l.names.Store(n)
	}
}

// On sets the interfaces whose answers are read. Until it is called none are.
func (l *Listener) On(indexes ...int) {
	if l == nil {
		return
	}
	wants := map[int]bool{}
	for _, i := range indexes {
		wants[i] = true
	}
	l.wants.Store(&wants)
}

func (l *Listener) run() {
	defer close(l.done)
	packet := make([]byte, snapLength)
	conn, err := l.file.SyscallConn()
	if err != nil {
		return
	}
	began, read := time.Now(), int64(0)
	for {
		var n, index int
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			var from unix.Sockaddr
			n, from, failed = unix.Recvfrom(int(fd), packet, 0)
			if at, ok := from.(*unix.SockaddrLinklayer); ok {
				index = at.Ifindex
			}
			return failed != unix.EAGAIN
		})
		if err != nil {
			return // closed
		}
		if failed != nil {
			continue // ENETDOWN: one interface is down
		}
		if wants := l.wants.Load(); wants != nil && (*wants)[index] {
			l.names.Load().Packet(packet[:n], int64(time.Since(epoch)))
		}
		read++
		if ahead := time.Duration(read-burst)*time.Second/answersPerSecond - time.Since(began); ahead > 0 {
			time.Sleep(ahead)
		} else if ahead < -time.Second { // unused time is not credited
			began, read = time.Now(), 0
		}
	}
}

// epoch is the origin of the clock of live answers.
var epoch = time.Now()

// Dropped are answers that arrived faster than they were read. The kernel's own counter is reset by each query.
func (l *Listener) Dropped() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.raw.Control(func(fd uintptr) {
		if s, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			l.drops += uint64(s.Drops)
		}
	})
	return l.drops
}

// Close ends listening.
func (l *Listener) Close() {
	if l == nil {
		return
	}
	_ = l.file.Close()
	<-l.done
}
