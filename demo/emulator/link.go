package emulator

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Namespace runs a function on a thread inside of a network namespace; nil stands for the current one.
type Namespace interface {
	Run(f func() error) error
}

// End is one end of a link: an Ethernet interface that no other program uses (a veth end, a TAP).
type End struct {
	Namespace Namespace
	Interface string
}

func (e *End) run(f func() error) error {
	if e.Namespace == nil {
		return f()
	}
	return e.Namespace.Run(f)
}

// Link is a running link. Close it.
type Link struct {
	a, b *socket
	stop int // eventfd
	ab   *pump
	ba   *pump
	done sync.WaitGroup
	once sync.Once
}

// Start joins two interfaces. It needs CAP_NET_RAW and CAP_NET_ADMIN in their namespaces.
func Start(a, b End, opts Options) (*Link, error) {
	if err := errors.Join(opts.AtoB.check("the direction A to B"), opts.BtoA.check("the direction B to A")); err != nil {
		return nil, fmt.Errorf("start link: %w", err)
	}
	l := &Link{stop: -1}
	if err := l.open(&a, &b); err != nil {
		l.release()
		return nil, fmt.Errorf("start link between %s and %s: %w", a.Interface, b.Interface, err)
	}
	l.ab = newPump(l.a, l.b, l.stop, newPath(opts.AtoB, opts.Seed, 1))
	l.ba = newPump(l.b, l.a, l.stop, newPath(opts.BtoA, opts.Seed, 2))
	addPlaces(2)
	for _, p := range []*pump{l.ab, l.ba} {
		l.done.Go(p.run)
	}
	return l, nil
}

func (l *Link) open(a, b *End) (err error) {
	if l.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("make eventfd: %w", err)
	}
	if l.a, err = openEnd(a); err != nil {
		return err
	}
	l.b, err = openEnd(b)
	return err
}

func openEnd(e *End) (s *socket, err error) {
	err = e.run(func() error {
		if err := SingleSegments(e.Interface); err != nil {
			return err
		}
		s, err = openSocket(e.Interface)
		return err
	})
	return s, err
}

func (l *Link) release() {
	for _, s := range []*socket{l.a, l.b} {
		if s != nil {
			s.close()
		}
	}
	if l.stop >= 0 {
		_ = unix.Close(l.stop)
	}
}

// Close stops the link; packets in flight are dropped.
func (l *Link) Close() error {
	l.once.Do(func() {
		_, _ = unix.Write(l.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		l.done.Wait()
		addPlaces(-2)
		l.release()
	})
	return nil
}

// Counts returns the counters so far of the directions A to B and B to A.
func (l *Link) Counts() (ab, ba Counts) { return l.ab.snapshot(), l.ba.snapshot() }
