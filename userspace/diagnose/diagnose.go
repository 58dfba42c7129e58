// Package diagnose makes findings of what several algorithms show of the same windows: what an algorithm's rules measured, beside what was
// expected of it (package finding). Diagnose is a pure function of one round of readings; an Engine keeps the rounds, and the findings from
// their begin to their end.
package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// view is a round of readings, by symptom.
type view struct {
	by    map[finding.Symptom][]*finding.Reading
	found []finding.Finding
}

// Diagnose makes findings of a round: one reading of every stream.
func Diagnose(readings []finding.Reading) []finding.Finding {
	v := &view{by: map[finding.Symptom][]*finding.Reading{}}
	for i := range readings {
		r := &readings[i]
		v.by[r.Symptom] = append(v.by[r.Symptom], r)
	}
	v.promises()
	v.attacks()
	v.silence()
	v.services()
	v.queues()
	v.losses()
	v.delays()
	v.networks()
	v.measuring()
	return v.distinct()
}

func (v *view) active(s finding.Symptom) (list []*finding.Reading) {
	for _, r := range v.by[s] {
		if r.Active && r.Broken == nil {
			list = append(list, r)
		}
	}
	return list
}

func (v *view) apart(symptoms ...finding.Symptom) bool {
	for _, s := range symptoms {
		for _, r := range v.by[s] {
			if r.Apart || r.Active {
				return true
			}
		}
	}
	return false
}

func (v *view) has(kinds ...finding.Kind) bool {
	return slices.ContainsFunc(v.found, func(f finding.Finding) bool { return slices.Contains(kinds, f.Kind) })
}

// add makes a finding of the reading that leads to it.
func (v *view) add(k finding.Kind, s finding.Subject, r *finding.Reading, because, next string) *finding.Finding {
	v.found = append(v.found, finding.Finding{ID: string(k) + " " + s.Name + " " + finding.Clock(r.Since), Kind: k, Severity: finding.Of(k), Subject: s, Interface: r.Instance, Since: r.Since, Seen: r.Latest,
		Windows: r.Windows, Value: r.Value, Expected: r.Expected, What: r.What, Because: because, Next: next, Evidence: r.Evidence, Harm: r.Times(), Lead: finding.KeyOf(&r.Measure), Fresh: r.Apart})
	return &v.found[len(v.found)-1]
}

// distinct leaves of findings with the same kind and subject the first.
func (v *view) distinct() (list []finding.Finding) {
	at := map[string]int{}
	for _, f := range v.found {
		i, twice := at[f.Key()]
		if !twice {
			at[f.Key()] = len(list)
			list = append(list, f)
			continue
		}
		if g := &list[i]; !slices.Contains(strings.Split(g.Interface, ","), f.Interface) {
			g.Interface += "," + f.Interface
		}
	}
	slices.SortStableFunc(list, func(a, b finding.Finding) int { return finding.Worse(&a, &b) })
	return list
}

func iface(name string) finding.Subject {
	return finding.Subject{Type: finding.Interface, Name: name}
}

// history is the command that shows the windows of a reading.
func history(r *finding.Reading) string {
	return fmt.Sprintf("xdpmon history --algo %s --interface %s", r.Algorithm, r.Instance)
}

func (v *view) promises() {
	for _, s := range []finding.Symptom{finding.HandshakeLateP99, finding.HandshakeLateP95, finding.HandshakeLate, finding.DataLate, finding.DNSLate, finding.NTPLate, finding.Holes, finding.Resent,
		finding.SliceUnfair} {
		for _, r := range v.by[s] {
			if r.Active && r.Broken != nil {
				v.add(finding.PromiseBroken, r.Subject, r, "promised: "+r.Broken.String(), "the findings beside this one name the cause; "+history(r))
			}
		}
	}
}

// hostOf is the address of a host or service.
func hostOf(s finding.Subject) string {
	if a, err := netip.ParseAddrPort(s.Name); err == nil {
		return a.Addr().String()
	}
	return s.Name
}

// syn reports whether an alert is of connections that are opened: a victim answers its flood, and the scanned answer their scanner.
func syn(r *finding.Reading) bool {
	return !slices.Contains(r.Evidence, "beaucoup.alerts[superspreader]")
}

func (v *view) attacks() {
	scanners, victims, opened := map[string]bool{}, map[string]*finding.Reading{}, map[string]*finding.Reading{}
	for _, r := range v.active(finding.Scanning) {
		scanners[r.Subject.Name] = scanners[r.Subject.Name] || syn(r)
	}
	for _, r := range v.active(finding.FloodedByMany) {
		victims[hostOf(r.Subject)] = r
	}
	for _, r := range v.active(finding.Flooded) {
		opened[hostOf(r.Subject)] = r
	}
	for host, r := range victims {
		if scanners[host] { // those who were scanned answer
			continue
		}
		because := ""
		if o := opened[host]; o != nil {
			because = fmt.Sprintf("connections to %s are opened and not completed: a SYN flood whose sources are made up, or of many machines", o.Subject.Name)
		}
		v.add(finding.FloodManySources, r.Subject, r, because, "block or rate-limit upstream of this host: sources are too many to list; SYN cookies for TCP")
	}
	for host, r := range opened {
		if victims[host] == nil {
			v.add(finding.Flood, r.Subject, r, "the connections are opened from few addresses", "precision names the flows (xdpmon attach --algo precision); block the sources, SYN cookies")
		}
	}
	for _, r := range v.active(finding.Scanning) {
		if !syn(r) { // whoever answers many sends to many, too
			continue
		}
		host := r.Subject.Name
		because := ""
		if len(r.Blames) > 0 {
			because = r.Blames[0].Flow
		}
		v.add(finding.Scan, r.Subject, r, because, "who runs "+host+"? a scanner of your own, or a host that somebody took over")
	}
}

// silence is requests that nobody answers.
func (v *view) silence() {
	if v.has(finding.Flood, finding.FloodManySources, finding.Scan) {
		return // what they open is not answered
	}
	if list := v.active(finding.NoResponse); len(list) > 0 {
		v.silent(list[0]) // every interface of an instance says the same
		return
	}
	for _, r := range v.active(finding.HandshakeRefused) {
		v.unanswered(finding.Unanswered, finding.HandshakeVanished, r, "its other clients and servers answer as usual", "is it up, and does it listen? ping and curl a host of it from here; "+history(r))
	}
}

// silent is about an instance on which no handshake is answered.
func (v *view) silent(r *finding.Reading) {
	if !v.carries(r.Instance) {
		v.add(finding.Unanswered, iface(r.Instance), r, "not one SYN-ACK arrives, and no connection carries data", "are the servers up, and is there a route back? "+history(r))
		return
	}
	f := v.add(finding.OneDirection, iface(r.Instance), r, "connections carry data, so their handshakes were answered on another path",
		"attach to the interface on which answers come back, too, or --direction both; delays and losses of this interface are not meaningful until then")
	f.Evidence = append(f.Evidence, "lean.ooo_examined")
}

// carries reports whether an instance sees about as much data as usual.
func (v *view) carries(instance string) bool {
	for _, r := range v.by[finding.DataSegments] {
		if r.Instance == instance && r.Value.Value > 50 && !r.Apart {
			return true
		}
	}
	return false
}

// together is how many windows before the refusals answers of their subject may have begun to vanish.
const together = 3

// surely is how many windows it takes until more requests without fewer answers are called unanswered.
const surely = 4

// unanswered names the subjects whose answers vanished; where there are none, the interface.
func (v *view) unanswered(k finding.Kind, vanished finding.Symptom, r *finding.Reading, because, next string) {
	var gone, all int
	var worst []*finding.Reading
	length := (r.Latest - r.Since) / int64(max(1, r.Windows))
	for _, g := range v.by[vanished] {
		if g.Instance != r.Instance || !g.Known || g.Expected.Value < 1 || g.Subject.Type == finding.Host && v.lateAt(network(g.Subject.Name), vanished) {
			continue
		}
		all++
		if (g.Apart || g.Active) && g.Since >= r.Since-together*length { // who fell silent long before was not asked any more
			gone++
			worst = append(worst, g)
		}
	}
	if gone == 0 && r.Windows < surely {
		return // somebody asks what nobody serves: a scan or a flood says so soon
	}
	if gone == 0 || gone == all && all > 2 {
		because := fmt.Sprintf("%d of %d servers and networks give fewer answers than usual", gone, all)
		if gone == 0 {
			because = "those who answered before still do: what is not answered is asked of others"
			next = "xdpmon attach " + r.Instance + " --query 'asked: count distinct src+sport by dst+dport > 20 in 10s if tcp.syn and not tcp.ack' names who is asked"
		}
		v.add(k, iface(r.Instance), r, because, next)
		return
	}
	slices.SortFunc(worst, func(a, b *finding.Reading) int {
		return cmp.Or(cmp.Compare(b.Times(), a.Times()), cmp.Compare(a.Subject.Name, b.Subject.Name))
	})
	for _, g := range worst {
		f := v.add(k, g.Subject, r, fmt.Sprintf("%s of it, usually %s a window; %s", count(g.Value.Value, "answer"), report.Human(math.Round(g.Expected.Value), report.Count), because), next)
		f.Since, f.Harm, f.Evidence = min(r.Since, g.Since), g.Times(), append(slices.Clone(r.Evidence), g.Evidence...)
	}
}

func count(n float64, what string) string {
	n = math.Round(n)
	if n == 0 {
		return "no " + what
	}
	return report.Human(n, report.Count) + " " + what + "s"
}

func (v *view) services() {
	for _, s := range []struct {
		slow, dead                finding.Kind
		late, refused, vanished   finding.Symptom
		name, whatIsAsked, looked string
	}{
		{finding.DNSSlow, finding.DNSUnanswered, finding.DNSLate, finding.DNSRefused, finding.DNSVanished, "DNS", "names", "dig @"},
		{finding.NTPSlow, finding.NTPUnanswered, finding.NTPLate, finding.NTPRefused, finding.NTPVanished, "NTP", "the time", "ntpdate -q "},
	} {
		for _, r := range v.active(s.refused) {
			if v.has(finding.OneDirection) {
				continue
			}
			v.unanswered(s.dead, s.vanished, r, "whoever asks it for "+s.whatIsAsked+" waits", "is it up? ask it from here, and another one")
		}
		if late := v.active(s.late); len(late) > 0 {
			for _, r := range late {
				because := "the server or its upstream is slow"
				if v.apart(finding.HandshakeLate) {
					because = "handshakes are late, too: the network, perhaps"
				}
				v.add(s.slow, r.Subject, r, because, s.looked+r.Subject.Name+"; "+history(r))
			}
		}
	}
}

// Where a queue stands, and who is in it.
const (
	most = .5 // share of a queue that makes one flow the cause, for certain
	full = .6 // share of the packets that wait from which on the link is full
)

func (v *view) queues() {
	for _, r := range v.active(finding.SliceFull) {
		v.add(finding.LinkFull, r.Subject, r, topUsers(r.Blames), "more capacity for the slice, or fewer users; docs/ahab.md")
	}
	for _, r := range v.active(finding.SliceUnfair) {
		s := r.Subject
		if len(r.Blames) > 0 {
			s = finding.Subject{Type: finding.Flow, Name: r.Blames[0].Flow}
		}
		v.add(finding.UnfairUser, s, r, "of "+r.Subject.Name+topUsers(r.Blames), "ahab limits users to fair shares where it acts (ahab.dry-run=false)")
	}
	if v.has(finding.Flood, finding.FloodManySources) {
		return
	}
	for _, r := range v.active(finding.QueueStands) {
		drops := v.dropped(r.Instance)
		if top, ok := first(r.Blames); ok && top.Low >= most {
			v.add(finding.UnfairUser, finding.Subject{Type: finding.Flow, Name: top.Flow}, r,
				fmt.Sprintf("%s of what waits in the queue of %s is its own, at least%s", report.Human(top.Low, report.Ratio), r.Instance, drops),
				"limit or mark it (conquest.action=ecn, ahab); others wait because of it")
			continue
		}
		k, because, subject := finding.QueueDelay, "no single flow has half of the queue", r.Subject
		if r.Value.Value >= full {
			k, subject = finding.LinkFull, finding.Subject{Type: finding.Link, Name: r.Instance}
			because = "most packets wait, and no single flow has half of the queue"
		}
		v.add(k, subject, r, because+drops, "xdpmon attach "+r.Instance+" --algo conquest,precision names the flows; a faster link, or fair shares (ahab, fq_codel, cake)")
	}
	if v.has(finding.LinkFull, finding.UnfairUser, finding.QueueDelay) {
		return
	}
	for _, r := range v.active(finding.QueueDrops) {
		v.add(finding.LossInQueue, iface(r.Instance), r, "the queue is short: packets are dropped before they wait long", "tc -s qdisc show dev "+r.Instance+"; a longer queue or a faster link")
	}
}

func first(blames []finding.Blame) (finding.Blame, bool) {
	if len(blames) == 0 {
		return finding.Blame{}, false
	}
	return slices.MaxFunc(blames, func(a, b finding.Blame) int { return cmp.Compare(a.Low, b.Low) }), true
}

func (v *view) dropped(instance string) string {
	for _, r := range v.by[finding.QueueDrops] {
		if r.Instance == instance && r.Value.Value > 0 {
			return "; the queue drops " + report.Human(r.Value.Value, report.Ratio)
		}
	}
	return ""
}

func topUsers(blames []finding.Blame) string {
	var names []string
	for _, b := range blames[:min(len(blames), 3)] {
		names = append(names, b.Flow+" "+report.Human(b.Part, report.BitRate))
	}
	if len(names) == 0 {
		return ""
	}
	return "; most: " + strings.Join(names, ", ")
}

// losses: before this host what arrives has holes; in its own queue the queue counts it; after it what had passed is sent again.
func (v *view) losses() {
	queue := v.has(finding.LossInQueue, finding.LinkFull, finding.UnfairUser, finding.QueueDelay, finding.Flood, finding.FloodManySources)
	reordered := v.worst(finding.OutOfOrder)
	holes, resent := v.worst(finding.Holes), v.worst(finding.Resent)
	if reordered != nil && (holes == nil || holes.Value.Value < reordered.Value.Value/2) {
		s := common(reordered, false)
		because := "nothing is missing"
		if v.apart(finding.Resent, finding.Holes) {
			because = "senders take it for loss and send again, although next to nothing is missing"
			resent = nil
		}
		v.add(finding.Reordering, s, reordered, because, "parallel paths (ECMP by packet, link aggregation, a policer with several queues) on the way from there")
		holes = nil
	}
	if holes != nil {
		v.add(finding.LossBefore, common(holes, false), holes, "sequence numbers are missing when packets arrive: they were lost on the way to this host", "errors and drops of the links from there to here (ethtool -S, the switches' counters)"+suspects)
	}
	if resent != nil && !queue && !v.apart(finding.QueueDrops) {
		v.add(finding.LossAfter, common(resent, true), resent, "segments that had left here are sent again, and the own queue drops nothing", "errors and drops of the links from here to there"+suspects)
	}
}

const suspects = "; with many hosts: paths: in the coordinator's file names suspect links"

func (v *view) worst(s finding.Symptom) (worst *finding.Reading) {
	for _, r := range v.active(s) {
		if worst == nil || len(r.Blames) > 0 && r.Value.Low > worst.Value.Low {
			worst = r
		}
	}
	return worst
}

// Delays: which networks are late at once, and what else would explain it.
func (v *view) delays() {
	if v.has(finding.Flood, finding.FloodManySources, finding.LinkFull, finding.UnfairUser, finding.QueueDelay) {
		return // they wait here
	}
	late := v.hosts(v.active(finding.HandshakeLate))
	v.slow(late, "SYN-ACKs are late: the network towards the servers, or the servers' kernels", finding.DataLate, "ACKs of data from there are late, too")
	known := map[string]bool{}
	for _, r := range v.by[finding.HandshakeLate] {
		known[r.Subject.Name] = true
	}
	var clients []*finding.Reading
	for _, r := range v.active(finding.DataLate) {
		if !known[r.Subject.Name] {
			clients = append(clients, r)
		}
	}
	clients = append(clients, v.active(finding.ClientLate)...)
	v.slow(clients, "ACKs of what is sent there are late, SYN-ACKs of servers are not: the clients' side", "", "")
	if v.has(finding.SlowNetwork, finding.LossBefore, finding.LossAfter, finding.LossInQueue, finding.Unanswered, finding.Reordering) {
		return // connections last longer because of it
	}
	for _, r := range v.active(finding.DurationLong) {
		if v.lateAt(r.Subject.Name, finding.HandshakeLate) && r.Subject.Type != finding.Host || v.lateAt(network(r.Subject.Name), finding.HandshakeLate) {
			continue
		}
		v.add(finding.SlowServer, r.Subject, r, "connections last longer, while handshakes and the network are as usual: the servers take longer to answer", "load, locks and disks of the servers there; their own logs since then")
	}
}

// hosts makes findings of single servers that are late while their network is not, and returns the networks that are.
func (v *view) hosts(late []*finding.Reading) (networks []*finding.Reading) {
	for _, r := range late {
		if r.Subject.Type != finding.Host {
			networks = append(networks, r)
		}
	}
	for _, r := range late {
		if r.Subject.Type != finding.Host || v.lateAt(network(r.Subject.Name), finding.HandshakeLate) || len(networks) >= several {
			continue
		}
		v.add(finding.SlowServer, r.Subject, r, "its SYN-ACKs are late, those of other servers of "+network(r.Subject.Name)+" are not: this server, or its link", "load of "+r.Subject.Name+", length of its accept queue (ss -ltn); "+history(r))
	}
	return networks
}

// slow adds the networks that are late: one finding for several of one larger network.
func (v *view) slow(late []*finding.Reading, because string, also finding.Symptom, too string) {
	if len(late) == 0 {
		return
	}
	explain := func(name string) string {
		if also != "" && v.lateAt(name, also) {
			return because + "; " + too
		}
		return because
	}
	if s, ok := parent(late); ok {
		worst := slices.MaxFunc(late, func(a, b *finding.Reading) int { return cmp.Compare(a.Times(), b.Times()) })
		f := v.add(finding.SlowNetwork, s, worst, fmt.Sprintf("%d networks of it are late at once; %s", len(late), explain(worst.Subject.Name)), "mtr to a host of it; "+history(worst))
		for _, r := range late {
			f.Since = min(f.Since, r.Since)
		}
		return
	}
	for _, r := range late {
		v.add(finding.SlowNetwork, r.Subject, r, explain(r.Subject.Name), "mtr to a host of it; "+history(r))
	}
}

func (v *view) lateAt(subject string, s finding.Symptom) bool {
	for _, r := range v.by[s] {
		if r.Subject.Name == subject && (r.Apart || r.Active) {
			return true
		}
	}
	return false
}

// several networks that are late at once are one finding.
const several = 3

// parent is the smallest network that holds all of several, at most /8 long; an interface where there is none.
func parent(late []*finding.Reading) (finding.Subject, bool) {
	if len(late) < several {
		return finding.Subject{}, false
	}
	first, err := netip.ParsePrefix(late[0].Subject.Name)
	if err != nil {
		return finding.Subject{}, false
	}
	const shortest = 8
	for bits := first.Bits(); bits >= shortest; bits-- {
		p := netip.PrefixFrom(first.Addr(), bits).Masked()
		if !slices.ContainsFunc(late, func(r *finding.Reading) bool {
			q, err := netip.ParsePrefix(r.Subject.Name)
			return err != nil || !p.Contains(q.Addr())
		}) {
			return finding.Subject{Type: finding.Prefix, Name: p.String()}, true
		}
	}
	return iface(late[0].Instance), true
}

// dominant is the share of all that makes one network the place.
const dominant = .6

// common is the network that most of a measure is of; the interface where there is none.
func common(r *finding.Reading, destination bool) finding.Subject {
	parts, sum := map[string]float64{}, 0.
	for _, b := range r.Blames {
		address := b.Source
		if destination {
			address = b.Destination
		}
		sum += b.Part
		if name := network(address); name != "" {
			parts[name] += b.Part
		}
	}
	for name, part := range parts {
		if part >= dominant*sum {
			return finding.Subject{Type: finding.Prefix, Name: name}
		}
	}
	return iface(r.Instance)
}

// network is the /24 or /48 of an address, or the prefix itself.
func network(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return ""
	}
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits)
	return p.String()
}

// networks of many small hosts.
func (v *view) networks() {
	if v.has(finding.Flood, finding.FloodManySources, finding.Scan, finding.UnfairUser, finding.OneDirection) {
		return
	}
	heavy := v.active(finding.PrefixShare)
	slices.SortFunc(heavy, func(a, b *finding.Reading) int {
		return cmp.Or(cmp.Compare(b.Value.Value, a.Value.Value), cmp.Compare(a.Subject.Name, b.Subject.Name))
	})
	var named []netip.Prefix
	for _, r := range heavy {
		p, err := netip.ParsePrefix(r.Subject.Name)
		if err != nil || slices.ContainsFunc(named, p.Overlaps) {
			continue
		}
		named = append(named, p)
		v.add(finding.HeavyNetwork, r.Subject, r, "no single host or flow of it is heavy", "xdpmon attach "+r.Instance+" --algo precision --set precision.key=dst shows what they send to")
	}
}

// measuring itself.
func (v *view) measuring() {
	attacked := v.has(finding.Flood, finding.FloodManySources, finding.Scan)
	for symptom, k := range map[finding.Symptom]finding.Kind{finding.TooSmall: finding.TableTooSmall, finding.Late: finding.WindowsLate, finding.Unread: finding.Unparsed} {
		for _, r := range v.active(symptom) {
			if attacked && k == finding.TableTooSmall { // whoever attacks fills tables
				continue
			}
			v.add(k, r.Subject, r, "", r.Measure.Next)
		}
	}
}
