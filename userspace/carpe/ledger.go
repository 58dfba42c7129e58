package carpe

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// sums are the totals over reports of a flow.
type sums struct {
	reports   uint64
	weight    float64 // units: each report's bundle times the observers that its reporting probability was for
	variance  float64
	observers uint32 // largest number of a report
}

func (s *sums) plus(o sums) {
	s.reports += o.reports
	s.weight += o.weight
	s.variance += o.variance
	s.observers = max(s.observers, o.observers)
}

// one is the sums of one report. A bundle is reported with probability 1/l and then counts l-fold, which has variance l(l-1) units^2 a
// report; and the wait for its first sample, n = 1/s units on average, has variance n(n-1), for each of the l bundles that a report stands
// for. A bundle that was handed over consists of samples only: variance units (n-1).
func (c *config) one(units uint32, observers uint32) sums {
	l, u, n := float64(observers), float64(units), float64(c.start)
	samples := n
	if c.handover {
		samples = max(n, u)
	}
	return sums{reports: 1, weight: l * u, variance: l*(l-1)*u*u + l*samples*(n-1), observers: observers}
}

// ends bounds the units in bundles that are not full: one bundle at every observer.
func (c *config) ends(s sums) float64 { return float64(s.observers) * float64(c.tau(s.observers)) }

// deviations is the width of the bounds in standard errors: they hold the sum of reports, which is skewed where there are few, in
// at least 95 of 100 cases.
const deviations = 2.2

// bounds contain the true size of a flow with at least 95 % probability.
func (c *config) bounds(s sums) (low, high float64) {
	d := deviations*math.Sqrt(s.variance*(1+2/max(1, float64(s.reports)))) + c.ends(s) // with few reports the variance is uncertain, too
	return max(0, s.weight-d), s.weight + d
}

// elephant reports whether the sums reach the limit.
func (c *config) elephant(s sums) bool { return s.weight >= c.limit(max(1, s.observers)) }

// ledger stores reports by flow and window. Windows are numbered (epochs).
type ledger struct {
	config *config
	flows  map[heavy.Key]*account
	next   uint64 // the first window that has not been answered
	full   uint64 // reports of flows beyond carpe.flows
	late   uint64 // reports that arrived after the answer of their window, or whose window had none
}

type account struct {
	steps    []step // in order
	declared bool   // it was declared an elephant, and has been one since
}

type step struct {
	epoch uint64
	sums
}

func newLedger(c *config) *ledger { return &ledger{config: c, flows: map[heavy.Key]*account{}} }

// add counts reports; nil if the flow is new and carpe.flows is reached.
func (l *ledger) add(k heavy.Key, epoch uint64, s sums) *account {
	if epoch < l.next {
		l.late += s.reports // they still count in the later windows of the span
	}
	a := l.flows[k]
	if a == nil {
		if len(l.flows) >= l.config.flows {
			l.full += s.reports
			return nil
		}
		a = &account{}
		l.flows[k] = a
	}
	at := len(a.steps)
	for at > 0 && a.steps[at-1].epoch > epoch {
		at--
	}
	if at > 0 && a.steps[at-1].epoch == epoch {
		a.steps[at-1].plus(s)
	} else {
		a.steps = slices.Insert(a.steps, at, step{epoch, s})
	}
	return a
}

// within sums the windows of the span that ends with window epoch.
func (l *ledger) within(a *account, epoch uint64) (s sums) {
	for _, one := range a.steps {
		if one.epoch <= epoch && one.epoch+uint64(l.config.span) > epoch {
			s.plus(one.sums)
		}
	}
	return s
}

// window returns the sums of the span that ends with a window, marks that window as answered, and drops older reports.
func (l *ledger) window(epoch uint64) map[heavy.Key]sums {
	all := map[heavy.Key]sums{}
	for k, a := range l.flows {
		s := l.within(a, epoch)
		if s.reports > 0 {
			all[k] = s
		}
		a.declared = a.declared && l.config.elephant(s)
		a.steps = slices.DeleteFunc(a.steps, func(one step) bool {
			old := one.epoch+uint64(l.config.span) <= epoch
			if old && one.epoch >= l.next {
				l.late += one.reports
			}
			return old
		})
		if len(a.steps) == 0 {
			delete(l.flows, k)
		}
	}
	l.next = max(l.next, epoch+1)
	return all
}

// clear removes all flows, and returns how many reports they had.
func (l *ledger) clear() (n uint64) {
	for _, a := range l.flows {
		for _, one := range a.steps {
			n += one.reports
		}
	}
	clear(l.flows)
	return n
}

// Words of flows in a snapshot.
const flowWords = heavy.KeyWords + 4

func flowsInto(s *snapshot.Snapshot, flows map[heavy.Key]sums) {
	words := make([]uint64, 0, flowWords*len(flows))
	for _, f := range ranked(flows) {
		words = append(words, f.key[:]...)
		words = append(words, f.reports, math.Float64bits(f.weight), math.Float64bits(f.variance), uint64(f.observers))
	}
	s.Words["flows"] = words
}

// flowsOf reads the flows of a snapshot; sums that no reports can produce are refused.
func flowsOf(s *snapshot.Snapshot) (map[heavy.Key]sums, error) {
	words := s.Words["flows"]
	if len(words)%flowWords != 0 {
		return nil, fmt.Errorf("%w: %d words of flows", snapshot.ErrDamaged, len(words))
	}
	flows := map[heavy.Key]sums{}
	for w := range slices.Chunk(words, flowWords) {
		one := sums{w[heavy.KeyWords], math.Float64frombits(w[heavy.KeyWords+1]), math.Float64frombits(w[heavy.KeyWords+2]), uint32(w[heavy.KeyWords+3])}
		if !(one.weight >= 0 && one.weight < math.MaxInt64) || !(one.variance >= 0 && one.variance <= math.MaxFloat64) || one.observers == 0 || one.observers > 1<<16 {
			return nil, fmt.Errorf("%w: a flow of %g units", snapshot.ErrDamaged, one.weight)
		}
		k := heavy.Key(w[:heavy.KeyWords])
		sum := flows[k]
		sum.plus(one)
		flows[k] = sum
	}
	return flows, nil
}

type flow struct {
	key heavy.Key
	sums
}

// ranked are flows by weight, the largest first.
func ranked(flows map[heavy.Key]sums) []flow {
	list := make([]flow, 0, len(flows))
	for k, s := range flows {
		list = append(list, flow{k, s})
	}
	slices.SortFunc(list, func(a, b flow) int { return cmp.Or(cmp.Compare(b.weight, a.weight), a.key.Compare(b.key)) })
	return list
}

// elephants returns the values and the table of declared flows.
func (c *config) elephants(flows map[heavy.Key]sums) ([]report.Value, report.Table) {
	t, n, reports := c.header(), 0, uint64(0)
	for _, f := range ranked(flows) {
		reports += f.reports
		if !c.elephant(f.sums) {
			continue
		}
		if n++; n <= c.top {
			low, high := c.bounds(f.sums)
			t.Rows = append(t.Rows, append(c.spec.Cells(f.key), f.weight, f.reports, int64(f.observers), math.Sqrt(f.variance), low, high))
		}
	}
	return []report.Value{
		{Name: "elephants", Value: n, Unit: report.Flows, Help: "flows that have reached carpe.threshold, as far as reports show"},
		{Name: "flows_reported", Value: len(flows), Unit: report.Flows, Help: "flows of which there are reports"},
		{Name: "reports", Value: reports, Unit: report.Count, Help: "reports of the span"},
	}, t
}

func (c *config) amount() string {
	if c.bytes {
		return "bytes"
	}
	return "packets"
}

func (c *config) header() report.Table {
	amount := c.amount()
	return report.Table{Name: "elephants_top", Title: "elephants", Limit: c.top, Help: "flows that have reached the threshold",
		Columns: append(c.spec.Columns(),
			report.Column{Name: amount, Unit: c.unit(), Metric: true, Low: amount + "_low", High: amount + "_high", Err: "standard_error", Promise: report.Bound,
				Help: "what the flow had in the span, estimated: what its reports stand for"},
			report.Column{Name: "reports", Unit: report.Count, Help: "reports of the flow"},
			report.Column{Name: "observers", Unit: report.Count, Help: "hosts that its group was counted for: each reports every bundle with probability one in so many"},
			report.Column{Name: "standard_error", Unit: c.unit(), Help: "of the estimate, without what is in bundles that are not full"},
			report.Column{Name: amount + "_low", Unit: c.unit(), Help: "it had as many, with 95 % probability"},
			report.Column{Name: amount + "_high", Unit: c.unit(), Help: "it had no more, with 95 % probability"})}
}

// truthColumns is the number of columns of header() that the truth has, too.
func (c *config) truthColumns() int { return len(c.spec.Columns()) + 1 }
