package fridge

import (
	"os"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/coverage"
	"github.com/xdpmon/xdpmon/tests/bytecode"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/capture"
)

// covered are the sizes whose intervals are tried, from far too small to far too large.
var covered = []string{"256@1", "256@1/8", "1024@1/2", "4096@1", "4096@1/32", "16384@1", "256@1/2,256@1/64"}

// cells of the coverage: captures under every matching rule, and models with repetitions, bursts of delays and few samples.
func cells(p *eval.Page) []coverage.Cell {
	list := models()
	folder := os.Getenv("XDPMON_TRACES")
	if folder == "" {
		p.Text("Without captures: XDPMON_TRACES does not say where they are.")
		return list
	}
	for _, part := range eval.Pick(p, coverage.Parts(folder), nil) {
		for _, rule := range []string{"tcp-handshake", "tcp-data", "tcp-timestamp", "dns"} {
			list = append(list, coverage.Cell{Name: part.Name, Configs: sized(rule), Open: part.Open})
		}
	}
	return list
}

func sized(rule string) []coverage.Config {
	var list []coverage.Config
	for _, size := range covered {
		set := map[string]string{"fridges": size, "match": rule}
		list = append(list, coverage.Config{Name: rule + " " + size, Config: bytecode.Config{Algorithm: "fridge", Set: set}})
	}
	return append(list, coverage.Config{Name: rule + " array 1024",
		Config: bytecode.Config{Algorithm: "rtt-array", Set: map[string]string{"entries": "1024", "match": rule}}})
}

// models whose traffic differs from seed to seed.
func models() []coverage.Cell {
	of := func(o traffic.InsistentOptions) func(seed uint64) (capture.Source, error) {
		return func(seed uint64) (capture.Source, error) {
			o.Seed = seed
			return traffic.Frames(traffic.NewInsistent(o)), nil
		}
	}
	const gap, slow = 100 * time.Microsecond, 100 * time.Millisecond
	return []coverage.Cell{
		{Name: "few", Configs: sized("tcp-handshake"), Open: of(traffic.InsistentOptions{Requests: 40, Gap: gap, Delay: slow})},
		{Name: "repeats", Configs: sized("tcp-handshake"),
			Open: of(traffic.InsistentOptions{Requests: 4000, Gap: gap, Delay: slow, Share: 0.5, Times: 3, Pause: slow / 2})},
		{Name: "bursts", Configs: sized("tcp-handshake"), Open: of(traffic.InsistentOptions{Requests: 20_000, Gap: gap, Delay: slow / 4, Bursts: true})},
	}
}
