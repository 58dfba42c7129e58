package attach

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/qdisc"
)

// attachSent makes the chain see the packets that the interface begins to transmit. It comes before TC egress, which then carries.
func (at attacher) attachSent() (p Point, form chain.ChainCarryForm, err error) {
	p = Point{Hook: HookSent, Direction: Egress, Via: "tp_btf"}
	tree, err := qdisc.Of(at.dev.Name, at.dev.Index)
	if err != nil {
		return p, 0, err
	}
	cookie, err := netnsCookie()
	if err != nil {
		return p, 0, fmt.Errorf("tell the network namespace of %s: %w", at.dev.Name, err)
	}
	if err := at.opts.step("attach sent"); err != nil {
		return p, 0, err
	}
	reader, err := qdisc.Open()
	if err != nil {
		return p, 0, err
	}
	l3, _ := L3Only(at.dev.HWType)
	port, err := at.src.Watch(loader.QueueInterface{
		Netns: cookie, IfIndex: at.dev.Index, Queues: max(1, at.dev.TxQueues), L3Only: l3, Form: tree.Form,
		Backlog: func() (uint64, error) { return reader.Backlog(at.dev.Index) },
	})
	if err != nil {
		reader.Close()
		return p, 0, fmt.Errorf("%s: %w", at.dev.Name, err)
	}
	p.Hold = portHold{port, reader}
	at.say("%s: the queue (%s) leaves %s", at.dev.Name, tree, formText[tree.Form])
	return p, tree.Form, nil
}

var formText = map[chain.ChainCarryForm]string{
	chain.ChainCarryFormCARRY_WORDS: "room for a time and a flow hash in each packet",
	chain.ChainCarryFormCARRY_TICK: "room for a time in ticks of 1,024 ns in each packet: flow hashes are calculated twice, and a delay of more than 4.29 s " +
		"is too short by that",
}

// netnsCookie is the number that no other network namespace of this host has had.
func netnsCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// portHold is an interface in the table of those that are watched.
type portHold struct {
	*loader.Port
	reader *qdisc.Reader
}

var errNoPin = errors.New("what is at the start of transmission ends with its process")

func (h portHold) Release() error {
	err := h.Port.Release()
	h.reader.Close()
	return err
}

func (h portHold) Replace(*ebpf.Program) error              { return errNoPin }
func (h portHold) Leave() error                             { return h.Release() }
func (h portHold) Keep(string, string, *ebpf.Program) error { return errNoPin }
