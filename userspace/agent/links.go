package agent

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/links"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Link is an interface.
type Link struct {
	Index int
	Name  string
	Kind  string // one of config.Kinds
	// Namespace is the ID, in this network namespace, of the namespace of a veth's other end; -1 if it has none.
	Namespace int
	Guest     report.Guest // the guest that it belongs to, if known
}

// kinds maps the kernel's link types to config.Kinds, where they differ.
var kinds = map[string]string{"ip6tnl": "ipip", "sit": "ipip", "ip6gre": "gre", "gretap": "gre", "ip6gretap": "gre"}

func kindOf(l netlink.Link) string {
	a := l.Attrs()
	switch t := l.(type) {
	case *netlink.Tuntap:
		if t.Mode == netlink.TUNTAP_MODE_TAP {
			return "tap"
		}
		return "tun"
	case *netlink.Device:
		if a.RawFlags&unix.IFF_LOOPBACK != 0 {
			return "loopback"
		}
		return "physical"
	}
	kind := l.Type()
	if other := kinds[kind]; other != "" {
		kind = other
	}
	if !slices.Contains(config.Kinds, kind) {
		return "other"
	}
	return kind
}

// fits reports whether a rule matches an interface.
func fits(r config.Instance, l Link) bool {
	any := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, l.Name); return ok })
	}
	return (len(r.Interfaces) == 0 || any(r.Interfaces)) && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, l.Kind)) && !any(r.Exclude)
}

// watcher signals changes of interfaces, and lists them. Missed events do not matter, because the list is complete.
type watcher struct {
	links   *links.Reader
	changed chan struct{}
}

// settle is how long changes are collected: creating an interface causes several events.
const settle = 50 * time.Millisecond

func watch(ctx context.Context) (*watcher, error) {
	r, err := links.Open()
	if err != nil {
		return nil, err
	}
	w := &watcher{links: r, changed: make(chan struct{}, 1)}
	go w.run(ctx)
	return w, nil
}

func (w *watcher) run(ctx context.Context) {
	defer w.links.Close()
	for {
		_, missed, err := w.links.Next(ctx)
		if err != nil {
			return
		}
		if missed {
			time.Sleep(settle) // an overflow of events: the list will include the changes
		}
		signal(w.changed)
	}
}

// list returns all interfaces, by index.
func (w *watcher) list() ([]Link, error) {
	found, err := w.links.List()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	all := make([]Link, 0, len(found))
	for _, l := range found {
		a := l.Attrs()
		all = append(all, Link{Index: a.Index, Name: a.Name, Kind: kindOf(l), Namespace: a.NetNsID})
	}
	slices.SortFunc(all, func(a, b Link) int { return a.Index - b.Index })
	return all, err
}
