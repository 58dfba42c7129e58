package agent

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xdpmon/xdpmon/userspace/agent/config"
	naming "github.com/xdpmon/xdpmon/userspace/names"
	"github.com/xdpmon/xdpmon/userspace/outlet"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Values of Health.Status.
const (
	good     = "ok"
	degraded = "degraded" // a part is missing, the rest works
	failing  = "failing"  // nothing is attached, a required interface is not, an instance measures nothing, or the store fails
)

// Health is the state of the agent.
type Health struct {
	Status     string                `json:"status"`
	Reasons    []string              `json:"reasons"`
	Version    string                `json:"version"`
	Uptime     float64               `json:"uptime_seconds"`
	Instances  []InstanceHealth      `json:"instances"`
	LeftAlone  map[string]string     `json:"left_alone"` // interfaces that are not measured because of a limit
	Store      *outlet.StoreHealth   `json:"store,omitempty"`
	Outputs    []outlet.ReaderHealth `json:"outputs"`
	Bus        *BusHealth            `json:"bus,omitempty"`
	Names      *NamesHealth          `json:"names,omitempty"`
	Reloads    Reloads               `json:"reloads"`
	Registers  int64                 `json:"register_bytes"`
	interfaces int
	stuck      bool // windows are overdue: the watchdog is not notified
}

// InstanceHealth is the state of one instance.
type InstanceHealth struct {
	Name       string                       `json:"name"` // instance, or instance/interface with registers for each interface
	Instance   string                       `json:"instance"`
	Each       string                       `json:"interface,omitempty"` // with registers for each interface
	Algorithms []string                     `json:"algorithms"`
	Window     float64                      `json:"window_seconds"`
	Windows    int                          `json:"windows"`
	Age        float64                      `json:"last_window_age_seconds"` // since the start, if there was none yet
	Fresh      bool                         `json:"fresh"`
	Registers  int64                        `json:"register_bytes"`
	Lost       map[string]map[string]uint64 `json:"lost"` // of the latest window, by algorithm; zeros are omitted
	Error      string                       `json:"error,omitempty"`
	Own        string                       `json:"own_programs,omitempty"` // why its programs are not shared with instances of the same rule
	Direction  string                       `json:"direction,omitempty"`
	Unpaired   string                       `json:"unpaired,omitempty"` // algorithms that miss responses because egress is not measured, and the remedy
	Interfaces []InterfaceHealth            `json:"interfaces"`
}

// measured is the interface, if there is exactly one, as report.Identity has it: series of an instance join by their labels.
func (i InstanceHealth) measured() string {
	if i.Each == "" && len(i.Interfaces) == 1 {
		return i.Interfaces[0].Name
	}
	return i.Each
}

// InterfaceHealth is the state of one attachment.
type InterfaceHealth struct {
	Name     string `json:"name"`
	Index    int    `json:"index"`
	Guest    Guest  `json:"guest,omitzero"`
	Serves   string `json:"serves,omitempty"` // the guest, in the field of versions before 0.1.0; removed in 0.2.0
	Attached bool   `json:"attached"`
	Error    string `json:"error,omitempty"`
}

// Guest is the guest that an interface belongs to.
type Guest struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// NamesHealth counts the DNS answers that names are learned from.
type NamesHealth struct {
	naming.Stats
	Dropped uint64 `json:"dropped"` // answers that arrived faster than they are read
}

// Reloads counts the configurations that were read while the agent ran.
type Reloads struct {
	Taken   int    `json:"taken"`
	Refused int    `json:"refused"`
	Error   string `json:"error,omitempty"` // of the last one
}

// Health collects the state of all components.
func (a *Agent) Health() Health {
	a.mu.Lock()
	h := Health{Status: good, Reasons: []string{}, Version: a.opts.Version, Uptime: time.Since(a.started).Seconds(), LeftAlone: maps.Clone(a.left),
		Reloads: Reloads{a.reloads[0], a.reloads[1], a.refusal}, Instances: []InstanceHealth{}}
	learned := a.known
	workers := slices.SortedFunc(maps.Values(a.workers), func(x, y *worker) int { return strings.Compare(x.name, y.name) })
	rules := a.cfg.Instances
	a.mu.Unlock()
	for _, w := range workers {
		h.instance(w.health())
	}
	h.attached()
	h.required(rules)
	h.Registers, _ = a.memory.used("")
	h.outlets(a.out.Health())
	h.linked(a)
	if s, ok := learned.names.Stats(); ok {
		h.Names = &NamesHealth{s, learned.listen.Dropped()}
	}
	if n := len(h.LeftAlone); n > 0 {
		h.problem(degraded, "%d interfaces are not measured because of limits", n)
	}
	if h.Reloads.Error != "" {
		h.problem(degraded, "the last configuration was refused")
	}
	return h
}

// problem adds a reason; the worst status counts.
func (h *Health) problem(status, format string, args ...any) {
	if h.Status != failing {
		h.Status = status
	}
	h.Reasons = append(h.Reasons, fmt.Sprintf(format, args...))
}

// lateness: a window may be late by two window lengths, and by the time of loading.
const lateness = 15 * time.Second

func (w *worker) health() (i InstanceHealth, stuck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i = InstanceHealth{Name: w.name, Instance: w.want.rule.Name, Each: w.want.member(), Algorithms: names(w.rule), Window: w.rule.Window.Seconds(), Windows: w.windows, Fresh: true,
		Lost: map[string]map[string]uint64{}, Interfaces: []InterfaceHealth{}}
	_, i.Registers = w.agent.memory.used(w.name)
	i.Direction = string(w.rule.Direction)
	if list := w.rule.Unpaired(); len(list) > 0 {
		i.Unpaired = strings.Join(list, ", ") + ": packets are seen on arrival only, answers that leave are not matched: " + config.PairRemedy
	}
	if w.own != nil {
		i.Own = w.own.Error()
	}
	if w.open {
		since := w.opened
		if w.last.After(since) {
			since = w.last
		}
		age := time.Since(since)
		i.Age, i.Fresh = age.Seconds(), age <= 3*w.rule.Window+lateness
		stuck = !i.Fresh
	}
	if w.trouble.err != nil {
		i.Error = w.trouble.err.Error()
	}
	for name, l := range w.lines {
		for what, n := range l.Lost {
			if n == 0 {
				continue
			}
			if i.Lost[name] == nil {
				i.Lost[name] = map[string]uint64{}
			}
			i.Lost[name][what] = n
		}
	}
	for _, l := range w.want.ifaces {
		one := InterfaceHealth{Name: l.Name, Index: l.Index, Guest: Guest(l.Guest), Serves: l.Guest.String()}
		_, one.Attached = w.attached[l.Name]
		if w.lost[l.Name] {
			one.Attached, one.Error = false, "its programs were detached by another command"
		}
		if err := w.failed[l.Name].err; err != nil {
			one.Error = err.Error()
		}
		i.Interfaces = append(i.Interfaces, one)
	}
	return i, stuck
}

func (h *Health) instance(i InstanceHealth, stuck bool) {
	h.Instances = append(h.Instances, i)
	h.stuck = h.stuck || stuck
	if i.Error != "" {
		h.problem(failing, "%s: %s", i.Name, i.Error)
	}
	if !i.Fresh {
		h.problem(failing, "%s: no window for %.0f s", i.Name, i.Age)
	}
	attached := 0
	for _, l := range i.Interfaces {
		if l.Attached {
			attached++
		} else if l.Error != "" {
			h.problem(degraded, "%s: not attached to %s: %s", i.Name, l.Name, l.Error)
		}
	}
	h.interfaces += attached
	if attached == 0 && len(i.Interfaces) > 0 {
		h.problem(failing, "%s: measures nothing: attached to none of its %d interfaces", i.Name, len(i.Interfaces))
	}
}

// attached: an agent without any attachment is failing, whatever the reason; a machine whose interfaces appear later is failing until then.
func (h *Health) attached() {
	if len(h.Instances) == 0 || h.interfaces == 0 && h.Status != failing {
		h.problem(failing, "nothing is attached: no interface matches the configuration (xdpmon agent --check lists what matches)")
	}
}

// required names the patterns of rules of which no interface is attached.
func (h *Health) required(rules []config.Instance) {
	for _, r := range rules {
		for _, pattern := range r.Required {
			if attached, why := h.isAttached(r.Name, pattern); !attached {
				h.problem(failing, "%s: required interface %s is not attached: %s", r.Name, pattern, why)
			}
		}
	}
}

// isAttached looks for an attached interface of a rule and a pattern.
func (h *Health) isAttached(rule, pattern string) (attached bool, why string) {
	why = "no interface that the rule matches has this name"
	for _, i := range h.Instances {
		if i.Instance != rule {
			continue
		}
		for _, l := range i.Interfaces {
			if ok, err := path.Match(pattern, l.Name); !ok || err != nil {
				continue
			}
			if l.Attached {
				return true, ""
			}
			why = cmp.Or(l.Error, "it is being attached")
		}
	}
	return false, why
}

func (h *Health) outlets(readers []outlet.ReaderHealth, kept *outlet.StoreHealth) {
	h.Outputs, h.Store = readers, kept
	for _, r := range readers {
		if r.Error != "" {
			h.problem(degraded, "output %s: %s", strings.TrimPrefix(r.Name, "json "), r.Error)
		}
	}
	if kept != nil && kept.Error != "" {
		h.problem(failing, "the store fails: %s", kept.Error)
	}
}

// summary is one line for the service manager.
func (h Health) summary() string {
	text := fmt.Sprintf("%s: %d instances on %d interfaces", h.Status, len(h.Instances), h.interfaces)
	if len(h.Reasons) > 0 {
		text += "; " + strings.ReplaceAll(h.Reasons[0], "\n", "; ")
	}
	return text
}

// collector serves health as metrics.
type collector struct{ agent *Agent }

// Describe sends nothing: the series depend on the configuration.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends health.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	h := c.agent.Health()
	send := func(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
		var keys, values []string
		for i := 0; i+1 < len(labels); i += 2 {
			keys, values = append(keys, labels[i]), append(values, strings.ToValidUTF8(labels[i+1], "\uFFFD"))
		}
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, keys, nil), kind, value, values...)
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	send(gauge, "xdpmon_agent_healthy", "Whether every instance measures and the store works: 1, or 0.", truth(h.Status != failing))
	send(gauge, "xdpmon_agent_left_alone_interfaces", "Interfaces that are not measured because of a limit.", float64(len(h.LeftAlone)))
	own := 0
	for _, i := range h.Instances {
		if i.Own != "" {
			own++
		}
	}
	send(gauge, "xdpmon_agent_own_programs_instances", "Instances that could not share the programs of others of their rule.", float64(own))
	send(gauge, "xdpmon_agent_register_memory_bytes", "Registers of all instances.", float64(h.Registers))
	send(counter, "xdpmon_agent_reloads_total", "Configurations that were read while the agent ran.", float64(h.Reloads.Taken), "result", "taken")
	send(counter, "xdpmon_agent_reloads_total", "Configurations that were read while the agent ran.", float64(h.Reloads.Refused), "result", "refused")
	for _, i := range h.Instances {
		// instance and serves are the labels of versions before 0.1.0; they are removed in 0.2.0.
		send(gauge, "xdpmon_agent_instance_fresh", "Whether windows of the instance close on time: 1, or 0.", truth(i.Fresh && i.Error == ""),
			"instance_name", i.Instance, "interface", i.measured(), "instance", i.Name)
		for _, l := range i.Interfaces {
			labels := []string{"instance_name", i.Instance, "interface", l.Name, "instance", i.Name, "serves", l.Serves}
			for _, g := range prom.GuestLabels(report.Guest(l.Guest)) {
				labels = append(labels, g[:]...)
			}
			send(gauge, "xdpmon_interface_attached", "Whether the programs are on the interface now: 1, or 0.", truth(l.Attached), labels...)
		}
	}
	for _, o := range h.Outputs {
		send(counter, "xdpmon_agent_missed_events_total", "Windows dropped because an output was too slow.", float64(o.Missed), "reader", o.Name)
		send(counter, "xdpmon_agent_failed_events_total", "Windows that could not be written to an output.", float64(o.Failed), "reader", o.Name)
	}
	if b := h.Bus; b != nil {
		send(gauge, "xdpmon_agent_bus_connected", "Whether a coordinator's bus is connected: 1, or 0.", truth(b.Connected))
		send(gauge, "xdpmon_agent_bus_waiting_batches", "Batches of windows that the coordinator has not received.", float64(b.Waiting))
		send(gauge, "xdpmon_agent_bus_clock_offset_seconds", "This host's wall clock ahead of the coordinator's.", b.Offset)
		send(counter, "xdpmon_agent_bus_sent_batches_total", "Batches of windows, sent.", float64(b.Sent))
		send(counter, "xdpmon_agent_bus_resent_batches_total", "Batches of windows, sent again.", float64(b.Again))
		send(counter, "xdpmon_agent_bus_lost_windows_total", "Windows that were dropped before the coordinator received them.", float64(b.Lost))
	}
	if n := h.Names; n != nil {
		send(counter, "xdpmon_agent_names_answers_total", "DNS answers that names were learned from.", float64(n.Answers))
		send(counter, "xdpmon_agent_names_malformed_answers_total", "DNS answers that could not be read.", float64(n.Malformed))
		send(counter, "xdpmon_agent_names_dropped_answers_total", "DNS answers that arrived faster than they are read.", float64(n.Dropped))
		send(counter, "xdpmon_agent_names_evicted_addresses_total", "Addresses whose names were evicted because the table was full.", float64(n.Evicted))
	}
	if s := h.Store; s != nil {
		send(counter, "xdpmon_agent_store_kept_windows_total", "Windows that were put into the store.", float64(s.Kept))
		send(counter, "xdpmon_agent_store_failed_windows_total", "Windows that could not be put into the store.", float64(s.Failed))
		send(counter, "xdpmon_agent_store_dropped_windows_total", "Windows removed from the store by its limits of age or size.", float64(s.Dropped))
		send(gauge, "xdpmon_agent_store_disk_free_bytes", "Space left on the store's disk.", float64(s.Free))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// handler serves the endpoints of every run, and the agent's health.
func (a *Agent) handler() http.Handler {
	return a.out.Answers(func() outlet.Probe {
		h := a.Health()
		return outlet.Probe{Answer: h, Failing: h.Status == failing, Ready: h.Status != failing, Stuck: h.stuck}
	}, collector{a})
}
