package loader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// expect waits for the next event.
func expect(t *testing.T, events <-chan Event, want string) {
	t.Helper()
	select {
	case e := <-events:
		if e.String() != want {
			t.Fatalf("got %q, want %q", e, want)
		}
	case <-time.After(patience):
		t.Fatalf("no event, want %q", want)
	}
}

func TestWatchTellsWhatHappens(t *testing.T) {
	if !isolated(t) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	sh(t, "ip link add %s type veth peer name xdpmon-b0", near)
	events, err := Watch(ctx, []string{near, "xdpmon-c0"})
	noError(t, err)
	sh(t, "ip link set %s up", near)
	expect(t, events, "interface xdpmon-a0 went up")
	sh(t, "ip link set %s down", near)
	expect(t, events, "interface xdpmon-a0 went down")
	sh(t, "ip link set %s name xdpmon-z0", near)
	expect(t, events, "interface xdpmon-a0 was renamed to xdpmon-z0")
	sh(t, "ip link del xdpmon-z0")
	expect(t, events, "interface xdpmon-z0 has gone")
	sh(t, "ip link add xdpmon-other type veth peer name xdpmon-c0")
	expect(t, events, "interface xdpmon-c0 has appeared")
	cancel()
	if e, open := <-events; open {
		t.Errorf("an event nobody asked for: %s", e)
	}
}

// After lost messages the watcher lists the interfaces and finds what it missed.
func TestWatchFindsWhatItMissed(t *testing.T) {
	if !isolated(t) {
		return
	}
	sh(t, "ip link add %s type veth peer name xdpmon-b0", near)
	w := &watcher{wanted: []string{near, "xdpmon-b0"}, known: map[int]linkState{}}
	noError(t, w.open())
	defer w.close()
	sh(t, "ip link set %s up", near)
	sh(t, "ip link del xdpmon-b0")
	sh(t, "ip link add %s type bridge", near)
	events, err := w.resync()
	noError(t, err)
	var got []string
	for _, e := range events {
		got = append(got, e.String())
	}
	slices.Sort(got)
	want := []string{"interface xdpmon-a0 has appeared", "interface xdpmon-a0 has gone", "interface xdpmon-b0 has gone"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// journal collects what a manager says and does.
type journal struct {
	mu    sync.Mutex
	lines []string
	moved chan string
}

func newJournal() *journal { return &journal{moved: make(chan string, 16)} }

func (j *journal) notice(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) changed(iface string, attached bool) {
	j.moved <- fmt.Sprintf("%s %t", iface, attached)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

func (j *journal) wait(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-j.moved:
		if got != want {
			t.Fatalf("got %q, want %q; said\n%s", got, want, j.text())
		}
	case <-time.After(patience):
		t.Fatalf("nothing happened, want %q; said\n%s", want, j.text())
	}
}

func manage(t *testing.T, inst *Instance, reattach bool) (*Manager, *journal) {
	t.Helper()
	j := newJournal()
	m := NewManager(inst, ManagerOptions{Reattach: reattach, Changed: j.changed, Attach: AttachOptions{Notice: j.notice}})
	m.poll = 50 * time.Millisecond
	t.Cleanup(func() { noError(t, m.Close()) })
	return m, j
}

func TestInterfaceGoesAndComesBack(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	quiet(t)
	sh(t, "ip link add xdpmon-k0 type bridge")
	inst := loadChain(t)
	m, j := manage(t, inst, true)
	noError(t, m.Attach(near, "xdpmon-k0"))
	noError(t, m.Start(context.Background()))
	sendFromPeer(t, 5)
	sh(t, "ip link del %s", near)
	j.wait(t, near+" false")
	if got := m.Attachments(); len(got) != 1 || got[0].Interface != "xdpmon-k0" {
		t.Errorf("the other interface should still be attached: %v", got)
	}
	addVeth(t)
	j.wait(t, near+" true")
	quiet(t)
	sendFromPeer(t, 6)
	if got := seenBy(t, inst); got != 11 {
		t.Errorf("%d packets counted, want 11", got)
	}
	for _, want := range []string{"interface xdpmon-a0 has gone: the attachment of xdpmon-a0 has ended", "attached to it again"} {
		if !strings.Contains(j.text(), want) {
			t.Errorf("did not say %q:\n%s", want, j.text())
		}
	}
}

func TestRenamedInterfaceIsMeasuredOn(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	quiet(t)
	inst := loadChain(t)
	m, j := manage(t, inst, true)
	noError(t, m.Attach(near))
	noError(t, m.Start(context.Background()))
	sh(t, "ip link set %s down", near)
	sh(t, "ip link set %s name xdpmon-z0", near)
	sh(t, "ip link set xdpmon-z0 up")
	sh(t, "ip neigh add %s lladdr 02:00:00:00:00:0b dev xdpmon-z0 nud permanent", farIP)
	sendFromPeer(t, 4)
	if got := seenBy(t, inst); got != 4 {
		t.Errorf("%d packets counted under the new name, want 4", got)
	}
	sh(t, "ip link del xdpmon-z0")
	j.wait(t, near+" false")
	if !strings.Contains(j.text(), "renamed to xdpmon-z0; measuring goes on") {
		t.Error(j.text())
	}
}

func TestWithoutReattachItStaysEnded(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	m, j := manage(t, loadChain(t), false)
	noError(t, m.Attach(near))
	noError(t, m.Start(context.Background()))
	sh(t, "ip link del %s", near)
	j.wait(t, near+" false")
	addVeth(t)
	time.Sleep(200 * time.Millisecond)
	nothingLeft(t, near)
}

// Another process runs `xdpmon detach`: the manager notices and says so.
func TestDetachEndsARunningAttachment(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	m, j := manage(t, loadChain(t), true)
	noError(t, m.Attach(near))
	noError(t, m.Start(context.Background()))
	status := ownStatus(t)
	if len(status) != 1 || !slices.Contains(status[0].PIDs, os.Getpid()) || status[0].Interface != near {
		t.Errorf("status: %+v", status)
	}
	removed, err := Detach(near)
	noError(t, err)
	t.Log(removed)
	j.wait(t, near+" false")
	if !strings.Contains(j.text(), "detached by another command") {
		t.Error(j.text())
	}
	if status := ownStatus(t); len(status) != 0 {
		t.Errorf("after detach: %+v", status)
	}
}

// One of several interfaces does not exist: the others are not left attached.
func TestManagerAttachesAllOrNone(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	m, _ := manage(t, loadChain(t), false)
	if err := m.Attach(near, "xdpmon-none"); !errors.Is(err, ErrNoInterface) {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, near)
	if err := m.Attach(near, near); !errors.Is(err, ErrUsage) {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, near)
}

// A start that fails, here for want of descriptors, ends like any other: Close returns and nothing stays.
func TestFailedStartCanBeClosed(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	inst := loadChain(t)
	failures := 0
	for free := 0; ; free++ {
		m := NewManager(inst, ManagerOptions{})
		noError(t, m.Attach(near))
		err := withFreeDescriptors(t, free, func() error { return m.Start(t.Context()) })
		closeSoon(t, m)
		nothingLeft(t, near)
		if err == nil {
			break
		}
		failures++
	}
	if failures < 3 {
		t.Errorf("a start failed %d times while it was given more and more descriptors", failures)
	}
}

// withFreeDescriptors runs fn while at most n more descriptors can be opened.
func withFreeDescriptors(t *testing.T, n int, fn func() error) error {
	t.Helper()
	var before unix.Rlimit
	noError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	next, err := unix.Dup(0) // the lowest number that is free
	noError(t, err)
	noError(t, unix.Close(next))
	noError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next + n), Max: before.Max}))
	err = fn()
	noError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	return err
}

func closeSoon(t *testing.T, m *Manager) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- m.Close() }()
	select {
	case err := <-closed:
		noError(t, err)
	case <-time.After(patience):
		t.Fatal("Close does not return")
	}
}

// The manager's own goroutine attaches in the namespace that the manager was made in, not in that of its thread.
func TestManagerWorksInItsNamespace(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	inst := loadChain(t)
	j := newJournal()
	var m *Manager
	inPeer(t, func() error {
		m = NewManager(inst, ManagerOptions{Reattach: true, Changed: j.changed, Attach: AttachOptions{Notice: j.notice}})
		if err := m.Attach(far); err != nil {
			return err
		}
		return m.Start(context.Background())
	})
	defer func() { noError(t, m.Close()) }()
	sh(t, "ip link del %s", near)
	j.wait(t, far+" false")
	addVeth(t)
	j.wait(t, far+" true")
	inPeer(t, func() error {
		if _, err := netlink.LinkByName(far); err != nil {
			return err
		}
		d, err := inspect(far)
		if err == nil && len(occupants(d)) != 1 {
			err = fmt.Errorf("%d programs on %s", len(occupants(d)), far)
		}
		return err
	})
}

func TestWatcherStates(t *testing.T) {
	w := &watcher{wanted: []string{"a", "b"}, known: map[int]linkState{}}
	steps := []struct {
		index int
		state linkState
		want  []EventKind
	}{
		{1, linkState{"x", true}, nil},
		{1, linkState{"a", true}, []EventKind{Appeared}}, // renamed into place, as udev does
		{1, linkState{"a", true}, nil},
		{1, linkState{"y", false}, []EventKind{Renamed, WentDown}},
		{1, linkState{"y", true}, []EventKind{CameUp}},
		{2, linkState{"a", false}, []EventKind{Appeared}},
	}
	for i, s := range steps {
		var got []EventKind
		for _, e := range w.apply(s.index, s.state) {
			got = append(got, e.Kind)
		}
		if !slices.Equal(got, s.want) {
			t.Errorf("step %d: got %v, want %v", i, got, s.want)
		}
	}
	if got := w.remove(1); len(got) != 1 || got[0].Name != "y" {
		t.Errorf("got %v", got)
	}
	if got := w.remove(1); got != nil {
		t.Errorf("removed twice: %v", got)
	}
}
