package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/detach"
	"github.com/xdpmon/xdpmon/loader/links"
	"github.com/xdpmon/xdpmon/loader/status"
	lab "github.com/xdpmon/xdpmon/tests/isolated"
)

// expect waits for the next event.
func expect(t *testing.T, events <-chan Event, want string) {
	t.Helper()
	select {
	case e := <-events:
		if e.String() != want {
			t.Fatalf("got %q, want %q", e, want)
		}
	case <-time.After(lab.Patience):
		t.Fatalf("no event, want %q", want)
	}
}

func TestWatchReportsChanges(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	lab.Sh(t, "ip link add %s type veth peer name xdpmon-b0", lab.Near)
	events, _, err := watch(ctx, []string{lab.Near, "xdpmon-c0"})
	lab.NoError(t, err)
	lab.Sh(t, "ip link set %s up", lab.Near)
	expect(t, events, "interface xdpmon-a0 is up")
	lab.Sh(t, "ip link set %s down", lab.Near)
	expect(t, events, "interface xdpmon-a0 is down")
	lab.Sh(t, "ip link set %s name xdpmon-z0", lab.Near)
	expect(t, events, "interface xdpmon-a0 was renamed to xdpmon-z0")
	lab.Sh(t, "ip link del xdpmon-z0")
	expect(t, events, "interface xdpmon-z0 was removed")
	lab.Sh(t, "ip link add xdpmon-other type veth peer name xdpmon-c0")
	expect(t, events, "interface xdpmon-c0 has appeared")
	cancel()
	if e, open := <-events; open {
		t.Errorf("unexpected event: %s", e)
	}
}

// After lost messages the watcher lists the interfaces and finds what it missed.
func TestWatchFindsWhatItMissed(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Sh(t, "ip link add %s type veth peer name xdpmon-b0", lab.Near)
	w := &watcher{wanted: []string{lab.Near, "xdpmon-b0"}, known: map[int]links.Change{}}
	lab.NoError(t, w.open())
	defer w.close()
	lab.Sh(t, "ip link set %s up", lab.Near)
	lab.Sh(t, "ip link del xdpmon-b0")
	lab.Sh(t, "ip link add %s type bridge", lab.Near)
	events, err := w.resync()
	lab.NoError(t, err)
	var got []string
	for _, e := range events {
		got = append(got, e.String())
	}
	slices.Sort(got)
	want := []string{"interface xdpmon-a0 has appeared", "interface xdpmon-a0 was removed", "interface xdpmon-b0 was removed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func manage(t *testing.T, inst *loader.Instance, reattach bool) (*Manager, *lab.Journal) {
	t.Helper()
	j := lab.NewJournal()
	m := NewManager(inst, Options{Reattach: reattach, Changed: j.Changed, Attach: attach.Options{Notice: j.Notice}})
	m.poll = 50 * time.Millisecond
	t.Cleanup(func() { lab.NoError(t, m.Close()) })
	return m, j
}

func TestInterfaceIsCreatedAgain(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Quiet(t)
	lab.Sh(t, "ip link add xdpmon-k0 type bridge")
	inst := lab.LoadChain(t)
	m, j := manage(t, inst, true)
	lab.NoError(t, m.Attach(lab.Near, "xdpmon-k0"))
	lab.NoError(t, m.Start(context.Background()))
	lab.SendFromPeer(t, 5)
	lab.Sh(t, "ip link del %s", lab.Near)
	j.Wait(t, lab.Near+" false")
	if got := m.Attachments(); len(got) != 1 || got[0].Interface != "xdpmon-k0" {
		t.Errorf("the other interface should still be attached: %v", got)
	}
	lab.AddVeth(t)
	j.Wait(t, lab.Near+" true")
	lab.Quiet(t)
	lab.SendFromPeer(t, 6)
	if got := lab.SeenBy(t, inst); got != 11 {
		t.Errorf("%d packets counted, want 11", got)
	}
	for _, want := range []string{"interface xdpmon-a0 was removed: the attachment of xdpmon-a0 has ended", "attached to it again"} {
		if !strings.Contains(j.Text(), want) {
			t.Errorf("no notice %q:\n%s", want, j.Text())
		}
	}
}

func TestRenamedInterfaceIsMeasuredOn(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Quiet(t)
	inst := lab.LoadChain(t)
	m, j := manage(t, inst, true)
	lab.NoError(t, m.Attach(lab.Near))
	lab.NoError(t, m.Start(context.Background()))
	lab.Sh(t, "ip link set %s down", lab.Near)
	lab.Sh(t, "ip link set %s name xdpmon-z0", lab.Near)
	lab.Sh(t, "ip link set xdpmon-z0 up")
	lab.Sh(t, "ip neigh add %s lladdr 02:00:00:00:00:0b dev xdpmon-z0 nud permanent", lab.FarIP)
	lab.SendFromPeer(t, 4)
	if got := lab.SeenBy(t, inst); got != 4 {
		t.Errorf("%d packets counted under the new name, want 4", got)
	}
	lab.Sh(t, "ip link del xdpmon-z0")
	j.Wait(t, lab.Near+" false")
	if !strings.Contains(j.Text(), "renamed to xdpmon-z0; measuring continues") {
		t.Error(j.Text())
	}
}

func TestWithoutReattachItStaysEnded(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	m, j := manage(t, lab.LoadChain(t), false)
	lab.NoError(t, m.Attach(lab.Near))
	lab.NoError(t, m.Start(context.Background()))
	lab.Sh(t, "ip link del %s", lab.Near)
	j.Wait(t, lab.Near+" false")
	lab.AddVeth(t)
	time.Sleep(200 * time.Millisecond)
	lab.NothingLeft(t, lab.Near)
}

// Another process runs `xdpmon detach`: the manager detects and reports it.
func TestDetachEndsARunningAttachment(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	m, j := manage(t, lab.LoadChain(t), true)
	lab.NoError(t, m.Attach(lab.Near))
	lab.NoError(t, m.Start(context.Background()))
	status := statusHere(t)
	if len(status) != 1 || !slices.Contains(status[0].PIDs, os.Getpid()) || status[0].Interface != lab.Near {
		t.Errorf("status: %+v", status)
	}
	removed, err := detach.Detach(lab.Near)
	lab.NoError(t, err)
	t.Log(removed)
	j.Wait(t, lab.Near+" false")
	if !strings.Contains(j.Text(), "detached by another command") {
		t.Error(j.Text())
	}
	if status := statusHere(t); len(status) != 0 {
		t.Errorf("after detach: %+v", status)
	}
}

// One of several interfaces does not exist: the others are not left attached.
func TestManagerAttachesAllOrNone(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	m, _ := manage(t, lab.LoadChain(t), false)
	if err := m.Attach(lab.Near, "xdpmon-none"); !errors.Is(err, attach.ErrNoInterface) {
		t.Errorf("got %v", err)
	}
	lab.NothingLeft(t, lab.Near)
	if err := m.Attach(lab.Near, lab.Near); !errors.Is(err, attach.ErrUsage) {
		t.Errorf("got %v", err)
	}
	lab.NothingLeft(t, lab.Near)
}

// A start that fails, here without descriptors, ends like any other: Close returns and nothing stays attached.
func TestFailedStartCanBeClosed(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	inst := lab.LoadChain(t)
	failures := 0
	for free := 0; ; free++ {
		m := NewManager(inst, Options{})
		lab.NoError(t, m.Attach(lab.Near))
		err := lab.WithFreeDescriptors(t, free, func() error { return m.Start(t.Context()) })
		closeSoon(t, m)
		lab.NothingLeft(t, lab.Near)
		if err == nil {
			break
		}
		failures++
	}
	if failures < 3 {
		t.Errorf("a start failed %d times while it was given more and more descriptors", failures)
	}
}

func closeSoon(t *testing.T, m *Manager) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- m.Close() }()
	select {
	case err := <-closed:
		lab.NoError(t, err)
	case <-time.After(lab.Patience):
		t.Fatal("Close does not return")
	}
}

// The manager's own goroutine attaches in the namespace that the manager was made in, not in that of its thread.
func TestManagerWorksInItsNamespace(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	inst := lab.LoadChain(t)
	j := lab.NewJournal()
	var m *Manager
	lab.InPeer(t, func() error {
		m = NewManager(inst, Options{Reattach: true, Changed: j.Changed, Attach: attach.Options{Notice: j.Notice}})
		if err := m.Attach(lab.Far); err != nil {
			return err
		}
		return m.Start(context.Background())
	})
	defer func() { lab.NoError(t, m.Close()) }()
	lab.Sh(t, "ip link del %s", lab.Near)
	j.Wait(t, lab.Far+" false")
	lab.AddVeth(t)
	j.Wait(t, lab.Far+" true")
	lab.InPeer(t, func() error {
		if _, err := netlink.LinkByName(lab.Far); err != nil {
			return err
		}
		d, err := attach.Inspect(lab.Far)
		if err == nil && len(attach.Occupants(d)) != 1 {
			err = fmt.Errorf("%d programs on %s", len(attach.Occupants(d)), lab.Far)
		}
		return err
	})
}

func TestWatcherStates(t *testing.T) {
	w := &watcher{wanted: []string{"a", "b"}, known: map[int]links.Change{}}
	steps := []struct {
		state links.Change
		want  []EventKind
	}{
		{links.Change{Index: 1, Name: "x", Up: true}, nil},
		{links.Change{Index: 1, Name: "a", Up: true}, []EventKind{Appeared}}, // renamed into place, as udev does
		{links.Change{Index: 1, Name: "a", Up: true}, nil},
		{links.Change{Index: 1, Name: "y", Up: false}, []EventKind{Renamed, Down}},
		{links.Change{Index: 1, Name: "y", Up: true}, []EventKind{Up}},
		{links.Change{Index: 2, Name: "a", Up: false}, []EventKind{Appeared}},
	}
	for i, s := range steps {
		var got []EventKind
		for _, e := range w.apply(s.state) {
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

// statusHere is Status without the attachments of other tests on this machine in their namespaces.
func statusHere(t *testing.T) []status.Attachment {
	t.Helper()
	info, err := status.List()
	lab.NoError(t, err)
	return slices.DeleteFunc(info, func(a status.Attachment) bool {
		return a.Interface == "" && a.Pin == "" && !slices.Contains(a.PIDs, os.Getpid())
	})
}

func TestMain(m *testing.M) { lab.Main(m) }
