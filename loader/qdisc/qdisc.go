// Package qdisc reads the queueing disciplines of an interface: the bytes of a packet's control block that they do not use, and their backlog.
package qdisc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader/kernel"
)

// ErrNothingFree is wrapped when a queueing discipline uses all of the control block, or its use is unknown.
var ErrNothingFree = errors.New("no free bytes in the packet's control block")

// private are the bytes at the start of a packet's 20 that kinds of queueing disciplines write, by the kernel's sources (net/sched,
// include/net: the structures *_skb_cb), from Linux 6.1 to 6.18, whichever is most. Those that hold no packets themselves are among them.
var private = map[string]int{
	"noqueue": 0, "pfifo": 0, "bfifo": 0, "pfifo_fast": 0, "pfifo_head_drop": 0, "mq": 0, "mqprio": 0, "multiq": 0, "prio": 0, "htb": 0, "hfsc": 0,
	"drr": 0, "ets": 0, "qfq": 0, "tbf": 0, "red": 0, "gred": 0, "skbprio": 0, "cbs": 0, "etf": 0, "taprio": 0, "plug": 0, "sfq": 0, "hhf": 0,
	"netem": 8, "codel": 8, "fq_codel": 8, "sfb": 8,
	"fq": 16, "cake": 16, "cake_mq": 16, "pie": 16, "fq_pie": 16, "dualpi2": 16,
	"choke":  20,
	"clsact": 0, "ingress": 0,
}

const (
	block = 20 // bytes (QDISC_CB_PRIV_LEN)
	words = 12 // of CARRY_WORDS
	tick  = 4  // of CARRY_TICK
)

// Tree is the set of queueing disciplines of an interface.
type Tree struct {
	Kinds []string // sorted, each once
	Form  chain.ChainCarryForm
}

func (t Tree) String() string { return strings.Join(t.Kinds, ", ") }

// Of reads the queueing disciplines of an interface of the calling thread's network namespace, classes' and transmit queues' own included.
func Of(name string, ifindex int) (Tree, error) {
	list, err := netlink.QdiscList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: ifindex}})
	if err != nil {
		return Tree{}, fmt.Errorf("read the queueing disciplines of %s: %w", name, err)
	}
	var t Tree
	for _, q := range list {
		if kind := q.Type(); !slices.Contains(t.Kinds, kind) {
			t.Kinds = append(t.Kinds, kind)
		}
	}
	slices.Sort(t.Kinds)
	t.Form, err = form(t.Kinds)
	if err != nil {
		return t, fmt.Errorf("queue of %s: %w", name, err)
	}
	return t, nil
}

// form is the largest form of words that fits after the private bytes of all kinds.
func form(kinds []string) (chain.ChainCarryForm, error) {
	used := 0
	for _, kind := range kinds {
		bytes, known := private[kind]
		switch {
		case !known:
			return 0, fmt.Errorf("%w: %w: it is not known what the queueing discipline %s writes there; use another (`tc qdisc replace`), or measure "+
				"with a tap", kernel.ErrUnsupported, ErrNothingFree, kind)
		case bytes+tick > block:
			return 0, fmt.Errorf("%w: %w: the queueing discipline %s uses all of it; use another (`tc qdisc replace`), or measure with a tap",
				kernel.ErrUnsupported, ErrNothingFree, kind)
		}
		used = max(used, bytes)
	}
	if used+words <= block {
		return chain.ChainCarryFormCARRY_WORDS, nil
	}
	return chain.ChainCarryFormCARRY_TICK, nil
}

// timed are the kinds that send no packet before its time of departure (skb->tstamp, CLOCK_MONOTONIC), by the kernel's sources.
var timed = []string{"fq"}

// Untimed are the kinds of an interface's queueing disciplines that hold packets and send them before their time of departure.
func Untimed(name string, ifindex int) ([]string, error) {
	list, err := netlink.QdiscList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: ifindex}})
	if err != nil {
		return nil, fmt.Errorf("read the queueing disciplines of %s: %w", name, err)
	}
	return untimed(list), nil
}

func untimed(list []netlink.Qdisc) (kinds []string) {
	for _, q := range list {
		kind := q.Type()
		if kind == "clsact" || kind == "ingress" || slices.Contains(timed, kind) || slices.Contains(kinds, kind) || hands(q, list) {
			continue
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// hands reports whether a queueing discipline hands its packets to others of the list. mq has no handle unless it was given one.
func hands(q netlink.Qdisc, list []netlink.Qdisc) bool {
	major := func(handle uint32) uint32 { return handle >> 16 }
	own := major(q.Attrs().Handle)
	if own == 0 && q.Type() != "mq" {
		return false
	}
	return slices.ContainsFunc(list, func(o netlink.Qdisc) bool {
		parent := o.Attrs().Parent
		return o.Attrs().Handle != q.Attrs().Handle && parent != netlink.HANDLE_ROOT && major(parent) == own || own == 0 && parent != netlink.HANDLE_ROOT && major(parent) == 0
	})
}

// Reader reads queues of the network namespace that it was opened in, from any thread.
type Reader struct{ handle *netlink.Handle }

// Open makes a Reader of the calling thread's namespace.
func Open() (*Reader, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return &Reader{h}, nil
}

// Close releases the namespace.
func (r *Reader) Close() { r.handle.Close() }

// Backlog is the number of bytes in the queue of an interface.
func (r *Reader) Backlog(ifindex int) (uint64, error) {
	list, err := r.handle.QdiscList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: ifindex}})
	if err != nil {
		return 0, fmt.Errorf("read the backlog of interface %d: %w", ifindex, err)
	}
	var bytes uint64
	for _, q := range list {
		if a := q.Attrs(); a.Parent == netlink.HANDLE_ROOT && a.Statistics != nil && a.Statistics.Queue != nil {
			bytes += uint64(a.Statistics.Queue.Backlog)
		}
	}
	return bytes, nil
}
