// Package watch keeps a chain attached to interfaces that come and go.
package watch

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
)

// EventKind is what happened to an interface.
type EventKind string

// An interface that is moved to another network namespace is Gone here, like one that was deleted.
const (
	Gone     EventKind = "gone"
	Appeared EventKind = "appeared"
	Renamed  EventKind = "renamed"
	WentDown EventKind = "down"
	CameUp   EventKind = "up"
)

// Event is a change of an interface that is watched.
type Event struct {
	Kind    EventKind
	Name    string // the name before the event; of Renamed too
	NewName string // Renamed only
	Index   int
}

// String is the event as an operator reads it.
func (e Event) String() string {
	switch e.Kind {
	case Renamed:
		return fmt.Sprintf("interface %s was renamed to %s", e.Name, e.NewName)
	case Gone:
		return fmt.Sprintf("interface %s has gone", e.Name)
	case Appeared:
		return fmt.Sprintf("interface %s has appeared", e.Name)
	}
	return fmt.Sprintf("interface %s went %s", e.Name, e.Kind)
}

// watch reports what happens to interfaces of the given names, until ctx ends; then the channel is closed. A name need
// not exist yet, and the watcher takes further ones. Nothing is lost when messages are: after an overrun the interfaces are listed and compared
// with what was known. It watches the network namespace of the calling thread.
func watch(ctx context.Context, names []string) (<-chan Event, *watcher, error) {
	w := &watcher{wanted: names, known: map[int]linkState{}}
	if err := w.open(); err != nil {
		return nil, nil, fmt.Errorf("watch interfaces: %w", err)
	}
	events := make(chan Event)
	go w.run(ctx, events)
	return events, w, nil
}

// linkState is what is known of a watched interface.
type linkState struct {
	name string
	up   bool
}

// watcher keeps sockets that were opened in the caller's namespace: the goroutine may run on any thread.
type watcher struct {
	mu     sync.Mutex
	wanted []string
	known  map[int]linkState // by index
	socket *nl.NetlinkSocket
	lister *netlink.Handle
}

func (w *watcher) open() (err error) {
	if w.lister, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return err
	}
	if w.socket, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK); err != nil {
		w.lister.Close()
		return err
	}
	if _, err = w.resync(); err != nil {
		w.close()
	}
	return err
}

func (w *watcher) close() {
	w.socket.Close()
	w.lister.Close()
}

func (w *watcher) run(ctx context.Context, out chan<- Event) {
	defer close(out)
	defer w.close()
	defer context.AfterFunc(ctx, w.socket.Close)() // wakes the receiver
	for ctx.Err() == nil {
		for _, e := range w.receive(ctx) {
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}
}

// receive waits for messages and returns what they change.
func (w *watcher) receive(ctx context.Context) []Event {
	msgs, _, err := w.socket.Receive()
	switch {
	case ctx.Err() != nil, errors.Is(err, unix.EINTR):
		return nil
	case err != nil: // ENOBUFS: messages were lost
		return w.recover(ctx)
	}
	var events []Event
	for _, m := range msgs {
		events = append(events, w.message(m)...)
	}
	return events
}

// recover lists the interfaces until that succeeds: what is known must not stay wrong until the next message.
func (w *watcher) recover(ctx context.Context) []Event {
	for ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		if events, err := w.resync(); err == nil {
			return events
		}
	}
	return nil
}

// want adds a name. An interface that has it already is known from here on, without an event.
func (w *watcher) want(name string) error {
	l, err := w.lister.LinkByName(name)
	if missing := (netlink.LinkNotFoundError{}); err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("watch interface %s: %w", name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.wanted, name) {
		w.wanted = append(slices.Clone(w.wanted), name)
	}
	if err == nil {
		a := l.Attrs()
		w.known[a.Index] = linkState{a.Name, a.RawFlags&unix.IFF_UP != 0}
	}
	return nil
}

// forget a name, and the interfaces that have it.
func (w *watcher) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = slices.DeleteFunc(slices.Clone(w.wanted), func(n string) bool { return n == name })
	for index, l := range w.known {
		if l.name == name {
			delete(w.known, index)
		}
	}
}

func (w *watcher) message(m syscall.NetlinkMessage) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Header.Type != unix.RTM_NEWLINK && m.Header.Type != unix.RTM_DELLINK {
		return nil
	}
	header := unix.NlMsghdr(m.Header)
	l, err := netlink.LinkDeserialize(&header, m.Data)
	if err != nil || nl.DeserializeIfInfomsg(m.Data).Family == unix.AF_BRIDGE {
		return nil // a bridge speaks of its ports with the same messages
	}
	a := l.Attrs()
	if m.Header.Type == unix.RTM_DELLINK {
		return w.remove(a.Index)
	}
	return w.apply(a.Index, linkState{a.Name, a.RawFlags&unix.IFF_UP != 0})
}

// apply takes in the state of an interface and returns what that changes.
func (w *watcher) apply(index int, now linkState) []Event {
	before, known := w.known[index]
	if !known {
		if !slices.Contains(w.wanted, now.name) {
			return nil
		}
		w.known[index] = now
		return []Event{{Kind: Appeared, Name: now.name, Index: index}}
	}
	var events []Event
	if before.name != now.name {
		events = append(events, Event{Kind: Renamed, Name: before.name, NewName: now.name, Index: index})
	}
	if before.up != now.up {
		events = append(events, Event{Kind: upOrDown(now.up), Name: now.name, Index: index})
	}
	w.known[index] = now
	return events
}

func upOrDown(up bool) EventKind {
	if up {
		return CameUp
	}
	return WentDown
}

func (w *watcher) remove(index int) []Event {
	before, known := w.known[index]
	if !known {
		return nil
	}
	delete(w.known, index)
	return []Event{{Kind: Gone, Name: before.name, Index: index}}
}

// resync lists the interfaces and returns what differs from what was known.
func (w *watcher) resync() ([]Event, error) {
	links, err := w.lister.LinkList()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []Event
	there := map[int]bool{}
	for _, l := range links {
		there[l.Attrs().Index] = true
	}
	for index := range w.known {
		if !there[index] {
			events = append(events, w.remove(index)...)
		}
	}
	for _, l := range links {
		a := l.Attrs()
		events = append(events, w.apply(a.Index, linkState{a.Name, a.RawFlags&unix.IFF_UP != 0})...)
	}
	return events, nil
}
