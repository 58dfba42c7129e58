package twins

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// host is the bytecode of one twin, fed as a replay feeds it.
type host struct {
	spec     *ebpf.CollectionSpec
	loaded   *loader.Instance
	set      *maps.Set
	feed     *replay.Replayer
	seed     uint64
	coin     uint32
	ring     *maps.Ring                 // nil: everything for the control plane is in registers
	held     map[string][]uint64        // banked arrays as they were read last, until the window ends
	tables   map[string][]uint64        // constant ones
	messages func(sw *run.Switch) error // writes a coordinator's messages into a twin's tables; nil: there is none
	memory   map[string]*memory         // of arrays that are mapped
}

// hashSeed of the host is used where its hashes are not CRCs.
const hashSeed = 1

func openHost(t *twin.Twin, form twin.Form, coins uint64) (_ *host, err error) {
	d, err := algo.Lookup(t.Algorithm)
	if err != nil {
		return nil, err
	}
	v, err := t.Values(form)
	if err != nil {
		return nil, err
	}
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: hashSeed, Hash: algo.HashCRC}
	objects, instances, err := session.Objects(cfg, true)
	if err != nil {
		return nil, err
	}
	h := &host{spec: objects[0].Spec, seed: coins, held: map[string][]uint64{}, tables: map[string][]uint64{}, memory: map[string]*memory{}}
	mappable(h.spec)
	for i := range objects {
		objects[i].RecircShare = min(1, objects[i].RecircShare*everyPass)
	}
	if h.loaded, err = loader.Load(objects, loader.Options{Seed: hashSeed, CRC: true, Replay: true, Fixed: true}); err != nil {
		return nil, err
	}
	if h.set, err = h.loaded.Set(d.Name); err == nil {
		err = instances[0].Bind(h.set)
	}
	if err == nil && t.Messages != nil {
		h.messages, err = receive(t, v, instances[0])
	}
	if err == nil && t.Reports != nil {
		h.ring, err = h.openRing(t.Reports.Ring)
	}
	if err == nil {
		h.feed, err = replay.New(h.loaded, coins)
	}
	if err != nil {
		h.loaded.Close()
		return nil, err
	}
	h.coin = uint32(coins)*2654435761 | 1 // where loader.Replayer starts
	return h, nil
}

// receive passes a coordinator's messages to the host. The returned function passes them to the twin.
func receive(t *twin.Twin, v algo.Values, instance algo.Instance) (write func(sw *run.Switch) error, err error) {
	messages, write, err := t.Messages(v)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if err := instance.(algo.Messenger).Receive(m); err != nil {
			return nil, err
		}
	}
	return write, nil
}

// coordinate writes to a twin's tables what the host has received.
func (h *host) coordinate(sw *run.Switch) error {
	if h.messages == nil {
		return nil
	}
	return h.messages(sw)
}

func (h *host) openRing(name string) (*maps.Ring, error) {
	a, err := h.set.Array(name)
	if err != nil {
		return nil, err
	}
	return maps.NewRing(a.Map())
}

// everyPass lifts the budget of second passes, which the switch counts in another way.
const everyPass = 1e9

// give replays a frame and returns the packet's coins, and on request the vector after the programs, immediately.
func (h *host) give(f *packet.Frame, asked bool) (flip func() uint32, phv maps.PHV, err error) {
	h.coin += 0x9e3779b9
	if !asked {
		return coinsOf(h.coin), maps.PHV{}, h.feed.Feed(f)
	}
	phv, err = h.feed.Step(f)
	return coinsOf(h.coin), phv, err
}

// constant of the programs; 0 if there is none of that name.
func (h *host) constant(name string) uint64 {
	c := h.spec.Variables[name]
	if c == nil {
		return 0
	}
	b := make([]byte, 8)
	if err := c.Get(b[:c.Size()]); err != nil {
		return 0
	}
	return binary.NativeEndian.Uint64(b)
}

// coinsOf a packet are those of bpf/include/coin.h, which a replay seeds.
func coinsOf(seed uint32) func() uint32 {
	x := seed | 1
	return func() uint32 {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		return x * 0x9e3779b1
	}
}

// words of an array, both banks.
func (h *host) words(name string) ([]uint64, error) {
	a, err := h.set.Array(name)
	if err != nil {
		return nil, err
	}
	all, err := h.both(a)
	if err != nil {
		return nil, err
	}
	if a.Banks == 2 && len(all) == 2*a.Entries {
		h.held[name] = slices.Clone(all)
	}
	return all, nil
}

// both banks of an array.
func (h *host) both(a *maps.Array) (all []uint64, err error) {
	m, err := h.memoryOf(a)
	if err != nil {
		return nil, err
	}
	if m != nil {
		return m.words(), nil
	}
	for bank := range a.Banks {
		words, err := a.Read(bank, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, words...)
	}
	return all, nil
}

// records written to the ring since the last call.
func (h *host) records() (all [][]byte, err error) {
	if h.ring == nil {
		return nil, nil
	}
	err = h.ring.Drain(func(record []byte) { all = append(all, slices.Clone(record)) })
	return all, err
}

// fill a table.
func (h *host) fill(name string, v uint64) error {
	a, err := h.set.Array(name)
	if err != nil {
		return err
	}
	return h.write(name, 0, slices.Repeat([]uint64{v}, a.Entries)...)
}

// write elements, of the copies that the replay's core has.
func (h *host) write(name string, first int, words ...uint64) error {
	a, err := h.set.Array(name)
	if err != nil {
		return err
	}
	keys := make([]uint32, len(words))
	for i := range keys {
		keys[i] = uint32(first + i)
	}
	return h.put(a, keys, words)
}

// put words into elements, many in one system call.
func (h *host) put(a *maps.Array, keys []uint32, words []uint64) error {
	m, err := h.memoryOf(a)
	switch {
	case err != nil:
		return err
	case m != nil:
		m.put(keys, words)
		return nil
	case !a.PerCPU:
		return a.Put(keys, words)
	}
	cpu, err := core()
	if err != nil {
		return err
	}
	if !a.Alone() {
		for i, key := range keys {
			if err := a.PutCPU(cpu, key, 0, words[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if a.ElemSize == 4 {
		return putCopies[uint32](a, cpu, keys, words)
	}
	return putCopies[uint64](a, cpu, keys, words)
}

// putCopies writes one core's copies of elements, and zeros to the others'.
func putCopies[Word uint32 | uint64](a *maps.Array, cpu int, keys []uint32, words []uint64) error {
	copies := make([]Word, len(words)*maps.PossibleCPUs())
	for i, v := range words {
		copies[i*maps.PossibleCPUs()+cpu] = Word(v)
	}
	_, err := a.Map().BatchUpdate(keys, copies, nil)
	return err
}

// core that the replay runs on.
func core() (int, error) {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return 0, err
	}
	for cpu := range maps.PossibleCPUs() {
		if cores.IsSet(cpu) {
			return cpu, nil
		}
	}
	return 0, errors.New("no core is allowed")
}

// read one element.
func (h *host) read(name string, i int) (uint64, error) {
	a, err := h.set.Array(name)
	if err != nil {
		return 0, err
	}
	if a.PerCPU {
		cpu, err := core()
		if err != nil {
			return 0, err
		}
		return a.AtCPU(cpu, uint32(i))
	}
	m, err := h.memoryOf(a)
	if err != nil {
		return 0, err
	}
	if m != nil {
		return m.element(i), nil
	}
	return a.At(uint32(i))
}

// first elements of a shared array.
func (h *host) first(a *maps.Array, n int) ([]uint64, error) {
	all := make([]uint64, min(n, a.Entries))
	for i := range all {
		var err error
		if all[i], err = h.read(a.Name, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// entry of a table, which is read once.
func (h *host) entry(name string, i int) (uint64, error) {
	if h.tables[name] == nil {
		a, err := h.set.Array(name)
		if err != nil {
			return 0, err
		}
		words, err := a.Read(0, nil)
		if err != nil {
			return 0, err
		}
		h.tables[name] = words
	}
	return h.tables[name][i], nil
}

// get an element that is no word.
func (h *host) get(name string, i int, v any) error {
	a, err := h.set.Array(name)
	if err != nil {
		return err
	}
	return a.Map().Lookup(uint32(i), v)
}

// end of a window: new packets go to the other bank, and the closed one is set to zero.
func (h *host) end() (bank int, err error) {
	if bank, err = h.loaded.Control().Flip(); err != nil {
		return 0, err
	}
	for _, name := range h.set.Names() {
		a, err := h.set.Array(name)
		if err != nil {
			return 0, err
		}
		if a.Banks == 2 && a.Kind != "" {
			if err := h.clear(a, bank); err != nil {
				return 0, err
			}
		}
	}
	return bank, nil
}

// clear a closed bank, whose content words has just returned.
func (h *host) clear(a *maps.Array, bank int) error {
	words, ok := h.held[a.Name]
	if !ok {
		_, err := a.ReadReset(bank, nil)
		return err
	}
	delete(h.held, a.Name)
	var keys []uint32
	for i, v := range words[bank*a.Entries : (bank+1)*a.Entries] {
		if v != 0 {
			keys = append(keys, uint32(bank*a.Entries+i))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return h.put(a, keys, make([]uint64, len(keys)))
}

func (h *host) close() error {
	return errors.Join(h.unmap(), h.feed.Close(), h.loaded.Close())
}
