package precision

import "github.com/xdpmon/xdpmon/tests/precision"

// model of flows, with a seed.
type model struct {
	name, what string
	sizes      precision.Sizes
}

func (m model) seeded(seed uint64) precision.Sizes {
	s := m.sizes
	s.Seed = seed
	return s
}

// The models. The dissertation gives no figures for its traces but that CAIDA's is heavy-tailed and the others are skewed: the
// exponents are ours.
var (
	issueModel = model{"the issue's model", "the 128 largest flows have 25 % of the packets", precision.Issue(0)}
	// A heavier tail of the distribution of sizes: the largest flows are larger, and 54,000 share what is left.
	heavyModel = model{"heavy tail", "54,334 flows, sizes proportional to 1/rank^1.1, 400,000 packets: the 128 largest have 61 %",
		precision.Sizes{Flows: 54334, Packets: 400000, Skew: 1.1}}
	// More of the packets in small flows: the other thing that is called a heavy tail.
	massModel = model{"heavy mass", "150,000 flows, sizes proportional to 1/(rank + 5)^0.8, 400,000 packets: the 128 largest have 13 %",
		precision.Sizes{Flows: 150000, Packets: 400000, Offset: 5, Skew: .8}}

	caida = model{"CAIDA-like", "200,000 flows, 1/(rank + 5)^1.0, 1,000,000 packets", precision.Sizes{Flows: 200000, Packets: 1000000, Offset: 5, Skew: 1}}
	ucla  = model{"UCLA-like", "50,000 flows, 1/(rank + 2)^1.2, 1,000,000 packets", precision.Sizes{Flows: 50000, Packets: 1000000, Offset: 2, Skew: 1.2}}
	uwisc = model{"UWISC-DC-like", "10,000 flows, 1/(rank + 1)^1.4, 1,000,000 packets", precision.Sizes{Flows: 10000, Packets: 1000000, Offset: 1, Skew: 1.4}}
)
