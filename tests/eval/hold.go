package eval

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// driver is the program of bpf/replay that BPF_PROG_TEST_RUN repeats.
const driver = "replay_xdp"

// held is a source that keeps the replay's program in use while frames are read.
//
// A test run with repetitions enters its program into the kernel's XDP dispatcher and takes it out again, and waits
// for RCU both times: some milliseconds a batch of 2,048 packets on a quiet machine and 50 to 100 on a busy one, where
// the packets themselves take two. A program that is attached somewhere is in the dispatcher already. So it is
// attached to the loopback interface of a network namespace of its own, which is down and sees no packet.
type held struct {
	capture.Source
	started bool
	undo    []func()
}

// Next implements capture.Source. When the first frame is asked for, the program is loaded.
func (h *held) Next(f *packet.Frame) error {
	if !h.started {
		h.started = true
		_ = h.hold() // without it the replay is slower, not wrong
	}
	return h.Source.Next(f)
}

func (h *held) release() {
	for _, undo := range h.undo {
		undo()
	}
}

// hold attaches every replay program of this process; with several workers that are more than one.
func (h *held) hold() error {
	ids, err := ownPrograms()
	if err != nil {
		return err
	}
	for _, id := range ids {
		prog, err := ebpf.NewProgramFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue // of another worker that has ended
		}
		if err != nil {
			return fmt.Errorf("open program %d: %w", id, err)
		}
		err = h.keep(prog)
		prog.Close()
		if err != nil {
			return fmt.Errorf("hold replay program: %w", err)
		}
	}
	return nil
}

func (h *held) keep(prog *ebpf.Program) error {
	info, err := prog.Info()
	if err != nil || info.Name != driver {
		return err
	}
	undo, err := attachAside(prog)
	if err == nil {
		h.undo = append(h.undo, undo)
	}
	return err
}

// ownPrograms lists the programs that this process has open.
func ownPrograms() ([]ebpf.ProgramID, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("list open descriptors: %w", err)
	}
	var ids []ebpf.ProgramID
	for _, e := range entries {
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if err != nil {
			continue // closed meanwhile
		}
		if _, rest, ok := strings.Cut(string(info), "prog_id:\t"); ok && !strings.Contains(string(info), "link_id:") {
			number, _, _ := strings.Cut(rest, "\n")
			if id, err := strconv.ParseUint(number, 10, 32); err == nil {
				ids = append(ids, ebpf.ProgramID(id))
			}
		}
	}
	return ids, nil
}

// attachAside attaches a program in a new network namespace, which lives until undo.
func attachAside(prog *ebpf.Program) (undo func(), err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		undo, err = attachHere(prog)
	}()
	<-done
	return undo, err
}

func attachHere(prog *ebpf.Program) (undo func(), err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	ns, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	const loopback = 1
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: loopback, Flags: link.XDPGenericMode})
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("attach: %w", err)
	}
	return func() { l.Close(); ns.Close() }, nil
}
