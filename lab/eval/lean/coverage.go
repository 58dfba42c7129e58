package lean

import (
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
)

// cells are traffic on which every error that is printed is held against the truth.
func cells(*eval.Page) []coverage.Cell {
	list := models()
	if folder := traceFolder(); folder != "" {
		for _, part := range coverage.Parts(folder) {
			list = append(list, coverage.Cell{Name: part.Name, Configs: sized(nil, "40kB", "5kB"), Open: part.Open})
		}
	}
	return list
}

// models: a quiet link, where tables and sketches hold everything; a crowded one; one on which delays are those of a LAN; repeated and
// bursty losses.
func models() []coverage.Cell {
	usual := traffic.LeanOptions{Packets: 60_000, Flows: 3_000, Heavy: 100, Victims: 20, Span: 12 * time.Second,
		Delay: 50 * time.Millisecond, Loss: 0.04, Late: 0.04, Again: 0.02}
	crowded, repaired, mirrored, even := usual, usual, usual, usual
	even.Most, even.Victims = mostRate, 0
	crowded.Packets, crowded.Flows = 100_000, 10_000
	repaired.Repair, repaired.Loss = true, 0.1
	mirrored.Mirror = 0.1
	return []coverage.Cell{
		modelled("model", usual, sized(nil, "40kB", "5kB")),
		modelled("crowded model", crowded, sized(nil, "40kB", "5kB")),
		modelled("repaired losses", repaired, sized(nil, "40kB")),
		modelled("mirror", mirrored, sized(nil, "40kB")),
		modelled("by rate", even, sized(map[string]string{"by": "rate", "least": "50"}, "40kB", "5kB")),
		modelled("by rate, one in eight followed", even, sized(map[string]string{"by": "rate", "least": "50", "p": "1/8"}, "40kB")),
		modelled("one in eight followed", usual, sized(map[string]string{"p": "1/8"}, "40kB")),
	}
}

func modelled(name string, o traffic.LeanOptions, configs []coverage.Config) coverage.Cell {
	return coverage.Cell{Name: name, Configs: configs, Open: func(seed uint64) (capture.Source, error) {
		o := o
		o.Seed = seed
		m, err := traffic.NewLean(o)
		if err != nil {
			return nil, err
		}
		return traffic.Frames(m), nil
	}}
}

// sized are configurations that differ in memory.
func sized(set map[string]string, memories ...string) (list []coverage.Config) {
	for _, m := range memories {
		with := map[string]string{"memory": m}
		for key, value := range set {
			with[key] = value
		}
		list = append(list, coverage.Config{Name: m, Config: bytecode.Config{Algorithm: "lean", Set: with}})
	}
	return list
}
