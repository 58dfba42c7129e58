package fridge

import (
	"fmt"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// instance is one configured fridge.
type instance struct {
	estimator
	set   *maps.Set
	words map[string][]uint64 // buffers of the arrays that a window reads
}

func newInstance(v algo.Values, _ algo.Env) (algo.Instance, error) {
	c, err := newConfig(v)
	if err != nil {
		return nil, err
	}
	return &instance{estimator: estimator{config: c, rates: newRates(c.parts)}, words: map[string][]uint64{}}, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	set := func(name string, v any) error { return maps.SetConstant(spec, name, v) }
	size := func(name string, n uint32) error { return maps.SetEntries(spec, name, n) }
	return i.configure(set, size)
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return i.needs() }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) error {
	i.set = set
	if !i.table {
		return nil
	}
	weights, err := set.Array("fridge_weights")
	if err != nil {
		return err
	}
	return weights.Write(0, i.weightTable())
}

// read takes an array of the closed bank and sets it back to zero.
func (i *instance) read(name string, bank int) ([]uint64, error) {
	array, err := i.set.Array(name)
	if err != nil {
		return nil, err
	}
	words, err := array.ReadReset(bank, i.words[name])
	i.words[name] = words
	return words, err
}

// reading is what a window has counted.
type reading struct {
	counts                        counts
	first, second, sizes, lengths layer
	owners                        []uint64 // of the rows: keys of groups
	repeats                       []uint64 // [fridge][bin]: requests that found an earlier occurrence of themselves
}

func (i *instance) take(bank int) (r reading, err error) {
	get := func(name string) []uint64 {
		words, e := i.read(name, bank)
		if err == nil {
			err = e
		}
		return words
	}
	r.counts = get("fridge_counters")
	r.repeats = get("fridge_repeats")
	r.first = layer{words: get("fridge_hist"), scale: i.scale()}
	if i.table {
		r.first.hits = get("fridge_hits")
	}
	if i.rules.Finals {
		r.second = layer{words: get("fridge_second"), scale: i.scale()}
	}
	if i.volumes() {
		r.sizes = layer{words: get("fridge_sizes"), scale: i.counts()}
		r.lengths = layer{words: get("fridge_lengths"), scale: i.counts()}
	}
	if i.grouped() {
		r.owners = get("fridge_groups")
	}
	return r, err
}

// Window implements algo.Instance.
func (i *instance) Window(w report.Window, bank int) (algo.Result, error) {
	r, err := i.take(bank)
	if err != nil {
		return algo.Result{}, fmt.Errorf("read window: %w", err)
	}
	return i.report(w, r), nil
}

// report estimates from what a window has counted.
func (i *instance) report(w report.Window, r reading) algo.Result {
	i.rates.add(w.End-w.Start, r.counts.insertedBy())
	i.rates.repeat(r.repeats, r.counts.insertedBy(), r.counts.at(bpf.FridgeFridgeCounterFRIDGE_REPEATED), r.counts.at(bpf.FridgeFridgeCounterFRIDGE_MATCHED), i.gap())
	return algo.Result{Body: i.body(r), Used: r.counts.used(), Lost: r.counts.lost()}
}

// Oracle implements algo.Truthful.
func (i *instance) Oracle() algo.Oracle { return newOracle(i.config) }

// counts are the data plane's counters of a window, by enum fridge_counter.
type counts []uint64

func (c counts) at(n bpf.FridgeFridgeCounter) uint64 { return c[n] }

func (c counts) insertedBy() []uint64 {
	first := bpf.FridgeFridgeCounterFRIDGE_INSERTED_BY
	return c[first : first+maxFridges]
}

// used packets: those that ask, answer, end a handshake, or add to a flow.
func (c counts) used() uint64 {
	return c.at(bpf.FridgeFridgeCounterFRIDGE_REQUESTS) + c.at(bpf.FridgeFridgeCounterFRIDGE_RESPONSES) +
		c.at(bpf.FridgeFridgeCounterFRIDGE_FINALS) + c.at(bpf.FridgeFridgeCounterFRIDGE_UPDATES)
}

// lost is what could be lost.
func (c counts) lost() map[string]uint64 {
	return map[string]uint64{
		"evicted":         c.at(bpf.FridgeFridgeCounterFRIDGE_EVICTED),
		"too_long":        c.at(bpf.FridgeFridgeCounterFRIDGE_TOO_LONG),
		"torn":            c.at(bpf.FridgeFridgeCounterFRIDGE_TORN),
		"group_row_taken": c.at(bpf.FridgeFridgeCounterFRIDGE_GROUP_FULL),
	}
}
