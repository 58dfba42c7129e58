package carpe

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// coordinator collects the reports of many hosts (section 3).
type coordinator struct {
	*config
	env     algo.Env
	ledger  *ledger
	groups  map[Group]*observerSet
	own     map[string]int // groups that a host observes
	pending map[string]map[Group]bool
	max     int
	now     int64 // of the last message

	counts counted
}

// counted holds counters since the last window was answered.
type counted struct {
	hellos, updates, lost, full, messages uint64
}

// observerSet holds the observers of a group.
type observerSet struct {
	hosts      map[string]int64 // by host: when it last reported the group, ns since 1970
	advertised uint32           // number of observers in the last update to hosts
	since      int64            // when the group was first reported, ns since 1970
}

// Coordinate implements algo.CoordinatorProvider.
func (c *config) Coordinate(env algo.Env) (algo.Coordinator, error) {
	return &coordinator{config: c, env: env, ledger: newLedger(c), groups: map[Group]*observerSet{}, own: map[string]int{}, pending: map[string]map[Group]bool{},
		max: mostGroups}, nil
}

// mostGroups bounds the groups of all hosts together; carpe.groups those of one host.
const mostGroups = 1 << 20

// ahead is how many windows a message may be in the future, because clocks differ.
const ahead = 1

// Joined implements algo.Coordinator.
func (c *coordinator) Joined(host string) {
	for g, w := range c.groups {
		if _, there := w.hosts[host]; there {
			c.queueUpdate(host, g)
		}
	}
}

// Receive implements algo.Coordinator.
func (c *coordinator) Receive(s algo.Incoming) error {
	c.counts.messages += s.Missed
	r, err := c.read(s.Data)
	if err != nil {
		return err
	}
	host, now := s.Host, s.Now
	epoch, dated := uint64(0), false
	var untimely error
	c.now = max(c.now, now)
	for r.more() {
		switch kind := r.byte(); kind {
		case recordEpoch:
			epoch, dated = r.number(math.MaxInt64), true
			untimely = c.timely(epoch, now)
		case recordReport:
			k, units, observers := r.key(), uint32(r.number(mostUnits)), r.observers()
			if !dated || units == 0 {
				r.fail("report without a window or without units")
			}
			if r.err == nil && untimely != nil {
				c.ledger.late++
			} else if r.err == nil {
				c.report(host, now, epoch, k, units, observers)
			}
		case recordHello:
			if g := r.group(); r.err == nil {
				c.counts.hellos++
				c.observes(host, now, g)
				c.queueUpdate(host, g)
			}
		case recordLost:
			c.counts.lost += r.number(math.MaxUint32)
		default:
			r.fail(fmt.Sprintf("record %d", kind))
		}
	}
	if r.err == nil {
		return untimely
	}
	return r.err
}

// timely refuses reports of windows that are too old or in the future, so that a faulty host cannot create elephants in windows
// that have been answered or have not begun.
func (c *coordinator) timely(epoch uint64, now int64) error {
	current := uint64(max(0, now) / c.env.WindowNS)
	if epoch > current+ahead || epoch+uint64(c.span)+lateWindows < current {
		return fmt.Errorf("%w: window %d, the current one is %d", algo.ErrUntimely, epoch, current)
	}
	return nil
}

// lateWindows is how old reports may be that were queued while the host was disconnected: their window may have been answered.
const lateWindows = 360

func (c *coordinator) report(host string, now int64, epoch uint64, k heavy.Key, units, observers uint32) {
	if g := c.group.of(c.spec, k); c.observes(host, now, g) && observers != c.unknown {
		c.groups[g].advertised = max(c.groups[g].advertised, min(observers, c.most)) // after a restart the coordinator learns the advertised numbers from the hosts' reports
	}
	a := c.ledger.add(k, epoch, c.one(units, observers))
	if a == nil {
		return
	}
	if s := c.ledger.within(a, epoch); !a.declared && c.elephant(s) {
		a.declared = true
		c.env.Notify("an elephant: %v, about %.0f %s in the network", c.spec.Cells(k), s.weight, c.amount())
	}
}

// observes records that a host observes a group; false if a limit of groups is reached.
func (c *coordinator) observes(host string, now int64, g Group) bool {
	w := c.groups[g]
	if w == nil {
		if len(c.groups) >= c.max {
			c.counts.full++
			return false
		}
		w = &observerSet{hosts: map[string]int64{}, advertised: 1, since: now}
		c.groups[g] = w
	}
	if _, known := w.hosts[host]; !known {
		if c.own[host] >= 2*c.config.groups { // a host holds at most carpe.groups; twice that, because it may have replaced some
			c.counts.full++
			if len(w.hosts) == 0 {
				delete(c.groups, g)
			}
			return false
		}
		c.own[host]++
		w.hosts[host] = now
		c.settle(g, w, now)
	}
	w.hosts[host] = now
	return true
}

// settle queues an update for all observers when their number has doubled, or halved, since the last update (section 3.2). Numbers that an
// earlier coordinator sent are not lowered until all observers have had the time to report.
func (c *coordinator) settle(g Group, w *observerSet, now int64) {
	n := c.config.advertised(len(w.hosts))
	if n < 2*w.advertised && (2*n > w.advertised || now-w.since <= c.silence()) {
		return
	}
	w.advertised = n
	for host := range w.hosts {
		c.queueUpdate(host, g)
	}
}

// queueUpdate marks a group for the next message to a host.
func (c *coordinator) queueUpdate(host string, g Group) {
	if c.groups[g] == nil {
		return
	}
	if c.pending[host] == nil {
		c.pending[host] = map[Group]bool{}
	}
	c.pending[host][g] = true
}

// Left implements algo.Coordinator.
func (c *coordinator) Left(host string) {
	for g, w := range c.groups {
		if seen, there := w.hosts[host]; there {
			c.leave(g, w, host, max(seen, c.now))
		}
	}
	delete(c.own, host)
	delete(c.pending, host)
}

func (c *coordinator) leave(g Group, w *observerSet, host string, now int64) {
	delete(w.hosts, host)
	if c.own[host]--; c.own[host] == 0 {
		delete(c.own, host)
	}
	if len(w.hosts) == 0 {
		delete(c.groups, g)
		return
	}
	c.settle(g, w, now)
}

// mostUpdates is the most updates in one call of Send; the others stay queued.
const mostUpdates = 4096

// Send implements algo.Coordinator.
func (c *coordinator) Send(int64) (all []algo.Outgoing) {
	for host, groups := range c.pending {
		w, n := writer{config: c.config}, 0
		for _, g := range sortedGroups(groups) {
			if n++; n > mostUpdates {
				break
			}
			delete(groups, g)
			if set := c.groups[g]; set != nil {
				w.update(g, set.advertised)
				c.counts.updates++
			}
		}
		if len(groups) == 0 {
			delete(c.pending, host)
		}
		for _, m := range w.messages() {
			all = append(all, algo.Outgoing{Host: host, Data: m})
		}
	}
	return all
}

// Report implements algo.Coordinator.
func (c *coordinator) Report(w report.Window) (algo.Result, error) {
	epoch := uint64((w.Start + (w.End-w.Start)/2) / c.env.WindowNS)
	c.forget(w.End)
	values, table := c.elephants(c.ledger.window(epoch))
	values = append(values,
		report.Value{Name: "groups_observed", Value: len(c.groups), Unit: report.Count, Help: "groups that a host observes"},
		report.Value{Name: "hellos", Value: c.counts.hellos, Unit: report.Count, Kind: report.Counter, Help: "messages of hosts that they observe a group"},
		report.Value{Name: "updates", Value: c.counts.updates, Unit: report.Count, Kind: report.Counter, Help: "messages to hosts of how many observe a group"})
	lost := map[string]uint64{"reports": c.counts.lost, "reports_late": c.ledger.late, "groups_full": c.counts.full, "flows_full": c.ledger.full,
		"messages": c.counts.messages}
	c.counts, c.ledger.full, c.ledger.late = counted{}, 0, 0
	return algo.Result{Body: report.Body{Values: values, Tables: []report.Table{table}}, Lost: lost}, nil
}

// silence is the time without a report after which an observer is removed, ns.
func (c *coordinator) silence() int64 { return int64(c.age) * c.env.WindowNS }

// forget removes observers that have been silent for too long, so that their number can fall.
func (c *coordinator) forget(now int64) {
	for g, w := range c.groups {
		for host, seen := range w.hosts {
			if now-seen > c.silence() {
				c.leave(g, w, host, now)
			}
		}
	}
}
