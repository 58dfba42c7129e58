// Package gathered merges the findings of many hosts with the same cause, by kind and subject, into one, which a coordinator publishes.
package gathered

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/finding"
)

// Times of gathering.
const (
	// stale: a host that has been silent for this long has no findings. Agents send theirs every 20 s.
	stale = 70 * time.Second
	// settle is how long a finding waits for other hosts before it starts: their windows end within a second, and agents evaluate every 2 s.
	settle = 5 * time.Second
)

// Bounds of the stored findings, whatever hosts send.
const (
	mostHosts  = 1 << 17
	mostJoined = 1024 // findings of all hosts together
	mostText   = 1024 // bytes of a part of a sentence
	mostName   = 256
	mostNames  = 5 // hosts named in a sentence
)

// Gatherer holds the findings of hosts. It is safe for concurrent use.
type Gatherer struct {
	// Links returns the suspect links of a finding; nil: no paths are configured.
	Links func(finding.Finding) []string

	mu    sync.Mutex
	hosts map[string]*host
	own   []finding.Finding
	first map[string]time.Time // of current keys: time of their first appearance
	begun map[string]int64     // ... and of their start, which IDs contain
}

type host struct {
	findings []finding.Finding
	subjects []netip.Prefix
	at       time.Time
}

// New returns a Gatherer without findings.
func New() *Gatherer {
	return &Gatherer{hosts: map[string]*host{}, first: map[string]time.Time{}, begun: map[string]int64{}}
}

// Put replaces a host's findings, and the networks and hosts that it could judge. Everything is cut to its bounds: a host is not trusted to send
// only what an agent does.
func (g *Gatherer) Put(name string, findings []finding.Finding, subjects []string, now time.Time) {
	h := &host{at: now}
	for _, f := range findings {
		h.findings = append(h.findings, bounded(f, now))
	}
	for _, s := range subjects {
		if p := prefixOf(s); p.IsValid() {
			h.subjects = append(h.subjects, p)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hosts[name] == nil && len(g.hosts) >= mostHosts {
		return
	}
	g.hosts[name] = h
}

// bounded cuts a host's finding to the sizes of an agent's.
func bounded(f finding.Finding, now time.Time) finding.Finding {
	for _, text := range []*string{&f.Because, &f.Next, &f.What} {
		*text = cut(*text, mostText)
	}
	for _, name := range []*string{&f.Subject.Name, &f.Interface} {
		*name = cut(*name, mostName)
	}
	f.Severity, f.State, f.Until = finding.Of(f.Kind), finding.GoesOn, 0
	f.Since = min(f.Since, now.UnixNano())
	f.Evidence = f.Evidence[:min(len(f.Evidence), 16)]
	f.Hosts, f.Known, f.Links = nil, 0, nil
	return f
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Own replaces the coordinator's own findings in merged windows.
func (g *Gatherer) Own(findings []finding.Finding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = slices.Clone(findings)
}

// Forget drops everything: another coordinator leads.
func (g *Gatherer) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.hosts)
	clear(g.first)
	clear(g.begun)
	g.own = nil
}

// seen is one finding of one host; "" is the coordinator itself.
type seen struct {
	host string
	*finding.Finding
}

// local are the types of subjects that differ between hosts.
func local(s finding.Subject) bool {
	switch s.Type {
	case finding.Interface, finding.Queue, finding.Link, finding.Instance, finding.Slice, finding.Domain:
		return true
	}
	return false
}

// Open are the active findings, those of one cause as one, the most severe first.
func (g *Gatherer) Open(now time.Time) []finding.Finding {
	list := g.open(now)
	if g.Links != nil { // without the lock: the owner of the paths has one of its own
		for i := range list {
			list[i].Links = g.Links(list[i])
		}
	}
	return list
}

func (g *Gatherer) open(now time.Time) []finding.Finding {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, h := range g.hosts {
		if now.Sub(h.at) > stale {
			delete(g.hosts, name)
		}
	}
	groups := g.groups()
	for key := range g.first {
		if groups[key] == nil {
			delete(g.first, key)
			delete(g.begun, key)
		}
	}
	list := []finding.Finding{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if g.first[key].IsZero() {
			g.first[key] = now
		}
		if now.Sub(g.first[key]) >= settle {
			list = append(list, g.one(key, groups[key]))
		}
	}
	slices.SortFunc(list, func(a, b finding.Finding) int { return finding.Worse(&a, &b) })
	return list[:min(len(list), mostJoined)]
}

// groups are the findings of the same subject, by the key of the merged finding.
func (g *Gatherer) groups() map[string][]seen {
	groups := map[string][]seen{}
	for name, h := range g.hosts {
		for i := range h.findings {
			f := h.findings[i]
			if local(f.Subject) {
				f.Subject.Name = name + ":" + f.Subject.Name
			}
			groups[f.Key()] = append(groups[f.Key()], seen{name, &f})
		}
	}
	for i := range g.own {
		f := &g.own[i]
		groups[f.Key()] = append(groups[f.Key()], seen{"", f})
	}
	return contained(groups)
}

// contained adds the findings of a part of a network to those of the whole.
func contained(groups map[string][]seen) map[string][]seen {
	type network struct {
		key string
		at  netip.Prefix
	}
	byKind := map[finding.Kind][]network{}
	for key, list := range groups {
		if p := prefixOf(list[0].Subject.Name); p.IsValid() {
			byKind[list[0].Kind] = append(byKind[list[0].Kind], network{key, p})
		}
	}
	for _, networks := range byKind {
		slices.SortFunc(networks, func(a, b network) int {
			return cmp.Or(cmp.Compare(a.at.Bits(), b.at.Bits()), cmp.Compare(a.key, b.key))
		})
		var whole []network
		for _, n := range networks {
			at := slices.IndexFunc(whole, func(w network) bool { return w.at.Contains(n.at.Addr()) })
			if at < 0 {
				whole = append(whole, n)
				continue
			}
			groups[whole[at].key] = append(groups[whole[at].key], groups[n.key]...)
			delete(groups, n.key)
		}
	}
	return groups
}

// prefixOf is a network or a host; invalid if a name is neither.
func prefixOf(name string) netip.Prefix {
	if p, err := netip.ParsePrefix(name); err == nil {
		return p.Masked()
	}
	if a, err := netip.ParseAddrPort(name); err == nil {
		return netip.PrefixFrom(a.Addr(), a.Addr().BitLen())
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	return netip.Prefix{}
}

// one merges a group: the worst value, the earliest start, and the hosts that see it of those that could.
func (g *Gatherer) one(key string, list []seen) finding.Finding {
	slices.SortFunc(list, func(a, b seen) int { return cmp.Or(finding.Worse(a.Finding, b.Finding), cmp.Compare(a.host, b.host)) })
	f := *list[0].Finding
	var interfaces []string
	for _, s := range list {
		if name := widest(list); name.Name != "" {
			f.Subject = name
		}
		f.Since, f.Seen, f.Windows = min(f.Since, s.Since), max(f.Seen, s.Seen), max(f.Windows, s.Windows)
		if s.host != "" {
			f.Hosts = append(f.Hosts, s.host)
		}
		interfaces = append(interfaces, s.Interface)
	}
	slices.Sort(f.Hosts)
	slices.Sort(interfaces)
	f.Hosts = slices.Compact(f.Hosts)
	interfaces = slices.Compact(interfaces)
	f.Interface = strings.Join(interfaces[:min(len(interfaces), mostNames)], ",")
	if local(f.Subject) {
		f.Hosts = nil // its name contains the host
	} else if len(f.Hosts) > 0 {
		f.Known = g.could(f.Subject, f.Hosts)
		f.Because = g.who(f)
	}
	if host := list[0].host; host != "" {
		f.Next = onHost(f.Next, host)
	}
	if g.begun[key] == 0 {
		g.begun[key] = f.Since
	}
	f.ID = key + " " + finding.Clock(g.begun[key])
	f.State = finding.GoesOn
	return f
}

// commands of a finding's steps have to be given on the host that found it.
var commands = regexp.MustCompile(`(^|; )(\d+\. )?(xdpmon|tc|mtr|dig|ntpdate|ping|ip route) `)

// onHost names the host in the steps that are its commands: the one whose values the finding has.
func onHost(next, host string) string {
	return commands.ReplaceAllString(next, "${1}${2}on "+strings.ReplaceAll(host, "$", "")+", ${3} ")
}

// widest is the largest network among the subjects; "" if they are not networks.
func widest(list []seen) (s finding.Subject) {
	bits := 129
	for _, one := range list {
		if p := prefixOf(one.Subject.Name); p.IsValid() && p.Bits() < bits {
			s, bits = one.Subject, p.Bits()
		}
	}
	return s
}

// could is how many hosts could have found the same: those that have, and those whose windows include the network. Of other subjects, all.
func (g *Gatherer) could(s finding.Subject, hosts []string) int {
	return len(hosts) + len(g.others(s, hosts))
}

func (g *Gatherer) others(s finding.Subject, hosts []string) (names []string) {
	p := prefixOf(s.Name)
	for name, h := range g.hosts {
		if _, has := slices.BinarySearch(hosts, name); has {
			continue
		}
		if !p.IsValid() || slices.ContainsFunc(h.subjects, p.Overlaps) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// who adds to the cause which hosts see it, and which do not.
func (g *Gatherer) who(f finding.Finding) string {
	parts := []string{"seen by " + some(f.Hosts)}
	if f.Because != "" {
		parts = append([]string{f.Because}, parts...)
	}
	if others := g.others(f.Subject, f.Hosts); len(others) > 0 {
		parts = append(parts, "not by "+some(others))
	}
	return strings.Join(parts, "; ")
}

func some(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}
