package coordinator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xdpmon/xdpmon/userspace/outlet"
)

// Values of Health.Status.
const (
	good     = "ok"
	degraded = "degraded"
	failing  = "failing" // all agents are silent, no windows are merged, or the store fails
)

// Health is the state of a coordinator.
type Health struct {
	Status     string                `json:"status"`
	Reasons    []string              `json:"reasons"`
	Version    string                `json:"version"`
	Uptime     float64               `json:"uptime_seconds"`
	Leading    bool                  `json:"leading"`
	Plan       uint64                `json:"plan_revision"`
	Agents     []Known               `json:"agents"`
	Streams    []StreamHealth        `json:"streams"`
	Refused    map[string]uint64     `json:"refused_messages"`    // by reason
	Kept       uint64                `json:"refused_connections"` // without a valid certificate, or of agents that are disconnected for their rate
	Violations uint64                `json:"refused_subjects"`    // messages in another agent's name
	Dropped    uint64                `json:"dropped_messages"`    // because the coordinator was too slow
	Expires    string                `json:"certificate_expires,omitempty"`
	Store      *outlet.StoreHealth   `json:"store,omitempty"`
	Outputs    []outlet.ReaderHealth `json:"outputs"`
}

// StreamHealth is the state of one sequence of answers.
type StreamHealth struct {
	Measurement string  `json:"measurement"`
	Algorithm   string  `json:"algorithm"`
	Windows     int     `json:"windows"`
	Age         float64 `json:"last_window_age_seconds"`
	Hosts       int     `json:"hosts"`
	Late        uint64  `json:"late_windows"`
	fresh       bool
}

func (h *Health) problem(status, format string, args ...any) {
	if h.Status != failing {
		h.Status = status
	}
	h.Reasons = append(h.Reasons, fmt.Sprintf(format, args...))
}

// Health collects the state of all components.
func (c *Coordinator) Health() Health {
	c.mu.Lock()
	h := Health{Status: good, Reasons: []string{}, Version: c.opts.Version, Uptime: time.Since(c.started).Seconds(), Leading: c.leading, Refused: map[string]uint64{}}
	refusal, trouble, sub := c.refusal, c.trouble, c.sub
	c.mu.Unlock()
	h.Outputs, h.Store = c.out.Health()
	if !c.opened.Load() {
		h.Agents, h.Streams = []Known{}, []StreamHealth{}
		h.problem(degraded, "the bus is not open yet; of a cluster two of three are needed")
		return h
	}
	c.engine.health(&h, c.gate, time.Now())
	if c.server != nil {
		h.Kept, h.Violations = c.server.Refused()
	}
	if sub != nil {
		if n, err := sub.Dropped(); err == nil {
			h.Dropped = uint64(n)
		}
	}
	switch {
	case trouble != "":
		h.problem(failing, "state not saved: %s", trouble)
	case h.Store != nil && h.Store.Error != "":
		h.problem(failing, "the store fails: %s", h.Store.Error)
	}
	if refusal != "" {
		h.problem(degraded, "the last configuration was refused")
	}
	for _, o := range h.Outputs {
		if o.Error != "" {
			h.problem(degraded, "output %s: %s", strings.TrimPrefix(o.Name, "json "), o.Error)
		}
	}
	if c.holder != nil {
		until, _ := c.holder.Until()
		h.Expires = until.UTC().Format(time.RFC3339)
		if text := c.holder.Trouble(time.Now()); text != "" {
			h.problem(degraded, "%s", text)
		}
	}
	return h
}

func (e *engine) health(h *Health, g *gate, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h.Plan = e.plan.Revision
	h.Agents, h.Streams = []Known{}, []StreamHealth{}
	for _, reason := range Refusals {
		h.Refused[reason] = e.refused[reason]
	}
	silent := 0
	for _, name := range slices.Sorted(maps.Keys(e.agents)) {
		k := e.agents[name].known(now, e.plan.Revision)
		for reason, n := range k.Refused {
			h.Refused[reason] += n
		}
		for reason, n := range g.counts(name) {
			k.Refused[reason] += n
		}
		if k.State == "silent" {
			silent++
		}
		h.Agents = append(h.Agents, k)
	}
	for reason, n := range g.counts("") {
		h.Refused[reason] += n
	}
	for _, at := range slices.SortedFunc(maps.Keys(e.streams), stream.compare) {
		f, p := e.streams[at], e.planned[at.measurement]
		if p == nil {
			continue
		}
		s := StreamHealth{Measurement: at.name(), Algorithm: at.algorithm, Windows: f.number, Age: now.Sub(f.last).Seconds(), Hosts: len(f.members), Late: f.late,
			fresh: now.Sub(f.last) < 3*time.Duration(p.length[at.algorithm])+p.Wait+silentAfter}
		h.Streams = append(h.Streams, s)
		if h.Leading && !s.fresh {
			h.problem(degraded, "%s of %s: no window for %.0f s", s.Algorithm, s.Measurement, s.Age)
		}
	}
	switch {
	case h.Leading && len(h.Agents) == 0:
		h.problem(failing, "no agent has connected: there are no windows to merge")
	case h.Leading && silent == len(h.Agents):
		h.problem(failing, "all %d agents are silent", silent)
	case silent > 0:
		h.problem(degraded, "%d of %d agents are silent", silent, len(h.Agents))
	}
}

func (h Health) summary() string {
	role := "waits"
	if h.Leading {
		role = "leads"
	}
	text := fmt.Sprintf("%s: %s, %d agents", h.Status, role, len(h.Agents))
	if len(h.Reasons) > 0 {
		text += "; " + strings.ReplaceAll(h.Reasons[0], "\n", "; ")
	}
	return text
}

func (c *Coordinator) handler() http.Handler {
	return c.out.Answers(func() outlet.Probe {
		h := c.Health()
		// Readiness cannot depend on agents: they connect only after the service is ready.
		return outlet.Probe{Answer: h, Failing: h.Status == failing, Ready: c.opened.Load()}
	}, collector{c})
}

// collector serves health as metrics. Agents are counted by state: their names are in /healthz.
type collector struct{ coordinator *Coordinator }

// Describe sends nothing: the series depend on the plan.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends health.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	h := c.coordinator.Health()
	send := func(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
		var keys, values []string
		for i := 0; i+1 < len(labels); i += 2 {
			keys, values = append(keys, labels[i]), append(values, labels[i+1])
		}
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, keys, nil), kind, value, values...)
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	states, sums := map[string]int{"fresh": 0, "silent": 0}, Known{}
	worst := 0.
	for _, a := range h.Agents {
		states[a.State]++
		sums.Lost, sums.Own, sums.Late, sums.Skewed, sums.Windows = sums.Lost+a.Lost, sums.Own+a.Own, sums.Late+a.Late, sums.Skewed+a.Skewed, sums.Windows+a.Windows
		worst = max(worst, a.Ahead, -a.Ahead)
	}
	leads := 0.
	if h.Leading {
		leads = 1
	}
	send(gauge, "xdpmon_coordinator_leading", "Whether this coordinator leads and merges windows: 1, or 0.", leads)
	for _, state := range slices.Sorted(maps.Keys(states)) {
		send(gauge, "xdpmon_coordinator_agents", "Agents that are known.", float64(states[state]), "state", state)
	}
	send(gauge, "xdpmon_coordinator_clock_offset_seconds", "The largest difference between an agent's wall clock and this one's.", worst)
	send(counter, "xdpmon_coordinator_windows_total", "Windows of agents.", float64(sums.Windows))
	send(counter, "xdpmon_coordinator_lost_batches_total", "Batches of windows that were given up as lost.", float64(sums.Lost))
	send(counter, "xdpmon_coordinator_agents_lost_windows_total", "Windows that agents dropped before sending them.", float64(sums.Own))
	send(counter, "xdpmon_coordinator_late_windows_total", "Windows that arrived after the answer.", float64(sums.Late))
	send(counter, "xdpmon_coordinator_skewed_windows_total", "Windows that were shifted by more than a hundredth of their length.", float64(sums.Skewed))
	send(counter, "xdpmon_coordinator_dropped_messages_total", "Messages dropped because the coordinator was too slow.", float64(h.Dropped))
	send(counter, "xdpmon_coordinator_refused_connections_total", "Connections that were refused.", float64(h.Kept))
	send(counter, "xdpmon_coordinator_refused_subjects_total", "Messages in another agent's name.", float64(h.Violations))
	for _, reason := range Refusals {
		send(counter, "xdpmon_coordinator_refused_messages_total", "Messages that were refused.", float64(h.Refused[reason]), "reason", reason)
	}
}
