// Package links reports changes of interfaces. A process has one netlink subscription for a network namespace, for any number of readers.
package links

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/namespace"
)

// Change is the state of an interface in one message of the kernel.
type Change struct {
	Index int
	Name  string
	Up    bool
	Gone  bool // deleted, or moved to another network namespace
}

// most is the number of changes that are queued for a reader. A reader that missed some must list.
const most = 1024

// retry is the pause after messages were lost (ENOBUFS): listing at once would meet the same burst of messages.
const retry = 10 * time.Millisecond

// Reader receives every change in the network namespace of the thread that opened it. One goroutine calls Next.
type Reader struct {
	source *source
	news   chan struct{}

	mu     sync.Mutex
	queue  []Change
	missed bool
}

// source is the subscription of a namespace; it ends with its last reader.
type source struct {
	inode  uint64 // of the namespace; 0: not known, so the watcher is not shared
	socket *nl.NetlinkSocket
	lister *netlink.Handle
	ended  chan struct{}

	mu      sync.Mutex
	readers []*Reader
	over    bool
}

var (
	mu      sync.Mutex
	sources = map[uint64]*source{}
)

// Open subscribes to the network namespace of the calling thread. No later change is missed.
func Open() (*Reader, error) {
	mu.Lock()
	defer mu.Unlock()
	inode := namespace.Inode()
	s := sources[inode]
	if s == nil || inode == 0 {
		var err error
		if s, err = subscribe(inode); err != nil {
			return nil, fmt.Errorf("watch interfaces: %w", err)
		}
		sources[inode] = s
	}
	r := &Reader{source: s, news: make(chan struct{}, 1)}
	s.mu.Lock()
	s.readers = append(s.readers, r)
	s.mu.Unlock()
	return r, nil
}

func subscribe(inode uint64) (*source, error) {
	s := &source{inode: inode, ended: make(chan struct{})}
	var err error
	if s.lister, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	if s.socket, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK); err != nil {
		s.lister.Close()
		return nil, err
	}
	go s.run()
	return s, nil
}

// Close ends the reading, and the subscription with its last reader.
func (r *Reader) Close() {
	mu.Lock()
	defer mu.Unlock()
	s := r.source
	s.mu.Lock()
	s.readers = slices.DeleteFunc(s.readers, func(o *Reader) bool { return o == r })
	s.over = len(s.readers) == 0
	over := s.over
	s.mu.Unlock()
	if !over {
		return
	}
	if sources[s.inode] == s {
		delete(sources, s.inode)
	}
	s.socket.Close() // wakes run
	<-s.ended
	s.lister.Close()
}

func (s *source) run() {
	defer close(s.ended)
	for {
		msgs, _, err := s.socket.Receive()
		s.mu.Lock()
		over := s.over
		s.mu.Unlock()
		switch {
		case over:
			return
		case errors.Is(err, unix.EINTR):
		case err != nil: // ENOBUFS: messages were lost
			time.Sleep(retry)
			s.hand(nil, true)
		default:
			s.hand(changes(msgs), false)
		}
	}
}

func changes(msgs []syscall.NetlinkMessage) (list []Change) {
	for _, m := range msgs {
		if m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK {
			continue
		}
		header := unix.NlMsghdr(m.Header)
		l, err := netlink.LinkDeserialize(&header, m.Data)
		if err != nil || nl.DeserializeIfInfomsg(m.Data).Family == unix.AF_BRIDGE {
			continue // a bridge sends the same messages about its ports
		}
		c := Of(l)
		c.Gone = m.Header.Type == unix.RTM_DELLINK
		list = append(list, c)
	}
	return list
}

// hand passes changes to all readers without blocking.
func (s *source) hand(list []Change, missed bool) {
	if len(list) == 0 && !missed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		r.take(list, missed)
	}
}

func (r *Reader) take(list []Change, missed bool) {
	r.mu.Lock()
	r.queue = append(r.queue, list...)
	if missed || len(r.queue) > most {
		r.queue, r.missed = nil, true
	}
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Next waits for changes. missed: some are lost, including those that it would have returned; List has the current state.
func (r *Reader) Next(ctx context.Context) (list []Change, missed bool, err error) {
	for {
		r.mu.Lock()
		list, missed = r.queue, r.missed
		r.queue, r.missed = nil, false
		r.mu.Unlock()
		if len(list) > 0 || missed {
			return list, missed, nil
		}
		select {
		case <-r.news:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// List returns all interfaces. With netlink.ErrDumpInterrupted the list may lack some.
func (r *Reader) List() ([]netlink.Link, error) { return r.source.lister.LinkList() }

// ByName finds an interface; found is false when there is none.
func (r *Reader) ByName(name string) (c Change, found bool, err error) {
	l, err := r.source.lister.LinkByName(name)
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		return c, false, nil
	} else if err != nil {
		return c, false, fmt.Errorf("watch interface %s: %w", name, err)
	}
	return Of(l), true, nil
}

// Of is the state of an interface of List.
func Of(l netlink.Link) Change {
	a := l.Attrs()
	return Change{Index: a.Index, Name: a.Name, Up: a.RawFlags&unix.IFF_UP != 0}
}
