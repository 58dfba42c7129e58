package precision

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/precision/cocosketch"
	"github.com/xdpmon/xdpmon/tests/precision/hashpipe"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	prec "github.com/xdpmon/xdpmon/userspace/precision"
)

// Contender is an algorithm that can be run over a stream: its program, and how estimates are read.
type Contender struct {
	Name   string
	Object loader.Object
	// Read returns the estimates of all flows that are remembered.
	Read func(set *maps.Set, bank int) (map[heavy.Key]float64, error)
	// Scale divides what the program leaves in the vector as a flow's estimate on arrival.
	Scale float64
	Delay int
	Rules bool // it keeps the memory rules
}

// Outcome of a run.
type Outcome struct {
	Counts       map[heavy.Key]float64 // estimates at the end
	MSE          float64               // on arrival (equation 3.1), only of Arrivals
	Recirculated loader.Recirculations
}

// configured is an algorithm with values, ready to be loaded.
func configured(name string, set map[string]string) (o loader.Object, instance algo.Instance, err error) {
	d, err := algo.Lookup(name)
	if err != nil {
		return o, nil, err
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return o, nil, err
	}
	if instance, err = d.New(values, algo.Env{Setup: algo.Setup{Replay: true}}); err != nil {
		return o, nil, err
	}
	spec, err := d.Spec()
	if err == nil {
		err = instance.Configure(spec)
	}
	return loader.Object{Name: d.Name, Spec: spec, RecircShare: instance.(algo.Recirculator).RecirculationShare()}, instance, err
}

// Precision makes a contender of the algorithm's own configuration.
func Precision(set map[string]string) (*Contender, error) {
	with := map[string]string{"family": "4"}
	for k, v := range set {
		with[k] = v
	}
	object, instance, err := configured(prec.Name, with)
	if err != nil {
		return nil, err
	}
	ways := instance.(interface{ Ways() *heavy.Ways }).Ways()
	return &Contender{Name: "precision", Scale: 1, Rules: true, Delay: instance.(algo.RecirculationDelayer).RecirculationDelay(),
		Object: object,
		Read: func(set *maps.Set, bank int) (map[heavy.Key]float64, error) {
			if err := ways.Bind(set); err != nil {
				return nil, err
			}
			t, err := ways.Read(bank)
			if err != nil {
				return nil, err
			}
			return t.Counts, nil
		}}, nil
}

// HashPipe with so many ways and entries in all; a remainder is not used. estimate is the number of ways that are asked for a
// flow's estimate on arrival: all, as a control plane that adds up its entries would, or 1, which is what a packet sees.
func HashPipe(ways, entries, estimate int) (*Contender, error) {
	spec, err := hashpipe.LoadHashpipe()
	if err != nil {
		return nil, err
	}
	if err := maps.SetConstant(spec, "hashpipe_estimate", uint32(estimate)); err != nil {
		return nil, err
	}
	return baseline("hashpipe", spec, ways, entries, 6, 1)
}

// CocoSketch with so many ways and entries in all.
func CocoSketch(ways, entries int) (*Contender, error) {
	spec, err := cocosketch.LoadCocosketch()
	if err != nil {
		return nil, err
	}
	c, err := baseline("cocosketch", spec, ways, entries, 4, float64(ways))
	if err == nil {
		c.Rules = true
	}
	return c, err
}

func baseline(name string, spec *ebpf.CollectionSpec, ways, entries, most int, scale float64) (*Contender, error) {
	constants := map[string]any{"key_family": uint32(heavy.IPv4), "key_words": uint32(2), "key_fields": uint32(Spec.Fields),
		name + "_ways": uint32(ways), name + "_entries": uint32(entries / ways)}
	for constant, v := range constants {
		if err := maps.SetConstant(spec, constant, v); err != nil {
			return nil, err
		}
	}
	for i := range most {
		n := uint32(1)
		if i < ways {
			n = uint32(entries / ways)
		}
		for _, part := range []string{"a", "b", "c"} {
			if err := maps.SetEntries(spec, fmt.Sprintf("%s_%s%d", name, part, i), n); err != nil {
				return nil, err
			}
		}
	}
	return &Contender{Name: name, Object: loader.Object{Name: name, Spec: spec}, Scale: scale,
		Read: func(set *maps.Set, bank int) (map[heavy.Key]float64, error) {
			return readBaseline(set, bank, name, ways, scale)
		}}, nil
}

func readBaseline(set *maps.Set, bank int, name string, ways int, scale float64) (map[heavy.Key]float64, error) {
	counts := map[heavy.Key]float64{}
	for i := range ways {
		var words [3][]uint64
		for n, part := range []string{"a", "b", "c"} {
			array, err := set.Array(fmt.Sprintf("%s_%s%d", name, part, i))
			if err != nil {
				return nil, err
			}
			copies, err := array.ReadPerCPU(bank)
			if err != nil {
				return nil, err
			}
			words[n] = make([]uint64, array.Entries)
			for _, c := range copies { // a replay runs on one core
				for e, w := range c {
					words[n][e] += w
				}
			}
		}
		for e := range words[0] {
			if words[2][e] != 0 {
				counts[heavy.Key{words[0][e], words[1][e]}] += float64(words[2][e]) / scale
			}
		}
	}
	return counts, nil
}
