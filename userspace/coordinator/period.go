package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// stream is one sequence of answers: an algorithm of a measurement, of one set of hosts.
type stream struct {
	measurement, set, algorithm string
}

func (s stream) compare(o stream) int {
	return cmp.Or(cmp.Compare(s.measurement, o.measurement), cmp.Compare(s.set, o.set), cmp.Compare(s.algorithm, o.algorithm))
}

// name is the stream's in windows and metrics, beside the algorithm's.
func (s stream) name() string {
	if s.set == "" {
		return s.measurement
	}
	return s.measurement + "/" + s.set
}

// period is one window of a stream while it comes together.
type period struct {
	ranks   []*snapshot.Snapshot // ranks[n] is of 2^n windows, or nil: merging costs the logarithm of the hosts, and not their number
	hosts   map[string]*share
	parts   int
	open    []opened
	skewed  int
	cut     int
	unknown int // windows of hosts whose clock is not known
	unfit   int // windows that could not be merged
	flows   sightings
}

// opened is a batch that a window of this period came with.
type opened struct {
	agent       *agent
	batch       *batch
	incarnation uint64
}

// share is what a host has brought.
type share struct {
	spans map[string][][2]int64 // by instance, on the coordinator's clock
	until int64
}

func newPeriod() *period { return &period{hosts: map[string]*share{}, flows: sightings{}} }

// overlaps reports whether an instance's window is there already.
func (p *period) overlaps(host, instance string, start, end int64) bool {
	h := p.hosts[host]
	if h == nil {
		return false
	}
	return slices.ContainsFunc(h.spans[instance], func(s [2]int64) bool {
		return min(end, s[1])-max(start, s[0]) > (end-start)/100
	})
}

func (p *period) count(host, instance string, start, end int64) {
	h := p.hosts[host]
	if h == nil {
		h = &share{spans: map[string][][2]int64{}}
		p.hosts[host] = h
	}
	h.spans[instance] = append(h.spans[instance], [2]int64{start, end})
	h.until = max(h.until, end)
	p.parts++
}

// add merges one window.
func (p *period) add(s *snapshot.Snapshot) error {
	for rank := 0; ; rank++ {
		if rank == len(p.ranks) {
			p.ranks = append(p.ranks, nil)
		}
		if p.ranks[rank] == nil {
			p.ranks[rank] = s
			return nil
		}
		both, err := merge(p.ranks[rank], s)
		if err != nil {
			return err
		}
		p.ranks[rank], s = nil, both
	}
}

// whole is everything that came; nil when nothing did.
func (p *period) whole() (all *snapshot.Snapshot, err error) {
	for _, s := range p.ranks {
		switch {
		case s == nil:
		case all == nil:
			all = s
		default:
			if all, err = merge(all, s); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// merge guards against snapshots that no test has thought of: they come from other machines.
func merge(a, b *snapshot.Snapshot) (s *snapshot.Snapshot, err error) {
	defer caught(&err)
	return algo.Merge(a, b)
}

func reported(s *snapshot.Snapshot) (r algo.Result, err error) {
	defer caught(&err)
	return algo.Report(s)
}

// caught makes an error of what an estimator makes of numbers that no data plane has counted.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", snapshot.ErrDamaged, r)
	}
}

// sightings are flows that reports of hosts name, and how much of them each host saw.
type sightings map[string]map[string]float64 // by flow, then host

// mostNamed bounds the flows of one host that are compared with those of others.
const mostNamed = 64

// see remembers the flows that a host's window names.
func (f sightings) see(host string, b report.Body) {
	n := 0
	for _, t := range b.Tables {
		value := counted(t)
		if t.Settings || value < 0 {
			continue
		}
		for _, row := range t.Rows {
			if n++; n > mostNamed {
				return
			}
			x, ok := report.Number(row[value])
			if !ok || x <= 0 {
				continue
			}
			key := t.Name
			for i, c := range t.Columns {
				if c.Label {
					key += fmt.Sprintf("|%v", row[i])
				}
			}
			if f[key] == nil {
				f[key] = map[string]float64{}
			}
			f[key][host] += x
		}
	}
}

// counted is the column of a table that says how much there was of what a row names; -1 for none.
func counted(t report.Table) int {
	if !slices.ContainsFunc(t.Columns, func(c report.Column) bool { return c.Label }) {
		return -1
	}
	return slices.IndexFunc(t.Columns, func(c report.Column) bool {
		return !c.Label && (c.Unit == report.PacketUnit || c.Unit == report.Bytes || c.Unit == report.Segments || c.Unit == report.Count)
	})
}

// alike: what two hosts on one path count of a flow differs by what is lost between them, and by their estimators' errors.
const alike = .1

// twice counts flows that several hosts have named, and those of which they saw alike much: hosts that share a flow's packets see parts of
// it, which are alike by chance alone; hosts on one path see all of it.
func (f sightings) twice() (shared, same int, hosts []string) {
	of := map[string]bool{}
	for _, seen := range f {
		if len(seen) < 2 {
			continue
		}
		shared++
		amounts := slices.Sorted(maps.Values(seen))
		pair := false
		for i := 1; i < len(amounts); i++ {
			pair = pair || amounts[i]-amounts[i-1] <= alike*amounts[i]
		}
		if pair {
			same++
			for host := range seen {
				of[host] = true
			}
		}
	}
	return shared, same, slices.Sorted(maps.Keys(of))
}
