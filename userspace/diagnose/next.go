package diagnose

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// steps numbers what to do next: each is a command or a place to look at, a colon, and what its result means. finding.Steps takes them apart.
func steps(list ...string) string {
	var text []string
	for _, s := range list {
		if s != "" {
			text = append(text, fmt.Sprintf("%d. %s", len(text)+1, s))
		}
	}
	return strings.Join(text, "; ")
}

// windowsOf is the step that shows the windows of a reading; a capture has no store.
func windowsOf(r *finding.Reading) string {
	return history(r) + ": " + cmp.Or(measures[r.Algorithm], "its values") + " in each window: when they changed, and what changed with them"
}

// measures are what algorithms measure: their names are known to few who read a finding.
var measures = map[string]string{
	"ahab": "rates of users", "beaucoup": "alerts", "carpe": "heavy flows of the network", "conquest": "waits in the queue", "fridge": "delays and answers", "hhh": "heavy networks",
	"lean": "losses, repetitions and reordering", "precision": "the largest flows", "reorder": "reordering", "waits": "connections that wait, and for whom",
}

// trace is the step that finds the hop with a delay or loss on the way to a network or host.
func (v *view) trace(subject string, r *finding.Reading) string {
	to := v.hostIn(subject, r)
	if to == "" {
		to = "ADDRESS (any host of " + subject + ")"
	}
	return "mtr -rwc 100 " + to + ": what begins at one hop and stays until the last is caused at that hop; loss or delay of a single hop only is not"
}

// hostIn is a host of a subject that can be examined: the subject itself, otherwise a blamed one, one that is late or whose values are unusual, or any that a
// window names.
func (v *view) hostIn(subject string, r *finding.Reading) string {
	if a, err := netip.ParseAddr(subject); err == nil {
		return a.String()
	}
	p, err := netip.ParsePrefix(subject)
	inside := func(text string) bool {
		a, parsed := netip.ParseAddr(text)
		return parsed == nil && (err != nil || p.Contains(a))
	}
	for _, b := range r.Blames {
		for _, end := range []string{b.Source, b.Destination} {
			if err == nil && inside(end) {
				return end
			}
		}
	}
	type candidate struct {
		name string
		rank int
	}
	var hosts []candidate
	for _, list := range v.by {
		for _, o := range list {
			if o.Subject.Type != finding.Host || err != nil || !inside(o.Subject.Name) {
				continue
			}
			c := candidate{o.Subject.Name, 2}
			if o.Apart || o.Active {
				c.rank = 1
			}
			if c.rank == 1 && o.Symptom == r.Symptom {
				c.rank = 0
			}
			hosts = append(hosts, c)
		}
	}
	if len(hosts) == 0 {
		return ""
	}
	return slices.MinFunc(hosts, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name)) }).name
}

// listed is how many flows or addresses a sentence names.
const listed = 3

// largest names the flows with the largest parts, with their share of all that are named: "; largest flows: A > B 40 %, ...".
func largest(blames []finding.Blame) string {
	blames = slices.Clone(blames)
	sum := 0.
	for _, b := range blames {
		sum += b.Part
	}
	slices.SortStableFunc(blames, func(a, b finding.Blame) int { return cmp.Or(cmp.Compare(b.Part, a.Part), cmp.Compare(a.Flow, b.Flow)) })
	var names []string
	for _, b := range blames[:min(len(blames), listed)] {
		if b.Part > 0 && b.Flow != "" {
			names = append(names, b.Flow+" "+report.Human(b.Part/sum, report.Ratio))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; largest flows: " + strings.Join(names, ", ")
}

// sources names the addresses that send most to a host, as far as the table of large flows has some.
func (v *view) sources(host string) string {
	parts := map[string]float64{}
	for _, r := range v.by[finding.FlowShare] {
		for _, b := range r.Blames {
			if b.Destination == host && b.Source != "" && b.Part > 0 {
				parts[b.Source] += b.Part
			}
		}
	}
	var names []string
	for a := range parts {
		names = append(names, a)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b)) })
	if len(names) == 0 {
		return v.risen(host)
	}
	return "; of the large flows, most packets to it are from " + strings.Join(names[:min(len(names), listed)], ", ")
}

// risen names the networks that have far more of the traffic than usual: of a flood of small flows hhh has what the table of large flows has not.
// The network of the host itself sends answers.
func (v *view) risen(host string) string {
	victim, err := netip.ParseAddr(host)
	var list []*finding.Reading
	for _, r := range v.by[finding.PrefixShare] {
		if p, bad := netip.ParsePrefix(r.Subject.Name); r.Apart && err == nil && bad == nil && !p.Contains(victim) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *finding.Reading) int {
		return cmp.Or(cmp.Compare(b.Value.Value, a.Value.Value), cmp.Compare(a.Subject.Name, b.Subject.Name))
	})
	var names []string
	for _, r := range list[:min(len(list), listed)] {
		names = append(names, r.Subject.Name+" "+report.Human(r.Value.Value, report.Ratio))
	}
	if len(names) == 0 {
		return ""
	}
	return "; networks that send more than usual meanwhile: " + strings.Join(names, ", ") + " of all packets"
}

// at names where a reading was taken.
func at(r *finding.Reading) string {
	if r.Command != "" {
		return "the place of the capture"
	}
	return r.Instance
}

// sentAgain is why segments are lost after this place; a capture does not show the queue.
func sentAgain(r *finding.Reading) string {
	if r.Command != "" {
		return "segments that had passed the place of the capture are sent again"
	}
	return "segments that left " + r.Instance + " are sent again, and its own queue drops nothing"
}

// flowsOf is the step that lists who sends to a host.
func flowsOf(r *finding.Reading, host string) string {
	return look(r) + " --algo precision --set precision.key=srcdst: the largest senders of packets to " + host
}

// Counters of links.
const (
	counters   = "ip -s link and ethtool -S of each interface on the path: the one whose errors or drops increase loses them"
	linksKnown = "with xdpmon on several hosts the coordinator lists suspect links (docs/coordinator.md)"
)

// shape is what to do about a queue that stands because of all who use it.
const shape = "a faster link, or fair shares by flow: tc qdisc replace dev INTERFACE root fq_codel (or cake), which removes the present queue and its limits: note them first (tc qdisc show dev INTERFACE)"

func shaped(instance string) string { return strings.ReplaceAll(shape, "INTERFACE", instance) }

func queueCounters(r *finding.Reading) string {
	return "tc -s qdisc show dev " + r.Instance + ": dropped and backlog increase while the queue is full"
}

// askAgain are the steps for a server or network that does not answer.
func (v *view) askAgain(k finding.Kind, g, r *finding.Reading) string {
	host := v.orAny(hostOf(g.Subject), g)
	switch k {
	case finding.DNSUnanswered:
		return steps("dig @"+host+" from this host: an answer means that the path of its clients is broken; none, that the server or the path to it is", v.trace(host, g), windowsOf(r))
	case finding.NTPUnanswered:
		return steps("ntpdate -q "+host+" from this host: an answer means that the path of its clients is broken; none, that the server or the path to it is", v.trace(host, g), windowsOf(r))
	}
	return steps("ping "+host+": an answer means that it is up and does not listen, or a firewall drops; none, that it or the path to it is down", "ss -ltn on "+host+": lists the ports on which it listens", windowsOf(r))
}

// orAny is a host of a subject, or the subject if none is known.
func (v *view) orAny(subject string, r *finding.Reading) string {
	return cmp.Or(v.hostIn(subject, r), subject)
}

// senderOf is the sending address of a flow or host.
func senderOf(s finding.Subject) string {
	from, _, _ := strings.Cut(s.Name, " > ")
	return from
}
