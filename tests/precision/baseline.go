package precision

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/cocosketch"
	"github.com/xdpmon/xdpmon/bpf/hashpipe"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
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

// Precision makes a contender of the algorithm's own configuration.
func Precision(set map[string]string) (*Contender, error) {
	d, err := algo.Lookup(prec.Name)
	if err != nil {
		return nil, err
	}
	with := map[string]string{"family": "4"}
	for k, v := range set {
		with[k] = v
	}
	values, err := algo.NewValues(d.Name, d.Params, with)
	if err != nil {
		return nil, err
	}
	instance, err := d.New(values, algo.Env{Replay: true, CPUs: maps.PossibleCPUs()})
	if err != nil {
		return nil, err
	}
	spec, err := d.Spec()
	if err != nil {
		return nil, err
	}
	if err := instance.Configure(spec); err != nil {
		return nil, err
	}
	ways := instance.(interface{ Ways() *heavy.Ways }).Ways()
	return &Contender{Name: "precision", Scale: 1, Rules: true, Delay: instance.(algo.Delayed).RecirculationDelay(),
		Object: loader.Object{Name: d.Name, Spec: spec, RecircShare: instance.(algo.Recirculating).RecirculationShare()},
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

// HashPipe with so many ways and entries in all; a remainder is not used. arrivals adds the reading of estimates.
func HashPipe(ways, entries int, arrivals bool) (*Contender, error) {
	spec, err := hashpipe.LoadHashpipe()
	if err != nil {
		return nil, err
	}
	if err := maps.SetConstant(spec, "hashpipe_arrivals", arrivals); err != nil {
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

// Run replays a stream through a contender alone. With arrivals it runs packet by packet and compares every flow's estimate
// with its true count so far: a flow without an entry is estimated as 0.
func Run(c *Contender, stream *Stream, seed uint64, arrivals bool) (*Outcome, error) {
	inst, err := loader.Load([]loader.Object{c.Object}, loader.Options{Replay: true, Seed: seed, Unproven: !c.Rules, RecircDelay: c.Delay})
	if err != nil {
		return nil, err
	}
	defer inst.Close()
	replay, err := inst.NewReplayer(seed)
	if err != nil {
		return nil, err
	}
	defer replay.Close()
	out := &Outcome{}
	if out.MSE, err = feed(replay, stream, c.Scale, arrivals); err != nil {
		return nil, err
	}
	set, err := inst.Set(c.Object.Name)
	if err != nil {
		return nil, err
	}
	if c.Object.RecircShare > 0 {
		if out.Recirculated, err = inst.Recirculations(c.Object.Name); err != nil {
			return nil, err
		}
	}
	out.Counts, err = c.Read(set, inst.Control().Bank())
	return out, err
}

func feed(replay *loader.Replayer, stream *Stream, scale float64, arrivals bool) (mse float64, err error) {
	source, f := traffic.Frames(stream.Model()), packet.Frame{}
	counts, sum := make([]float64, len(stream.Keys)), 0.0
	for n := 0; ; n++ {
		if err := source.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, err
		}
		if !arrivals {
			if err := replay.Feed(&f); err != nil {
				return 0, err
			}
			continue
		}
		vector, err := replay.Step(&f)
		if err != nil {
			return 0, err
		}
		rank := stream.Order[n]
		counts[rank]++
		off := float64(vector.Carry[1])/scale - counts[rank]
		sum += off * off
	}
	return sum / float64(len(stream.Order)), replay.Flush()
}
