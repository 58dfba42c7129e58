// Package drops counts the packets that the kernel drops on interfaces, by the kernel's own reasons: at the trace point kfree_skb, whatever
// dropped them (a socket's buffer, a queue, a filter, a checksum). What a device drops before the kernel has it is not among them.
package drops

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/bpf/constant"
	program "github.com/xdpmon/xdpmon/bpf/drops"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/namespace"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/loader/privilege"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// reasons is the number of counted reasons; the last one is that of all subsystems with numbers of their own.
const reasons = int(program.DropsDropsLimitDROPS_LIMIT_REASONS)

// Subsystem names the drops whose reason is that of a subsystem (mac80211, Open vSwitch).
const Subsystem = "SUBSYSTEM"

// ErrFull is returned for an interface beyond those that a counter was opened for.
var ErrFull = errors.New("too many interfaces")

// Count is what was dropped for one reason.
type Count struct {
	Reason  string // as the kernel names it, without its prefix: NO_SOCKET
	Packets uint64 // segments of aggregates
	Bytes   uint64 // as long as the packets were where they were dropped
}

// Counter counts drops on the interfaces that it watches. It ends with Close, or with its process.
type Counter struct {
	mu      sync.Mutex
	coll    *ebpf.Collection
	link    link.Link
	words   [2]*xmaps.Array // packets and bytes
	read    [2][]uint64
	rows    map[program.DropsDropsKey]uint32
	free    []uint32
	names   []string // of reasons
	sockets bool
}

// Open loads and attaches the program, with room for a number of interfaces.
func Open(interfaces int) (*Counter, error) {
	c := &Counter{rows: map[program.DropsDropsKey]uint32{}}
	for row := interfaces; row > 0; row-- {
		c.free = append(c.free, uint32(row))
	}
	if err := c.open(uint32(interfaces)); err != nil {
		return nil, errors.Join(fmt.Errorf("count the kernel's drops: %w", err), c.Close())
	}
	return c, nil
}

func (c *Counter) open(interfaces uint32) error {
	types, err := kernelTypes()
	if err != nil {
		return err
	}
	if c.names, err = namesOf(types); err != nil {
		return err
	}
	arguments, err := argumentsOf(types)
	if err != nil {
		return err
	}
	spec, err := program.LoadDrops()
	if err != nil {
		return fmt.Errorf("read object: %w", err)
	}
	if c.sockets = arguments > 3; c.sockets {
		err = xmaps.SetConstants(spec, map[constant.Name]any{constant.DropsSocket: uint8(1)})
	}
	for _, name := range []string{"drops_packets", "drops_bytes"} {
		err = errors.Join(err, xmaps.SetEntries(spec, name, (interfaces+1)*uint32(reasons)))
	}
	if err = errors.Join(err, xmaps.SetEntries(spec, "drops_watched", max(1, interfaces))); err != nil {
		return err
	}
	if _, err := pisa.Prove(spec); err != nil {
		return fmt.Errorf("prove memory rules: %w", err)
	}
	if c.coll, err = ebpf.NewCollection(spec); err != nil {
		return loader.Explain("drops", err)
	}
	set := xmaps.NewSet(spec, c.coll.Maps)
	for i, name := range []string{"drops_packets", "drops_bytes"} {
		if c.words[i], err = set.Array(name); err != nil {
			return err
		}
	}
	c.link, err = link.AttachTracing(link.TracingOptions{Program: c.coll.Programs["xdpmon_drops"]})
	return privilege.Explain(err)
}

// Watch counts an interface of the calling thread's network namespace from now on.
func (c *Counter) Watch(ifindex int) error {
	key, err := keyOf(ifindex)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.rows[key]; ok {
		return nil
	}
	if len(c.free) == 0 {
		return fmt.Errorf("count the kernel's drops: %w: %d are watched", ErrFull, len(c.rows))
	}
	row := c.free[len(c.free)-1]
	if err := c.coll.Maps["drops_watched"].Update(key, row, ebpf.UpdateNoExist); err != nil {
		return fmt.Errorf("count the kernel's drops: %w", privilege.Explain(err))
	}
	c.free, c.rows[key] = c.free[:len(c.free)-1], row
	return nil
}

// Unwatch ends the counting of an interface, and forgets its counts.
func (c *Counter) Unwatch(ifindex int) error {
	key, err := keyOf(ifindex)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	row, ok := c.rows[key]
	if !ok {
		return nil
	}
	if err := c.coll.Maps["drops_watched"].Delete(key); err != nil {
		return fmt.Errorf("end the count of the kernel's drops: %w", err)
	}
	delete(c.rows, key)
	c.free = append(c.free, row)
	return c.clear(row)
}

// clear sets the counts of a row to zero.
func (c *Counter) clear(row uint32) error {
	keys := make([]uint32, reasons)
	for i := range keys {
		keys[i] = row*uint32(reasons) + uint32(i)
	}
	return errors.Join(c.words[0].Put(keys, make([]uint64, reasons)), c.words[1].Put(keys, make([]uint64, reasons)))
}

func keyOf(ifindex int) (key program.DropsDropsKey, err error) {
	cookie, err := namespace.Cookie()
	if err != nil {
		return key, fmt.Errorf("find the network namespace: %w", err)
	}
	return program.DropsDropsKey{Netns: cookie, Ifindex: uint32(ifindex)}, nil
}

// Read returns what was dropped on the watched interfaces since they are watched, by index, and on interface 0 what was dropped anywhere on the host without
// a known interface. Only reasons that occurred are listed.
func (c *Counter) Read() (map[int][]Count, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, a := range c.words {
		var err error
		if c.read[i], err = a.Read(0, c.read[i]); err != nil {
			return nil, fmt.Errorf("count the kernel's drops: %w", err)
		}
	}
	found := map[int][]Count{0: c.row(0)}
	for _, key := range slices.SortedFunc(maps.Keys(c.rows), func(a, b program.DropsDropsKey) int { return int(a.Ifindex) - int(b.Ifindex) }) {
		found[int(key.Ifindex)] = c.row(c.rows[key])
	}
	return found, nil
}

func (c *Counter) row(row uint32) (list []Count) {
	first := int(row) * reasons
	for i := range reasons {
		if n := c.read[0][first+i]; n > 0 {
			list = append(list, Count{c.names[i], n, c.read[1][first+i]})
		}
	}
	return list
}

// Sockets reports whether drops by sockets are counted on the interface where the packet arrived (Linux 6.11 and later). On an older kernel they have no
// known interface.
func (c *Counter) Sockets() bool { return c.sockets }

// Close detaches the program.
func (c *Counter) Close() (err error) {
	if c.link != nil {
		err = c.link.Close()
	}
	if c.coll != nil {
		c.coll.Close()
	}
	return err
}
