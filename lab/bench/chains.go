package bench

import (
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// GroupChains are algorithms that share one packet: to be compared with the sum of what each adds to parser, chain and clock.
const GroupChains = "chains, with parser, chain and clock"

// six are what a sidecar measures at the same time, with the parameters that docs/bench.md states.
var six = []struct {
	name string
	set  map[string]string
}{
	{"fridge", map[string]string{"fridges": "65536@1"}},
	{"precision", nil},
	{"hhh", nil},
	{"reorder", nil},
	{"beaucoup", nil},
	{"lean", map[string]string{"stat": "latency,loss,ooo,retrans"}},
}

// chained are empty slots, each of the six with these parameters, pairs of neighbours, growing prefixes of the six, the six the other way round, and
// all that there are.
func chained() (list []Subject, err error) {
	var one []Subject
	for _, c := range six {
		s, err := Configured(c.name, c.set)
		if err != nil {
			return nil, err
		}
		one = append(one, s)
		s.Name, s.Group, s.What = "alone_"+c.name, GroupChains, c.name+" as the chains below have it"
		list = append(list, s)
	}
	for n := 2; n <= len(one); n++ {
		list = append(list, together(fmt.Sprintf("chain_%d", n), one[:n]))
	}
	for n := 1; n+1 < len(one); n++ {
		list = append(list, together(fmt.Sprintf("pair_%s_%s", one[n].Name, one[n+1].Name), one[n:n+2]))
	}
	var turned []Subject
	for _, s := range one {
		turned = append([]Subject{s}, turned...)
	}
	list = append(list, together("chain_6_turned", turned))
	var all []Subject
	for _, d := range algo.All() {
		s, err := Configured(d.Name, nil)
		if err != nil {
			return nil, err
		}
		if !d.Enforces {
			all = append(all, s)
		}
	}
	for _, d := range algo.All() { // what enforces runs after all that measure
		if d.Enforces {
			s, err := Configured(d.Name, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	list = append(list, together("chain_all", all))
	for _, n := range []int{4, 6, 8, 16} {
		var empty []Subject
		for range n {
			empty = append(empty, yardstick("nothing", GroupChains, ""))
		}
		s := together(fmt.Sprintf("slots_%d", n), empty)
		s.What = fmt.Sprintf("%d slots with an empty algorithm", n)
		list = append(list, s)
	}
	return append(list, byTurns()), nil
}

// byTurns is four slots whose windows have two lengths by turns, so that three programs select banks (bpf/window): to be compared with slots_4.
func byTurns() Subject {
	var empty []Subject
	for n := range 4 {
		s := yardstick("nothing", GroupChains, "")
		prepare := s.prepare
		s.prepare = func() (loader.Object, algo.Instance, error) {
			o, i, err := prepare()
			o.Group = n % 2
			return o, i, err
		}
		empty = append(empty, s)
	}
	s := together("slots_4_windows", empty)
	s.What = "4 slots with an empty algorithm, whose windows have two lengths by turns"
	return s
}

// together is a chain of subjects in this order.
func together(name string, of []Subject) Subject {
	var names []string
	for _, s := range of {
		names = append(names, s.Name)
	}
	s := of[0]
	s.Name, s.Group, s.What, s.object, s.rest = name, GroupChains, strings.Join(names, ", "), of[0].Name, of[1:]
	return s
}
