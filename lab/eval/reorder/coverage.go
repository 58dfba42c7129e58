package reorder

import (
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
)

// cells are traffic on which every bound that is printed is held against the truth: the model of section 4.1 in small, and
// captures.
func cells(*eval.Page) []coverage.Cell {
	list := []coverage.Cell{modelled()}
	if dir := folder(); dir != "" {
		for _, part := range coverage.Parts(dir) {
			list = append(list, coverage.Cell{Name: part.Name, Configs: configurations(), Open: part.Open})
		}
	}
	return list
}

func modelled() coverage.Cell {
	return coverage.Cell{Name: "model", Configs: configurations(), Open: func(seed uint64) (capture.Source, error) {
		m, err := traffic.NewReorder(traffic.ReorderOptions{Packets: 40_000, Flows: 2_700, Prefixes: 140, Span: 500 * time.Millisecond, Seed: seed})
		if err != nil {
			return nil, err
		}
		return traffic.Frames(m), nil
	}}
}

// configurations are in one order: the algorithms of a chain draw their coins after each other.
func configurations() (list []coverage.Config) {
	for _, c := range []struct {
		name string
		set  map[string]string
	}{
		{"1,024 buckets", map[string]string{"report": "all"}}, {"32 buckets", map[string]string{"buckets": "32", "report": "all"}},
		{"definition 2", map[string]string{"definition": "2", "report": "all"}}, {"definition 3", map[string]string{"definition": "3", "report": "all"}},
		{"hybrid", map[string]string{"method": "hybrid", "report": "all"}},
		{"one flow a bucket", map[string]string{"buckets": "32768", "prefix": "32", "report": "all", "T": "4m"}}, {"report=reorder", nil},
	} {
		list = append(list, coverage.Config{Name: c.name, Config: bytecode.Config{Algorithm: "reorder", Set: c.set}})
	}
	return list
}
