package attach

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/bpf/trace"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/namespace"
	"github.com/xdpmon/xdpmon/loader/qdisc"
)

// attachSent attaches the chain to the start of transmission of an interface. It runs before TC egress is attached, which writes the words
// that it reads.
func (at attacher) attachSent() (p Point, form chain.ChainCarryForm, err error) {
	p = Point{Hook: HookSent, Direction: Egress, Via: "tp_btf"}
	tree, err := qdisc.Of(at.dev.Name, at.dev.Index)
	if err != nil {
		return p, 0, err
	}
	cookie, err := namespace.Cookie()
	if err != nil {
		return p, 0, fmt.Errorf("find the network namespace of %s: %w", at.dev.Name, err)
	}
	if err := at.opts.step("attach sent"); err != nil {
		return p, 0, err
	}
	reader, err := qdisc.Open()
	if err != nil {
		return p, 0, err
	}
	l3, _ := L3Only(at.dev.HWType)
	p.Since = time.Now()
	port, err := at.src.Watch(loader.QueueInterface{
		Netns: cookie, IfIndex: at.dev.Index, Queues: max(1, at.dev.TxQueues), L3Only: l3, Form: tree.Form,
		Backlog: func() (uint64, error) { return reader.Backlog(at.dev.Index) },
	})
	if err != nil {
		reader.Close()
		return p, 0, fmt.Errorf("%s: %w", at.dev.Name, err)
	}
	p.Hold = portHold{port, reader}
	at.notify("%s: the queueing discipline (%s) leaves %s", at.dev.Name, tree, formText[tree.Form])
	return p, tree.Form, nil
}

var formText = map[chain.ChainCarryForm]string{
	chain.ChainCarryFormCARRY_WORDS: "room for a time and a flow hash in each packet",
	chain.ChainCarryFormCARRY_TICK: "room for a time in ticks of 1,024 ns in each packet: flow hashes are calculated twice, and a delay of more than 4.29 s " +
		"is too short by that",
}

// portHold is an entry in the table of watched interfaces.
type portHold struct {
	*loader.Port
	reader *qdisc.Reader
}

var errNoPin = errors.New("programs at the start of transmission end with their process")

func (h portHold) Release() error {
	err := h.Port.Release()
	h.reader.Close()
	return err
}

func (h portHold) Replace(*ebpf.Program) error              { return errNoPin }
func (h portHold) Leave() error                             { return h.Release() }
func (h portHold) Keep(string, string, *ebpf.Program) error { return errNoPin }

// Watched are the trace-point programs that watch an interface's queue, of any process.
func Watched(d *Device) []Occupant {
	cookie, err := namespace.Cookie()
	if err != nil {
		return nil
	}
	var found []Occupant
	err = EachWatcher(func(o Occupant, keys []trace.TraceTraceKey) {
		if slices.Contains(keys, trace.TraceTraceKey{Netns: cookie, Ifindex: uint32(d.Index)}) {
			found = append(found, o)
		}
	})
	if err != nil {
		return nil
	}
	return found
}

// EachWatcher calls fn with every program of ours at the start of transmission and the interfaces that it watches.
func EachWatcher(fn func(o Occupant, keys []trace.TraceTraceKey)) error {
	return EachLink(func(_ link.Link, info *link.Info) bool {
		if info.Type != link.RawTracepointType && info.Type != link.TracingType {
			return true
		}
		table, err := watchedBy(info.Program)
		if err != nil {
			return true // another owner's, or removed since
		}
		defer table.Close()
		o := Occupant{Hook: HookSent, Direction: Egress, Via: "tp_btf", Program: info.Program, Link: info.ID, Ours: true}
		o.Identify()
		o.Ours = true
		fn(o, keysOf(table))
		return true
	})
}

var errNotOurs = errors.New("not a program of ours at the start of transmission")

// watchedBy opens the table of a program of ours at the start of transmission.
func watchedBy(id ebpf.ProgramID) (*ebpf.Map, error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil || info.Name != "chain_tp_entry" || !IsOurs(info) {
		return nil, errNotOurs
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		if MapName(id) == "trace_watched" {
			return ebpf.NewMapFromID(id)
		}
	}
	return nil, errNotOurs
}

func keysOf(table *ebpf.Map) (keys []trace.TraceTraceKey) {
	var key trace.TraceTraceKey
	var value trace.TraceTraceInterface
	for all := table.Iterate(); all.Next(&key, &value); {
		keys = append(keys, key)
	}
	return keys
}

// unwatch ends the watching of an interface of this namespace; the watching process detects that.
func (o Occupant) unwatch(ifindex int) error {
	cookie, err := namespace.Cookie()
	if err != nil {
		return err
	}
	table, err := watchedBy(o.Program)
	if err != nil {
		return err
	}
	defer table.Close()
	err = table.Delete(trace.TraceTraceKey{Netns: cookie, Ifindex: uint32(ifindex)})
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Watches reports whether a watcher's key is an interface of the calling thread's namespace.
func Watches(key trace.TraceTraceKey) bool {
	cookie, err := namespace.Cookie()
	return err == nil && key.Netns == cookie
}
