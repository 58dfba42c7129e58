package session

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Interfaces of one kind share the program that was proven and loaded for the first of them, are added in one change and removed in one.
func TestManyInterfaces(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	const many = 60
	names, indexes := addLinks(t, network.A, many)
	l := newLedger()
	s := open(t, network.A, l, "stays")
	began := time.Now()
	target := session.Target{Algorithms: selected(t, 0, "stays"), Interfaces: append(names, network.A.Interface)}
	if err := s.Apply(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d interfaces attached to in %v", many, time.Since(began).Round(time.Millisecond))
	programs := map[ebpf.ProgramID]bool{}
	for _, index := range indexes {
		programs[programOn(t, network.A, index)] = true
	}
	if len(programs) != 1 || programs[0] {
		t.Errorf("%d interfaces have %d different programs: %v", many, len(programs), programs)
	}
	target.Interfaces = []string{network.A.Interface}
	if err := s.Apply(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	for _, index := range indexes {
		if id := programOn(t, network.A, index); id != 0 {
			t.Errorf("program %d is still on interface %d", id, index)
		}
	}
}

func addLinks(t *testing.T, host *netns.Host, n int) (names []string, indexes []int) {
	t.Helper()
	handle, err := host.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	for i := range n {
		name := fmt.Sprintf("xdpmon-d%d", i)
		if err := handle.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: fmt.Sprintf("xdpmon-e%d", i)}); err != nil {
			t.Fatal(err)
		}
		l, err := handle.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := handle.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
		names, indexes = append(names, name), append(indexes, l.Attrs().Index)
	}
	return names, indexes
}

// programOn is the TCX egress program of an interface; 0 for none.
func programOn(t *testing.T, host *netns.Host, index int) (id ebpf.ProgramID) {
	t.Helper()
	err := host.Run(func() error {
		r, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXEgress})
		if err == nil && len(r.Programs) > 0 {
			id = r.Programs[0].ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// With a session per interface no window mixes two, all windows together contain every packet, and all end when one run ends.
func TestEach(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	l := newLedger()
	var attached []*attach.Attachment
	ctx, cancel := context.WithCancel(t.Context())
	cfg := session.LiveConfig{Config: session.Config{Algorithms: selected(t, 0, "stays"), Window: 100 * time.Millisecond, Emit: l.emit,
		Notice: func(format string, args ...any) { t.Logf(format, args...) }},
		Interfaces: []string{network.A.Interface, "lo"}, Each: true, Hook: "tc", Direction: "egress",
		Started: func(a []*attach.Attachment) {
			attached = a
			go func() {
				defer cancel()
				send(t, network.A, "127.0.0.1")
				send(t, network.A, "127.0.0.1")
				send(t, network.A, network.B.IPv4.String())
			}()
		}}
	if err := network.A.Run(func() error { return session.Live(ctx, cfg) }); err != nil {
		t.Fatal(err)
	}
	used := map[string]uint64{}
	for _, line := range l.lines {
		used[line.Interface()] += line.Packets.Used
	}
	if len(attached) != 2 || used["lo"] != 2 || used[network.A.Interface] != 1 || len(used) != 2 {
		t.Errorf("%d attached, counted %v", len(attached), used)
	}
	cfg.Interfaces = []string{network.A.Interface, "xdpmon-none"}
	if err := network.A.Run(func() error { return session.Live(t.Context(), cfg) }); err == nil {
		t.Error("an interface that does not exist was taken")
	}
	if id := programOn(t, network.A, network.A.Index); id != 0 {
		t.Errorf("program %d is left on the interface that could be attached to", id)
	}
}
