package main

import "fmt"

// Selectors of series, by what a person has chosen.
const (
	host     = `instance=~"$host"`
	instance = `instance=~"$host",instance_name=~"$instance_name"`
	place    = "{{instance}} {{instance_name}} {{interface}} {{guest}}"
	each     = "instance, instance_name, interface, guest" // an interface, with whom it serves
)

// rate is a counter by the second, per interface.
func rate(metric string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s{%s}[$__rate_interval]))", each, metric, instance)
}

// share is a part of a whole, both counted.
func share(part, whole string) string { return rate(part) + " / " + rate(whole) }

func boards(n names) []board {
	return []board{fleet(n), oneHost(n), delays(n), losses(n), queues(n), shares(n), network(n)}
}

// latest is a panel of gauges of the latest window, with the ends of their intervals where they have some.
func (n names) latest(title, algorithm, name string, bounds ...string) panel {
	m := n.of(algorithm, name)
	p := panel{title: title, about: m.meaning, unit: m.grafana(), targets: []target{{fmt.Sprintf("%s{%s}", m.name, instance), place}}}
	for _, b := range bounds {
		p.targets = append(p.targets, target{fmt.Sprintf("%s{%s}", m.suffixed(b), instance), place + " " + b[1:]})
	}
	return p
}

// perSecond is a panel of a counter.
func (n names) perSecond(title, algorithm, name string) panel {
	m := n.of(algorithm, name)
	unit := "short"
	if m.unit == "bytes" {
		unit = "Bps"
	}
	return panel{title: title, about: m.meaning + ", by the second", unit: unit, targets: []target{{rate(m.name), place}}}
}

// ofAll is a panel of a share of counters.
func (n names) ofAll(title, algorithm, part, whole string) panel {
	p, w := n.of(algorithm, part), n.of(algorithm, whole)
	return panel{title: title, about: p.meaning + "; of: " + w.meaning, unit: "percentunit", targets: []target{{share(p.name, w.name), place}}}
}

var findingsNow = panel{title: "Open findings", about: "What is wrong, where, and how grave; docs/findings.md has each kind.", kind: rows, width: 24,
	targets: []target{{`max by (instance, severity, kind, subject, subject_type, interface, guest) (xdpmon_finding{` + host + `})`, ""}}}

func fleet(n names) board {
	return board{uid: "xdpmon-fleet", title: "xdpmon: fleet", about: "All hosts: what is wrong, who measures, how much passes.", panels: []panel{
		{title: "Hosts", about: "Processes that are scraped.", kind: number, width: 6, unit: "short", targets: []target{{`count(xdpmon_info{` + host + `})`, ""}}},
		{title: "Critical findings", about: "A service fails, or a promise is broken.", kind: number, width: 6, unit: "short", targets: []target{{`count(xdpmon_finding{` + host + `,severity="critical"}) or vector(0)`, ""}}},
		{title: "Warnings", about: "Users notice.", kind: number, width: 6, unit: "short", targets: []target{{`count(xdpmon_finding{` + host + `,severity="warning"}) or vector(0)`, ""}}},
		{title: "Interfaces that are not attached", about: "Wanted, and missing or refused.", kind: number, width: 6, unit: "short", targets: []target{{`count(xdpmon_interface_attached{` + host + `} == 0) or vector(0)`, ""}}},
		findingsNow,
		{title: "Findings by kind", about: "How many are open.", unit: "short", targets: []target{{`sum by (kind) (xdpmon_finding{` + host + `})`, "{{kind}}"}}},
		{title: "Delay by host", about: "Largest 95th percentile of a host's instances, of the latest window.", unit: "s",
			targets: []target{{fmt.Sprintf(`max by (instance) (%s{%s,q="0.95"})`, n.of("fridge", "delay_ns").suffixed("_window"), host), "{{instance}}"}}},
		{title: "Traffic by host", about: "Bytes on the wire that passed the hooks, in bits a second.", unit: "bps", targets: []target{{`8 * sum by (instance) (rate(xdpmon_seen_bytes_total{` + host + `}[$__rate_interval]))`, "{{instance}}"}}},
		{title: "Packets by host", about: "Packets that passed the hooks; one may stand for several segments.", unit: "pps", targets: []target{{`sum by (instance) (rate(xdpmon_seen_packets_total{` + host + `}[$__rate_interval]))`, "{{instance}}"}}},
		{title: "Agents", about: "1: every instance measures and the store keeps.", unit: "short", targets: []target{{`xdpmon_agent_healthy{` + host + `}`, "{{instance}}"}}},
		{title: "Agents at coordinators", about: "By state, as coordinators know them.", unit: "short", targets: []target{{`sum by (state) (xdpmon_coordinator_agents{` + host + `})`, "{{state}}"}}},
		{title: "Windows on their way", about: "Batches that a coordinator has not received.", unit: "short", targets: []target{{`xdpmon_agent_bus_waiting_batches{` + host + `}`, "{{instance}}"}}},
		{title: "Clocks", about: "An agent's wall clock ahead of its coordinator's.", unit: "s", targets: []target{{`xdpmon_agent_bus_clock_offset_seconds{` + host + `}`, "{{instance}}"}}},
	}}
}

func oneHost(n names) board {
	return board{uid: "xdpmon-host", title: "xdpmon: one host", about: "Interfaces of a host: traffic, delays, and how the measuring works.", instances: true, panels: []panel{
		findingsNow,
		{title: "Traffic", about: "Bytes on the wire that passed the hook, in bits a second.", unit: "bps", targets: []target{{"8 * " + rate("xdpmon_seen_bytes_total"), place}}},
		{title: "Packets", about: "Packets that passed the hook.", unit: "pps", targets: []target{{rate("xdpmon_seen_packets_total"), place}}},
		{title: "Delay, 95th percentile", about: n.of("fridge", "delay_ns").meaning + ", latest window", unit: "s",
			targets: []target{{fmt.Sprintf(`%s{%s,q="0.95"}`, n.of("fridge", "delay_ns").suffixed("_window"), instance), place}}},
		{title: "Interfaces", about: "1: the programs are on the interface, 0: they are not.", unit: "short", targets: []target{{`xdpmon_interface_attached{` + instance + `}`, place}}},
		{title: "Packets that were not parsed", about: "By reason: the headers are cut, malformed, or of a protocol that is not read.", unit: "pps",
			targets: []target{{`sum by (instance, instance_name, interface, guest, reason) (rate(xdpmon_unparsed_packets_total{` + instance + `}[$__rate_interval]))`, place + " {{reason}}"}}},
		{title: "What could not be seen", about: "By algorithm and kind, which count different things.", unit: "short",
			targets: []target{{`sum by (instance, algorithm, kind) (rate(xdpmon_lost_events_total{` + instance + `}[$__rate_interval])) > 0 or sum by (instance, algorithm) (rate(xdpmon_windows_total{` + instance + `}[$__rate_interval])) * 0`, "{{instance}} {{algorithm}} {{kind}}"}}},
		{title: "Memory of registers", about: "Register arrays and tallies, all banks and CPUs.", unit: "bytes", targets: []target{{`sum by (instance, instance_name, algorithm) (xdpmon_register_memory_bytes{` + instance + `})`, "{{instance}} {{instance_name}} {{algorithm}}"}}},
		{title: "Age of the latest window", about: "More than three windows: the process is stuck.", unit: "s", targets: []target{{`time() - xdpmon_last_window_timestamp_seconds{` + instance + `}`, place}}},
	}}
}

func delays(n names) board {
	d := n.of("fridge", "delay_ns")
	quantile := func(q string, bounds ...string) panel {
		p := panel{title: "Percentile " + q + " with its interval", about: d.meaning + "; 95 % confidence", unit: "s"}
		for _, b := range append([]string{""}, bounds...) {
			p.targets = append(p.targets, target{fmt.Sprintf(`%s{%s,q=%q}`, d.suffixed("_window"+b), instance, q), place + " " + b})
		}
		return p
	}
	return board{uid: "xdpmon-delays", title: "xdpmon: delays", about: "How long requests wait, corrected for what a small table cannot keep.", instances: true, panels: []panel{
		quantile("0.5", "_low", "_high"), quantile("0.95", "_low", "_high"),
		{title: "95th percentile of five minutes, classic buckets", about: d.meaning, unit: "s", targets: []target{{
			fmt.Sprintf("histogram_quantile(0.95, sum by (%s, le) (rate(%s_bucket{%s}[5m])))", each, d.name, instance), place}}},
		{title: "Median and mean of five minutes, all that is chosen", about: d.meaning, unit: "s", targets: []target{
			{fmt.Sprintf("histogram_quantile(0.5, sum by (le) (rate(%s_bucket{%s}[5m])))", d.name, instance), "median"},
			{fmt.Sprintf("sum(rate(%[1]s_sum{%[2]s}[5m])) / sum(rate(%[1]s_count{%[2]s}[5m]))", d.name, instance), "mean"}}},
		{title: "Delay of each guest", about: "95th percentile of the latest window, with whom the interface serves.", unit: "s", targets: []target{{
			fmt.Sprintf(`max by (instance, guest) (%s{%s,q="0.95",guest!=""})`, d.suffixed("_window"), instance), "{{instance}} {{guest}}"}}},
		n.latest("Answered share", "fridge", "match_rate"),
		n.perSecond("Requests", "fridge", "requests"), n.perSecond("Requests that were sent again", "fridge", "repeated"),
	}}
}

func losses(n names) board {
	return board{uid: "xdpmon-losses", title: "xdpmon: losses and order", about: "What is missing, sent again or out of order, as shares of what was compared.", instances: true, panels: []panel{
		n.ofAll("Sent again", "lean", "retransmitted", "retrans_compared"),
		n.perSecond("Sent again", "lean", "retransmitted"),
		n.perSecond("Bytes that are missing", "lean", "loss_missing"),
		n.ofAll("Out of order", "reorder", "out_of_order", "watched"),
		n.latest("Out of order, with bounds of all packets' share", "reorder", "out_of_order_share", "_at_least", "_at_most"),
		n.perSecond("Packets later than their flow's maximum", "lean", "ooo_behind"),
		{title: "Dropped and marked here", about: "Packets that an algorithm of xdpmon dropped, or gave an ECN mark.", unit: "pps", targets: []target{{rate("xdpmon_dropped_packets_total"), place + " dropped"}, {rate("xdpmon_marked_packets_total"), place + " marked"}}},
		{title: "Dropped by the kernel", about: "Packets that the kernel dropped, by its own reason (kernel_drops: true in the agent's file); those that xdpmon drops are TC_INGRESS, TC_EGRESS or XDP here. xdpmon drops explains the reasons.", unit: "pps",
			targets: []target{{`sum by (instance, interface, guest, reason) (rate(xdpmon_kernel_dropped_packets_total{` + host + `}[$__rate_interval]))`, "{{instance}} {{interface}} {{guest}} {{reason}}"}}},
		n.ofAll("Compared share of what was examined", "lean", "retrans_compared", "retrans_examined"),
	}}
}

func queues(n names) board {
	return board{uid: "xdpmon-queues", title: "xdpmon: queues", about: "How long packets wait in queues, and whose they are.", instances: true, panels: []panel{
		n.latest("Mean delay", "conquest", "mean_delay_ns"), n.latest("Longest delay", "conquest", "peak_delay_ns"),
		n.ofAll("Share that waits", "conquest", "congested", "departures"),
		n.ofAll("Share of culprits", "conquest", "of_culprits", "departures"),
		n.perSecond("Packets that waited long", "conquest", "congested"), n.latest("Longest burst", "conquest", "longest_burst_ns"),
		n.perSecond("Departures", "conquest", "departures"),
		{title: "Findings about queues", about: "Who fills them, and what they drop.", kind: rows, targets: []target{{`max by (instance, kind, subject, interface) (xdpmon_finding{` + host + `,kind=~"queue-delay|link-full|unfair-user|loss-in-queue"}) or 0 * max by (instance) (xdpmon_findings{` + host + `})`, ""}}},
	}}
}

func shares(n names) board {
	of := func(title, name string, unit string) panel {
		m := n.of("ahab", "slices[]."+name)
		return panel{title: title, about: m.meaning, unit: unit, targets: []target{{fmt.Sprintf("%s{%s}", m.name, instance), "{{instance}} {{slice}}"}}}
	}
	bits := func(title, name string) panel {
		p := of(title, name, "bps")
		p.targets[0].expr = "8 * " + p.targets[0].expr
		return p
	}
	return board{uid: "xdpmon-slices", title: "xdpmon: slices", about: "Who gets how much of a link.", instances: true, panels: []panel{
		bits("Demand", "demand"), bits("Used", "used"), bits("Capacity", "capacity"),
		of("Users above the limit", "users_above", "short"),
		n.perSecond("Bytes dropped", "ahab", "dropped_bytes"), n.perSecond("Bytes offered", "ahab", "offered_bytes"),
		n.ofAll("Dropped share", "ahab", "dropped_bytes", "offered_bytes"),
		n.perSecond("Passed without a limit", "ahab", "unlimited"),
	}}
}

func network(n names) board {
	return board{uid: "xdpmon-network", title: "xdpmon: network", about: "Heavy flows and networks, scans and floods. Rows that traffic names are in the page and the API; here they need metrics_rows.", instances: true, panels: []panel{
		n.perSecond("Packets counted for heavy flows", "precision", "total"),
		n.latest("A flow with so many has an entry", "precision", "unseen_below"),
		{title: "Scans and floods", about: "Those that are open.", kind: rows, targets: []target{{`max by (instance, kind, subject, interface) (xdpmon_finding{` + host + `,kind=~"scan|flood|flood-many-sources"}) or 0 * max by (instance) (xdpmon_findings{` + host + `})`, ""}}},
		{title: "Alerts by query", about: n.of("beaucoup", "queries[].alerts").meaning, unit: "short", targets: []target{{fmt.Sprintf("sum by (instance, query) (increase(%s{%s}[1h]))", n.of("beaucoup", "queries[].alerts").name, instance), "{{instance}} {{query}}"}}},
		{title: "Distinct counts without a place", about: "Coupons whose collector's place is another's: a larger beaucoup.entries would have counted them.", unit: "cps", targets: []target{{`rate(xdpmon_lost_events_total{` + instance + `,algorithm="beaucoup",kind="collided"}[$__rate_interval])`, place}}},
		n.latest("Elephants of the whole network", "carpe", "elephants"),
		n.ofAll("Packets whose flow has an entry", "precision", "matched", "total"),
		n.perSecond("Coupons drawn", "beaucoup", "coupons_drawn"),
	}}
}
