package precision

import (
	"os"
	"path/filepath"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
)

// Cells are what the intervals of precision and hhh are judged on; captures only where their folder is not "".
func Cells(captures string) []coverage.Cell {
	list := modelCells()
	if captures != "" {
		list = append(list, captured(captures)...)
	}
	return alone(list)
}

// modelCells are traffic without a capture.
func modelCells() []coverage.Cell {
	return []coverage.Cell{
		modelled("heavy-tailed", func(seed uint64) precision.Sizes {
			return precision.Sizes{Flows: 27167, Packets: 50000, Offset: 5, Skew: 0.9, Seed: seed, Scattered: true}
		}),
		modelled("flat", func(seed uint64) precision.Sizes {
			return precision.Sizes{Flows: 14000, Packets: 40000, Offset: 5, Skew: 0.5, Drawn: true, Seed: seed, Scattered: true}
		}),
		modelled("quiet", func(seed uint64) precision.Sizes {
			return precision.Sizes{Flows: 1500, Packets: 9000, Offset: 5, Skew: 0.9, Drawn: true, Seed: seed, Scattered: true}
		}),
		modelled("few packets", func(seed uint64) precision.Sizes {
			return precision.Sizes{Flows: 200, Packets: 400, Offset: 1, Skew: 0.8, Drawn: true, Seed: seed, Scattered: true}
		}),
		{Name: "bursts", Open: trains},
	}
}

// alone gives every configuration a cell of its own: a packet passes twice for one algorithm of a chain only, and what others
// are refused for it would be missing in their counts.
func alone(cells []coverage.Cell) (list []coverage.Cell) {
	for _, c := range cells {
		for _, one := range configs() {
			c.Configs = []coverage.Config{one}
			list = append(list, c)
		}
	}
	return list
}

func captured(captures string) (list []coverage.Cell) {
	for _, part := range coverage.Parts(captures) {
		list = append(list, coverage.Cell{Name: part.Name, Open: part.Open})
	}
	return list
}

func modelled(name string, sizes func(seed uint64) precision.Sizes) coverage.Cell {
	return coverage.Cell{Name: name, Open: func(seed uint64) (capture.Source, error) {
		return traffic.Frames(sizes(seed).New().Model()), nil
	}}
}

// trains are flows that send in bursts.
func trains(seed uint64) (capture.Source, error) {
	z, err := traffic.NewZipf(traffic.ZipfOptions{Packets: 30000, Flows: 5000, Skew: 1, Train: 12, Seed: seed})
	if err != nil {
		return nil, err
	}
	return traffic.Frames(z), nil
}

func configs() []coverage.Config {
	with := func(name, algorithm string, set map[string]string) coverage.Config {
		return coverage.Config{Name: name, Config: bytecode.Config{Algorithm: algorithm, Set: set}}
	}
	return []coverage.Config{
		with("precision", "precision", map[string]string{"top": "64"}),
		with("precision, 256 entries", "precision", map[string]string{"top": "64", "entries": "256"}),
		with("precision, initial 100", "precision", map[string]string{"top": "64", "entries": "1024", "initial": "100"}),
		with("precision, bytes", "precision", map[string]string{"top": "64", "entries": "512", "count": "bytes"}),
		with("precision, exact, sources", "precision", map[string]string{"top": "64", "entries": "256", "admission": "exact", "key": "src"}),
		with("hhh", "hhh", nil),
		with("hhh, 512 entries", "hhh", map[string]string{"entries": "512", "initial": "10"}),
		with("hhh, stacking", "hhh", map[string]string{"method": "stacking", "entries": "1536"}),
		with("hhh, both addresses", "hhh", map[string]string{"dimension": "both", "initial": "1", "threshold": "1/20"}),
	}
}

func coverageCells(*eval.Page) []coverage.Cell { return Cells(captureFolder()) }

func captureFolder() string {
	if dir := os.Getenv("XDPMON_TRACES"); dir != "" {
		return dir
	}
	return filepath.Join("..", "shared", "traces")
}
