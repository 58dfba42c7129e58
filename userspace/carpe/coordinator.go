package carpe

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// coordinator is where reports of many hosts come together (section 3).
type coordinator struct {
	*config
	env    algo.Env
	ledger *ledger
	groups map[Group]*crowd
	own    map[string]int // groups that a host observes
	tell   map[string]map[Group]bool
	max    int
	now    int64 // of the last message

	counts counted
}

// counted since the last window was answered.
type counted struct {
	hellos, updates, lost, full, messages uint64
}

// crowd is who observes a group.
type crowd struct {
	hosts map[string]int64 // when they were last heard of it, ns since 1970
	told  uint32           // observers that hosts were told of
	since int64            // when it was first heard of
}

// Coordinate implements algo.CoordinatorProvider.
func (c *config) Coordinate(env algo.Env) (algo.Coordinator, error) {
	return &coordinator{config: c, env: env, ledger: newLedger(c), groups: map[Group]*crowd{}, own: map[string]int{}, tell: map[string]map[Group]bool{},
		max: mostGroups}, nil
}

// mostGroups bounds the groups of all hosts; carpe.groups those of one.
const mostGroups = 1 << 20

// ahead is how many windows a message may be of that is yet to come: clocks differ.
const ahead = 1

// Joined implements algo.Coordinator.
func (c *coordinator) Joined(host string) {
	for g, w := range c.groups {
		if _, there := w.hosts[host]; there {
			c.owe(host, g)
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
				r.fail("a report of no window, or of nothing")
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
				c.owe(host, g)
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

// timely refuses reports of windows that are not now: nobody makes an elephant of what has been answered, or is yet to come.
func (c *coordinator) timely(epoch uint64, now int64) error {
	current := uint64(max(0, now) / c.env.WindowNS)
	if epoch > current+ahead || epoch+uint64(c.span)+lateWindows < current {
		return fmt.Errorf("%w: of window %d, the current one is %d", algo.ErrUntimely, epoch, current)
	}
	return nil
}

// lateWindows is how old reports may be that waited for a connection: what they are of may be answered.
const lateWindows = 360

func (c *coordinator) report(host string, now int64, epoch uint64, k heavy.Key, units, observers uint32) {
	if g := c.group.of(c.spec, k); c.observes(host, now, g) && observers != c.unknown {
		c.groups[g].told = max(c.groups[g].told, min(observers, c.most)) // a coordinator that has just begun learns what hosts were told
	}
	a := c.ledger.add(k, epoch, c.one(units, observers))
	if a == nil {
		return
	}
	if s := c.ledger.within(a, epoch); !a.told && c.elephant(s) {
		a.told = true
		c.env.Notify("an elephant: %v, about %.0f %s in the network", c.spec.Cells(k), s.weight, c.amount())
	}
}

// observes notes that a host sees a group; false where there is no room.
func (c *coordinator) observes(host string, now int64, g Group) bool {
	w := c.groups[g]
	if w == nil {
		if len(c.groups) >= c.max {
			c.counts.full++
			return false
		}
		w = &crowd{hosts: map[string]int64{}, told: 1, since: now}
		c.groups[g] = w
	}
	if _, known := w.hosts[host]; !known {
		if c.own[host] >= 2*c.config.groups { // it cannot hold more; some may be forgotten there
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

// settle tells all observers when their number has doubled, or halved, since they were told (section 3.2). What hosts were told by an earlier
// coordinator holds until all that there are had the time to say something.
func (c *coordinator) settle(g Group, w *crowd, now int64) {
	n := c.config.told(len(w.hosts))
	if n < 2*w.told && (2*n > w.told || now-w.since <= c.silence()) {
		return
	}
	w.told = n
	for host := range w.hosts {
		c.owe(host, g)
	}
}

// owe a host an update.
func (c *coordinator) owe(host string, g Group) {
	if c.groups[g] == nil {
		return
	}
	if c.tell[host] == nil {
		c.tell[host] = map[Group]bool{}
	}
	c.tell[host][g] = true
}

// Left implements algo.Coordinator.
func (c *coordinator) Left(host string) {
	for g, w := range c.groups {
		if heard, there := w.hosts[host]; there {
			c.leave(g, w, host, max(heard, c.now))
		}
	}
	delete(c.own, host)
	delete(c.tell, host)
}

func (c *coordinator) leave(g Group, w *crowd, host string, now int64) {
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

// mostUpdates is what is told at once; the rest waits for the next time.
const mostUpdates = 4096

// Send implements algo.Coordinator.
func (c *coordinator) Send(int64) (all []algo.Outgoing) {
	for host, groups := range c.tell {
		w, n := writer{config: c.config}, 0
		for _, g := range sortedGroups(groups) {
			if n++; n > mostUpdates {
				break
			}
			delete(groups, g)
			if crowd := c.groups[g]; crowd != nil {
				w.update(g, crowd.told)
				c.counts.updates++
			}
		}
		if len(groups) == 0 {
			delete(c.tell, host)
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

// silence after which an observer is none, ns.
func (c *coordinator) silence() int64 { return int64(c.age) * c.env.WindowNS }

// forget observers of whom nothing was heard for long, so that their number can fall.
func (c *coordinator) forget(now int64) {
	for g, w := range c.groups {
		for host, heard := range w.hosts {
			if now-heard > c.silence() {
				c.leave(g, w, host, now)
			}
		}
	}
}
