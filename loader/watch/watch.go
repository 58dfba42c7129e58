// Package watch keeps a chain attached to interfaces that are removed and appear again.
package watch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/loader/links"
)

// EventKind is what happened to an interface.
type EventKind string

// An interface that is moved to another network namespace is Removed here, like one that was deleted.
const (
	Removed  EventKind = "removed"
	Appeared EventKind = "appeared"
	Renamed  EventKind = "renamed"
	Down     EventKind = "down"
	Up       EventKind = "up"
)

// Event is a change of an interface that is watched.
type Event struct {
	Kind    EventKind
	Name    string // the name before the event; of Renamed too
	NewName string // Renamed only
	Index   int
}

// String is the event as a message for the operator.
func (e Event) String() string {
	switch e.Kind {
	case Renamed:
		return fmt.Sprintf("interface %s was renamed to %s", e.Name, e.NewName)
	case Removed:
		return fmt.Sprintf("interface %s was removed", e.Name)
	case Appeared:
		return fmt.Sprintf("interface %s has appeared", e.Name)
	}
	return fmt.Sprintf("interface %s is %s", e.Name, e.Kind)
}

// watch reports what happens to interfaces of the given names, until ctx ends; then the channel is closed. A name need
// not exist yet, and the watcher takes further ones. Lost messages lose no event: after an overrun the interfaces are listed and compared
// with the known ones. It watches the network namespace of the calling thread.
func watch(ctx context.Context, names []string) (<-chan Event, *watcher, error) {
	w := &watcher{wanted: names, known: map[int]links.Change{}}
	if err := w.open(); err != nil {
		return nil, nil, fmt.Errorf("watch interfaces: %w", err)
	}
	events := make(chan Event)
	go w.run(ctx, events)
	return events, w, nil
}

// watcher reads the events of the caller's namespace; its goroutine may run on any thread.
type watcher struct {
	mu     sync.Mutex
	wanted []string
	known  map[int]links.Change // by index
	links  *links.Reader
}

func (w *watcher) open() (err error) {
	if w.links, err = links.Open(); err != nil {
		return err
	}
	for _, name := range slices.Clone(w.wanted) { // a list of all interfaces takes long where there are hundreds, and so many watchers
		if err = w.want(name); err != nil {
			w.close()
			return err
		}
	}
	return nil
}

func (w *watcher) close() { w.links.Close() }

func (w *watcher) run(ctx context.Context, out chan<- Event) {
	defer close(out)
	defer w.close()
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

// receive waits for changes and returns them as events.
func (w *watcher) receive(ctx context.Context) []Event {
	list, missed, err := w.links.Next(ctx)
	switch {
	case err != nil:
		return nil
	case missed:
		return w.recover(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []Event
	for _, c := range list {
		if c.Gone {
			events = append(events, w.remove(c.Index)...)
		} else {
			events = append(events, w.apply(c)...)
		}
	}
	return events
}

// recover lists the interfaces until that succeeds: known must not stay wrong until the next message.
func (w *watcher) recover(ctx context.Context) []Event {
	for ctx.Err() == nil {
		if events, err := w.resync(); err == nil {
			return events
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// want adds a name. An interface that has it already is known from here on, without an event.
func (w *watcher) want(name string) error {
	c, found, err := w.links.ByName(name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.wanted, name) {
		w.wanted = append(slices.Clone(w.wanted), name)
	}
	if found {
		w.known[c.Index] = c
	}
	return nil
}

// forget a name, and the interfaces that have it.
func (w *watcher) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = slices.DeleteFunc(slices.Clone(w.wanted), func(n string) bool { return n == name })
	for index, l := range w.known {
		if l.Name == name {
			delete(w.known, index)
		}
	}
}

// apply records the state of an interface and returns the resulting events.
func (w *watcher) apply(now links.Change) []Event {
	before, known := w.known[now.Index]
	if !known {
		if !slices.Contains(w.wanted, now.Name) {
			return nil
		}
		w.known[now.Index] = now
		return []Event{{Kind: Appeared, Name: now.Name, Index: now.Index}}
	}
	var events []Event
	if before.Name != now.Name {
		events = append(events, Event{Kind: Renamed, Name: before.Name, NewName: now.Name, Index: now.Index})
	}
	if before.Up != now.Up {
		events = append(events, Event{Kind: upOrDown(now.Up), Name: now.Name, Index: now.Index})
	}
	w.known[now.Index] = now
	return events
}

func upOrDown(up bool) EventKind {
	if up {
		return Up
	}
	return Down
}

func (w *watcher) remove(index int) []Event {
	before, known := w.known[index]
	if !known {
		return nil
	}
	delete(w.known, index)
	return []Event{{Kind: Removed, Name: before.Name, Index: index}}
}

// resync lists the interfaces and returns their differences from the known ones.
func (w *watcher) resync() ([]Event, error) {
	list, err := w.links.List()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []Event
	there := map[int]bool{}
	for _, l := range list {
		there[l.Attrs().Index] = true
	}
	for index := range w.known {
		if !there[index] {
			events = append(events, w.remove(index)...)
		}
	}
	for _, l := range list {
		events = append(events, w.apply(links.Of(l))...)
	}
	return events, nil
}
