// Package namespace is where threads change their network namespace, and nowhere else: one that is left in a foreign namespace
// would let any other goroutine run there.
package namespace

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// own is the namespace of the calling thread.
const own = "/proc/thread-self/ns/net"

// Handle keeps a network namespace open. Close it.
type Handle struct{ file *os.File }

// Current is the namespace of the calling thread.
func Current() (Handle, error) { return Open(own) }

// Open opens a namespace by the path of a file: a mount below /run/netns, or a link below /proc.
func Open(path string) (Handle, error) {
	file, err := os.Open(path)
	if err != nil {
		return Handle{}, fmt.Errorf("open network namespace: %w", err)
	}
	return Handle{file}, nil
}

// New makes a namespace. It has no name, and ends with its last descriptor and process.
func New() (h Handle, err error) {
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		h, err = Current()
		return err
	})
	return h, err
}

// Inode identifies the namespace of the calling thread; 0 when it cannot be read.
func Inode() uint64 {
	var st unix.Stat_t
	if err := unix.Stat(own, &st); err != nil {
		return 0
	}
	return st.Ino
}

// FD is valid until Close.
func (h Handle) FD() int { return int(h.file.Fd()) }

// Close lets go of the namespace. It can be called twice, and of a Handle that holds none.
func (h Handle) Close() error {
	if h.file == nil {
		return nil
	}
	if err := h.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Run runs fn on a thread inside of the namespace. Goroutines that fn starts are outside; sockets that it opens stay inside
// wherever they are used later.
func (h Handle) Run(fn func() error) error {
	return onThread(func() error {
		if err := h.set(); err != nil {
			return err
		}
		return fn()
	})
}

// Enter puts the calling goroutine into the namespace for good, on a thread that ends with it. Where it is there already, as is usual, no
// privilege is asked for.
func (h Handle) Enter() error {
	runtime.LockOSThread() // never unlocked
	here, err := Current()
	if err != nil {
		return err
	}
	defer here.Close()
	if h.same(here) {
		return nil
	}
	return h.set()
}

func (h Handle) set() error {
	if err := unix.Setns(h.FD(), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	return nil
}

func (h Handle) same(other Handle) bool {
	a, err1 := h.file.Stat()
	b, err2 := other.file.Stat()
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// onThread runs fn, which may change the thread's namespace, on a thread of its own. The thread is used again only when it is back
// where it was; otherwise it ends with its goroutine.
func onThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := Current()
		if err != nil {
			done <- err
			return
		}
		defer home.Close()
		err = fn()
		if home.set() == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// Cookie is the number that no other network namespace of this host has had.
func Cookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}
