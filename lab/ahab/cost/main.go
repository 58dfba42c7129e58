// Command cost measures what one core pays for a datagram that leaves through AHAB, through what this kernel has of what people would use else, and through nothing: senders share a rate that is far above what they
// send, or a sixteenth of it. It needs root and a core; what others do on the machine is not counted, since only the sending thread's own time is.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/lab/ahab/policer"
)

var (
	binary = flag.String("xdpmon", "bin/xdpmon", "the binary")
	turns  = flag.Int("turns", 5, "of all rows; the least and the median of each are printed: what interrupts the thread is in its time")
	span   = flag.Duration("span", 300*time.Millisecond, "of sending a row and turn")
)

const (
	port   = 7000
	size   = 100 // bytes of a datagram on the wire
	frames = 42  // Ethernet, IPv4, UDP
	batch  = 64
	plenty = 20e9 // bits a second, more than a core sends
)

// shaper shares A's way out.
type shaper struct {
	name string
	// install returns what takes it away; the namespace of A's queue goes with A.
	install func(t *netns.Topology, rate float64) (end func() error, err error)
}

func shapers() []shaper {
	return []shaper{
		{"nothing", func(*netns.Topology, float64) (func() error, error) { return nothing, nil }},
		{"ahab", func(t *netns.Topology, rate float64) (func() error, error) { return attach(t, rate) }},
		{"policer, 200 ms", func(t *netns.Topology, rate float64) (func() error, error) {
			return policer.Attach(t.A, ebpf.AttachTCXEgress, rate/1e6, 200*time.Millisecond)
		}},
		{"htb, pfifo", func(t *netns.Topology, rate float64) (func() error, error) {
			return nothing, errors.Join(t.A.Command("tc qdisc add dev %s root handle 1: htb default 10", t.A.Interface),
				t.A.Command("tc class add dev %s parent 1: classid 1:10 htb rate %.0fbit quantum 1514", t.A.Interface, rate),
				t.A.Command("tc qdisc add dev %s parent 1:10 pfifo limit 1000", t.A.Interface))
		}},
		{"tbf", func(t *netns.Topology, rate float64) (func() error, error) {
			return nothing, t.A.Command("tc qdisc add dev %s root tbf rate %.0fbit burst 256kb limit 100kb", t.A.Interface, rate)
		}},
	}
}

func nothing() error { return nil }

// attach runs xdpmon until the end.
func attach(t *netns.Topology, rate float64) (end func() error, err error) {
	cmd := exec.Command(*binary, "attach", t.A.Interface, "--output", "json", "--window", "1m", "--hook", "tc", "--direction", "egress", "--algo", "ahab", "--set", "ahab.user=source",
		"--set", fmt.Sprintf("ahab.capacity=%.0fbit", rate))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.A.Start(cmd); err != nil {
		return nil, err
	}
	var line any
	if err := json.NewDecoder(pipe).Decode(&line); err != nil {
		return nil, errors.Join(err, cmd.Wait(), errors.New(complaint.String()))
	}
	go func() { // its windows are of no use here
		for b := make([]byte, 1<<16); ; {
			if _, err := pipe.Read(b); err != nil {
				return
			}
		}
	}()
	time.Sleep(200 * time.Millisecond) // the lease is renewed
	return func() error { return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()) }, nil
}

// sink drops where packets arrive, before anything else is done with them.
func sink(h *netns.Host) (end func() error, err error) {
	const drop = 2
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, AttachType: ebpf.AttachTCXIngress, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, drop), asm.Return()}})
	if err != nil {
		return nil, fmt.Errorf("load the sink: %w", err)
	}
	var l link.Link
	err = h.Run(func() (err error) {
		l, err = link.AttachTCX(link.TCXOptions{Interface: h.Index, Program: program, Attach: ebpf.AttachTCXIngress})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return func() error { return errors.Join(l.Close(), program.Close()) }, nil
}

// anywhere lets A send from all of 10.128.0.0/16.
func anywhere(t *netns.Topology) error {
	return errors.Join(t.A.Command("ip route add local 10.128.0.0/16 dev lo"),
		t.A.Command("ip neigh replace %v lladdr 02:00:00:00:00:01 dev %s nud permanent", t.B.IPv4, t.A.Interface))
}

// message is struct mmsghdr.
type message struct {
	unix.Msghdr
	sent uint32
	_    uint32
}

// source is one socket whose datagrams are from the users' addresses by turns: IP_PKTINFO names them.
type source struct {
	fd       int
	messages []message
	control  [][]byte
	users    int
	next     int
	keep     []any
}

func newSource(t *netns.Topology, users int) (s *source, err error) {
	s = &source{users: users}
	err = t.A.Run(func() (err error) {
		s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20); err != nil { // a queue that holds packets holds the socket's memory
		return nil, err
	}
	to := &unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port<<8&0xff00 | port>>8, Addr: t.B.IPv4.As4()}
	payload := make([]byte, size-frames)
	vector := &unix.Iovec{Base: &payload[0], Len: uint64(len(payload))}
	s.messages = make([]message, batch)
	for n := range s.messages {
		control := make([]byte, unix.CmsgSpace(unix.SizeofInet4Pktinfo))
		head := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		head.Level, head.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
		head.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
		m := &s.messages[n]
		m.Name, m.Namelen, m.Iov, m.Iovlen = (*byte)(unsafe.Pointer(to)), unix.SizeofSockaddrInet4, vector, 1
		m.Control = &control[0]
		m.SetControllen(len(control))
		s.control = append(s.control, control)
	}
	s.keep = []any{to, payload, vector}
	return s, nil
}

// send a batch; it returns how many were handed over.
func (s *source) send() (int, error) {
	for _, control := range s.control {
		info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
		info.Spec_dst = [4]byte{10, 128, byte(s.next / 250), byte(1 + s.next%250)}
		s.next = (s.next + 1) % s.users
	}
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.messages[0])), batch, 0, 0, 0)
	runtime.KeepAlive(s)
	switch errno {
	case 0:
		return int(n), nil
	case unix.ENOBUFS, unix.EAGAIN: // the queue is full: the datagram was dropped
		return 1, nil
	}
	return 0, fmt.Errorf("send: %w", errno)
}

// result of a row in one turn.
type result struct {
	cost float64 // ns of the sending thread a datagram
	rate float64 // datagrams a second, while others may have had the core
	left float64 // part of what was handed over that left
}

func (s shaper) measure(users int, rate float64) (r result, err error) {
	t, err := netns.New(netns.Options{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := anywhere(t); err != nil {
		return r, err
	}
	stop, err := sink(t.B)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	end, err := s.install(t, rate)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, end()) }()
	from, err := newSource(t, users)
	if err != nil {
		return r, err
	}
	defer unix.Close(from.fd)
	if _, _, err := from.timed(*span / 2); err != nil { // limits settle
		return r, err
	}
	before, err := transmitted(t)
	if err != nil {
		return r, err
	}
	began := time.Now()
	n, took, err := from.timed(*span)
	if err != nil {
		return r, err
	}
	after, err := transmitted(t)
	return result{cost: float64(took.Nanoseconds()) / float64(n), rate: float64(n) / time.Since(began).Seconds(), left: float64(after-before) / float64(n)}, err
}

// timed sends for a while, and returns how many datagrams that were and what the thread took.
func (s *source) timed(span time.Duration) (n int, took time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, until := threadTime(), time.Now().Add(span)
	for time.Now().Before(until) {
		sent, err := s.send()
		if err != nil {
			return 0, 0, err
		}
		n += sent
	}
	return n, threadTime() - began, nil
}

func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

func transmitted(t *netns.Topology) (n uint64, err error) {
	h, err := t.A.Netlink()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	l, err := h.LinkByName(t.A.Interface)
	if err != nil {
		return 0, err
	}
	return l.Attrs().Statistics.TxPackets, nil
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("cost: ")
	flag.Parse()
	if err := all(); err != nil {
		log.Fatal(err)
	}
}

type row struct {
	shaper shaper
	users  int
	scarce bool
}

func all() error {
	var rows []row
	for _, scarce := range []bool{false, true} {
		for _, users := range []int{1, 100, 10_000} {
			for _, s := range shapers() {
				if !scarce || s.name != "nothing" {
					rows = append(rows, row{s, users, scarce})
				}
			}
		}
	}
	results := make([][]result, len(rows))
	for range *turns {
		sent := map[int]float64{}
		for i, r := range rows {
			rate := plenty
			if r.scarce {
				rate = sent[r.users] / 16
			}
			got, err := r.shaper.measure(r.users, rate)
			if err != nil {
				return fmt.Errorf("%s, %d users: %w", r.shaper.name, r.users, err)
			}
			if r.shaper.name == "nothing" {
				sent[r.users] = got.rate * 8 * size
			}
			results[i] = append(results[i], got)
		}
	}
	fmt.Println("| shaper | users | rate | ns a datagram, least, median | thousand datagrams a second of a core | left |\n|---|---:|---|---:|---:|---:|")
	for i, r := range rows {
		list := results[i]
		slices.SortFunc(list, func(a, b result) int { return int(1e3 * (a.cost - b.cost)) })
		m, name := list[len(list)/2], "more than is sent"
		if r.scarce {
			name = "a sixteenth of what is sent"
		}
		fmt.Printf("| %s | %d | %s | %.0f, %.0f | %.0f | %.2f |\n", r.shaper.name, r.users, name, list[0].cost, m.cost, 1e6/list[0].cost, m.left)
	}
	return nil
}
