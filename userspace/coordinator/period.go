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

// name is the stream's instance name in windows and metrics.
func (s stream) name() string {
	if s.set == "" {
		return s.measurement
	}
	return s.measurement + "/" + s.set
}

// period is one window of a stream while hosts' windows are merged.
type period struct {
	ranks   []*snapshot.Snapshot // ranks[n] is merged from 2^n windows, or nil: each window is merged log2(hosts) times at most
	hosts   map[string]*share
	parts   int
	open    []opened
	skewed  int
	cut     int
	unknown int // windows of hosts whose clock has not been measured
	unfit   int // windows that could not be merged
	flows   sightings
}

// opened is a batch with a window of this period.
type opened struct {
	agent       *agent
	batch       *batch
	incarnation uint64
}

// share is the contribution of a host.
type share struct {
	spans map[string][][2]int64 // by instance, on the coordinator's clock
	until int64
}

func newPeriod() *period { return &period{hosts: map[string]*share{}, flows: sightings{}} }

// overlaps reports whether a window overlaps one of the same instance.
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

// whole merges all windows received; nil if there are none.
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

// merge converts a panic to an error: snapshots are from other machines and may be malformed in any way.
func merge(a, b *snapshot.Snapshot) (s *snapshot.Snapshot, err error) {
	defer caught(&err)
	return algo.Merge(a, b)
}

func reported(s *snapshot.Snapshot) (r algo.Result, err error) {
	defer caught(&err)
	return algo.Report(s)
}

// caught converts a panic of an estimator, on numbers that no data plane produces, to an error.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", snapshot.ErrDamaged, r)
	}
}

// sightings are the flows in hosts' reports, with the amount that each host counted.
type sightings map[string]map[string]float64 // by flow, then host

// mostNamed bounds the flows of one host that are compared with those of others.
const mostNamed = 64

// see adds the flows in a host's window.
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

// counted is the column of a table with the amount of a row's flow; -1 for none.
func counted(t report.Table) int {
	if !slices.ContainsFunc(t.Columns, func(c report.Column) bool { return c.Label }) {
		return -1
	}
	return slices.IndexFunc(t.Columns, func(c report.Column) bool {
		return !c.Label && (c.Unit == report.PacketUnit || c.Unit == report.Bytes || c.Unit == report.Segments || c.Unit == report.Count)
	})
}

// alike is the largest relative difference of the counts of one flow by two hosts on its path: by losses between them, and by
// estimation errors.
const alike = .1

// twice counts flows that several hosts have reported, and those with similar amounts at several hosts, which are probably counted twice:
// hosts that share a flow's packets count parts of it, which are similar only by chance; hosts on one path each count all of it.
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
