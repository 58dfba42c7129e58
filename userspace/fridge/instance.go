package fridge

import (
	"fmt"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/fridge/samples"
	"github.com/xdpmon/xdpmon/userspace/fridge/tune"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// instance is one configured fridge.
type instance struct {
	*config
	head  snapshot.Head
	set   *maps.Set
	past  *past               // rates and repetitions of earlier windows, for the correction of later ones
	tuner tune.Chooser        // nil: the probabilities are fixed
	words map[string][]uint64 // read buffers, by array
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	i := &instance{config: c, head: env.Head, past: newPast(len(c.parts)), words: map[string][]uint64{}}
	if c.follows() {
		i.tuner = tune.New(c.slots)
	}
	if c.samples > 0 {
		form := c.sampling()
		form.WindowNS = env.Head.WindowNS
		return &sampler{instance: i, Stream: samples.NewStream(form)}, nil
	}
	return i, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	return i.configure(spec)
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return i.needs() }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) error {
	i.set = set
	if err := i.publish(); err != nil {
		return err
	}
	if !i.table {
		return nil
	}
	weights, err := set.Array("fridge_weights")
	if err != nil {
		return err
	}
	return weights.Write(0, i.weightTable())
}

// read returns an array of the closed bank and resets it to zero.
func (i *instance) read(name string, bank int) ([]uint64, error) {
	array, err := i.set.Array(name)
	if err != nil {
		return nil, err
	}
	words, err := array.ReadReset(bank, i.words[name])
	if i.words[name] = words; array.AtRest(bank) {
		delete(i.words, name)
	}
	return words, err
}

// reading holds the arrays of a window.
type reading struct {
	counts                        counts
	first, second, sizes, lengths layer
	owners                        []uint64 // of the rows: keys of groups
	shut                          []uint64 // [row]: zero windows
	repeats                       []uint64 // [fridge][bin]: requests that found an earlier occurrence of themselves
}

// arrays are the names of the arrays that are read for a window.
func (c *config) arrays() []string {
	names := []string{"fridge_counters", "fridge_repeats", "fridge_hist"}
	if c.table {
		names = append(names, "fridge_hits")
	}
	if c.rules.Finals {
		names = append(names, "fridge_second")
	}
	if c.volumes() {
		names = append(names, "fridge_sizes", "fridge_lengths")
	}
	if c.grouped() {
		names = append(names, "fridge_groups")
	}
	if c.shuts() && c.grouped() {
		names = append(names, shutWords)
	}
	if c.follows() {
		names = append(names, changeWords)
	}
	return names
}

// Read implements algo.Instance.
func (i *instance) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	s := snapshot.New(i.head, w)
	for _, name := range i.arrays() {
		words, err := i.read(name, bank)
		if err != nil {
			return nil, fmt.Errorf("read window: %w", err)
		}
		s.Words[name] = words
	}
	n := counts(s.Words["fridge_counters"])
	i.past.into(s, n.insertedBy())
	changed, err := i.retune(s)
	if err != nil {
		return nil, err
	}
	i.past.add(w.End-w.Start, n.insertedBy(), s.Words["fridge_repeats"])
	if changed {
		i.past.forget()
	}
	return s, nil
}

// readingOf a snapshot.
func (c *config) readingOf(r *snapshot.Reader) (n reading) {
	sizes := c.sizes()
	get := func(name string) []uint64 { return r.Words(name, sizes[name]) }
	n.counts = r.Words("fridge_counters", int(bpf.FridgeFridgeCounterFRIDGE_COUNTS))
	n.repeats = get("fridge_repeats")
	n.first = layer{words: get("fridge_hist"), scale: c.scale()}
	if c.table {
		n.first.hits = get("fridge_hits")
	}
	if c.rules.Finals {
		n.second = layer{words: get("fridge_second"), scale: c.scale()}
	}
	if c.volumes() {
		n.sizes = layer{words: get("fridge_sizes"), scale: c.counts()}
		n.lengths = layer{words: get("fridge_lengths"), scale: c.counts()}
	}
	if c.grouped() {
		n.owners = get("fridge_groups")
	}
	if c.shuts() && c.grouped() {
		n.shut = get(shutWords)
	}
	return n
}

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle { return newOracle(i.config) }

// counts are the data plane's counters of a window, by enum fridge_counter.
type counts []uint64

func (c counts) at(n bpf.FridgeFridgeCounter) uint64 { return c[n] }

func (c counts) insertedBy() []uint64 {
	first := bpf.FridgeFridgeCounterFRIDGE_INSERTED_BY
	return c[first : first+layout.Most]
}

// used counts the packets that the matching rule uses: requests, responses, ends of handshakes, and packets of followed flows.
func (c counts) used() uint64 {
	return c.at(bpf.FridgeFridgeCounterFRIDGE_REQUESTS) + c.at(bpf.FridgeFridgeCounterFRIDGE_RESPONSES) +
		c.at(bpf.FridgeFridgeCounterFRIDGE_FINALS) + c.at(bpf.FridgeFridgeCounterFRIDGE_UPDATES)
}

// lost are the losses of a window, by the names of algo.Result.Lost.
func (c counts) lost() map[string]uint64 {
	return map[string]uint64{
		"evicted":         c.at(bpf.FridgeFridgeCounterFRIDGE_EVICTED),
		"too_long":        c.at(bpf.FridgeFridgeCounterFRIDGE_TOO_LONG),
		"torn":            c.at(bpf.FridgeFridgeCounterFRIDGE_TORN),
		"group_row_taken": c.at(bpf.FridgeFridgeCounterFRIDGE_GROUP_FULL),
	}
}
