// Package diagnose makes findings of what several algorithms show of the same windows: what an algorithm's rules measured, beside what was
// expected of it (package finding). Diagnose is a pure function of one round of readings; an Engine keeps the rounds, and the findings from
// their begin to their end.
package diagnose

import (
	"cmp"
	"fmt"
	"maps"
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
	v.queues()
	v.losses()
	v.silence()
	v.services()
	v.delays()
	v.networks()
	v.measuring()
	return v.distinct()
}

// look is the command that looks again at what a reading is of, with other algorithms.
func look(r *finding.Reading) string { return cmp.Or(r.Command, "xdpmon attach "+r.Instance) }

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

// history is the command that shows the windows of a reading; a capture has no store.
func history(r *finding.Reading) string {
	if r.Command != "" {
		return r.Command + " --algo " + r.Algorithm
	}
	return fmt.Sprintf("xdpmon history --algo %s --interface %s", r.Algorithm, r.Instance)
}

func (v *view) promises() {
	worst := map[string]*finding.Reading{} // of each promise
	for _, s := range []finding.Symptom{finding.HandshakeLateP99, finding.HandshakeLateP95, finding.HandshakeLate, finding.DataLate, finding.DNSLate, finding.NTPLate, finding.Holes, finding.Resent,
		finding.SliceUnfair} {
		for _, r := range v.by[s] {
			if !r.Active || r.Broken == nil {
				continue
			}
			if old := worst[r.Broken.String()]; old == nil || wider(r, old) {
				worst[r.Broken.String()] = r
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(worst)) {
		v.broken(worst[text], text)
	}
}

// wider reports whether a reading tells more of a broken promise: it is of more hosts, or farther out.
func wider(r, old *finding.Reading) bool {
	one, other := r.Subject.Type == finding.Host, old.Subject.Type == finding.Host
	if one != other {
		return other
	}
	return r.Times() > old.Times()
}

// broken adds the finding of a promise: of what was promised, where that is a network or an address, else of the worst that it covers.
func (v *view) broken(r *finding.Reading, text string) {
	subject, because := r.Subject, "promised: "+text
	if name, ok := r.Broken.Place(); ok {
		subject = name
	}
	if subject != r.Subject {
		because += "; worst: " + r.Subject.Name
	}
	v.add(finding.PromiseBroken, subject, r, because, "the findings beside this one name the cause; "+history(r))
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
	if v.apart(finding.NoResponse) {
		return // not one answer: the next window says whether it is the path that is missing
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

// explains is the least share of what is not answered that the answers that somebody gives no more must be.
const explains = .1

// surely is how many windows it takes until more requests without fewer answers are called unanswered.
const surely = 4

// unanswered names the subjects whose answers vanished; where there are none, the interface.
func (v *view) unanswered(k finding.Kind, vanished finding.Symptom, r *finding.Reading, because, next string) {
	var gone, all int
	missing := r.Trials * (r.Expected.Value - r.Value.Value)
	var worst []*finding.Reading
	lossy := v.has(finding.LossAfter, finding.LossBefore) // then a window with few answers is no news
	length := (r.Latest - r.Since) / int64(max(1, r.Windows))
	for _, g := range v.by[vanished] {
		if g.Instance != r.Instance || !g.Known || v.loses(network(g.Subject.Name)) || g.Expected.Value < 1 || g.Subject.Type == finding.Host && v.lateAt(network(g.Subject.Name), vanished) {
			continue
		}
		all++
		if g.Expected.Value-g.Value.Value < explains*missing { // too few to be what is not answered
			continue
		}
		since := g.Since >= r.Since-together*length // who fell silent long before was not asked any more
		if (g.Active || g.Apart && !lossy) && since || k != finding.Unanswered && !lossy && gave(g, r) {
			gone++
			worst = append(worst, g)
		}
	}
	if gone == 0 && (r.Windows < surely || v.has(finding.LossAfter, finding.LossBefore, finding.LossInQueue)) {
		return // somebody asks what nobody serves: a scan or a flood says so soon; or requests and answers are lost like all else
	}
	if gone == 0 || gone == all && all > 2 {
		because := fmt.Sprintf("%d of %d servers and networks give fewer answers than usual", gone, all)
		if gone == 0 {
			because = "those who answered before still do: what is not answered is asked of others"
			next = look(r) + " --query 'asked: count distinct src+sport by dst+dport > 20 in 10s if tcp.syn and not tcp.ack' names who is asked"
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

// silentAnswers is how many answers a server must owe in a row: with as many expected on average, none come by chance in one case of twenty.
const silentAnswers = 3

// gave reports whether a server that is asked for names or the time has given no answer since refusals began, and few enough a window before that one window without
// them is no news: what it owes by now is.
func gave(g, r *finding.Reading) bool {
	return r.Windows > 1 && g.Gone >= r.Windows-1 && g.Gone <= r.Windows+together && float64(g.Gone)*g.Expected.Value >= silentAnswers
}

// loses reports whether packets to a network are lost: its handshakes, too.
func (v *view) loses(network string) bool {
	return slices.ContainsFunc(v.found, func(f finding.Finding) bool { return f.Kind == finding.LossAfter && f.Subject.Name == network })
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
			if v.apart(finding.NoResponse) {
				continue // no answer of any kind passes here
			}
			v.unanswered(s.dead, s.vanished, r, "whoever asks it for "+s.whatIsAsked+" waits", "is it up? ask it from here, and another one")
		}
		for _, r := range v.late(s.late) {
			because := "the server or its upstream is slow"
			if v.lateAt(network(r.Subject.Name), finding.HandshakeLate) {
				because = "handshakes with its network are late, too: the network, perhaps"
			}
			v.add(s.slow, r.Subject, r, because, s.looked+r.Subject.Name+"; "+history(r))
		}
	}
}

// Where a queue stands, and who is in it.
const (
	most     = .55  // share of what leaves a standing queue that makes one flow or host the cause
	full     = .6   // share of the packets that wait from which on the link is full
	dropsToo = .005 // share of the packets that a full link drops from which on that is a finding of its own
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
	standing := map[string]bool{}
	for _, r := range append(v.active(finding.QueueStands), v.active(finding.QueueWait)...) {
		if standing[r.Instance] {
			continue
		}
		standing[r.Instance] = true
		v.stands(r)
	}
	for _, r := range v.active(finding.QueueDrops) {
		switch {
		case v.has(finding.UnfairUser): // who fills the queue makes it drop
		case standing[r.Instance] && r.Value.Value < dropsToo: // its sentence has them
		case standing[r.Instance]:
			v.add(finding.LossInQueue, iface(r.Instance), r, "the queue is full: what waits in it is more than the link carries", "tc -s qdisc show dev "+r.Instance+"; a faster link, or fair shares (ahab, fq_codel, cake)")
		case !v.queueApart(r.Instance): // else the next window says whose queue it is
			v.add(finding.LossInQueue, iface(r.Instance), r, "the queue is short: packets are dropped before they wait long", "tc -s qdisc show dev "+r.Instance+"; a longer queue or a faster link")
		}
	}
}

// stands adds the finding of a queue that stands: whose it is, or that there is more traffic than the link carries.
func (v *view) stands(r *finding.Reading) {
	drops := v.dropped(r.Instance)
	if s, share := dominating(r.Blames); share >= most {
		f := v.add(finding.UnfairUser, s, r, fmt.Sprintf("%s of what left the queue of %s while packets waited is its own%s", report.Human(share, report.Ratio), r.Instance, drops),
			"limit or mark it (conquest.action=ecn, ahab); others wait because of it")
		f.Lead = queueLead(r)
		return
	}
	k, because, subject := finding.QueueDelay, "nobody has half of the queue", r.Subject
	if v.waiting(r.Instance) >= full {
		k, subject = finding.LinkFull, finding.Subject{Type: finding.Link, Name: r.Instance}
		because = "most packets wait, and nobody has half of the queue"
	}
	f := v.add(k, subject, r, because+drops, look(r)+" --algo conquest,precision names the flows; a faster link, or fair shares (ahab, fq_codel, cake)")
	f.Lead = queueLead(r)
}

// queueLead is one for all that shows a standing queue: what began as the share of packets that wait goes on as their delay.
func queueLead(r *finding.Reading) string {
	m := r.Measure
	m.Symptom = finding.QueueStands
	return finding.KeyOf(&m)
}

// waiting is the share of an instance's packets that wait.
func (v *view) waiting(instance string) float64 {
	for _, r := range v.by[finding.QueueStands] {
		if r.Instance == instance {
			return r.Value.Value
		}
	}
	return 0
}

// queueApart reports whether packets of an instance wait longer than usual in this window.
func (v *view) queueApart(instance string) bool {
	for _, s := range []finding.Symptom{finding.QueueStands, finding.QueueWait} {
		for _, r := range v.by[s] {
			if r.Instance == instance && r.Apart {
				return true
			}
		}
	}
	return false
}

// dominating is the source of most of the blames' parts, and its share: a flow, where one has most, else the host that sends them.
func dominating(blames []finding.Blame) (s finding.Subject, share float64) {
	sources, all, flow := map[string]float64{}, 0., finding.Blame{}
	for _, b := range blames {
		sources[b.Source] += b.Part
		all += b.Part
		if b.Part > flow.Part {
			flow = b
		}
	}
	if flow.Part >= most*all {
		return finding.Subject{Type: finding.Flow, Name: flow.Flow}, flow.Part / all
	}
	for source, part := range sources {
		if part > share*all {
			s, share = finding.Subject{Type: finding.Host, Name: source}, part/all
		}
	}
	return s, share
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
	again := v.value(finding.Resent)
	if reordered != nil && (queue || again > reordered.Value.Value) {
		reordered = nil // what is sent again stands out of order
	}
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
	if holes != nil && resent != nil && resent.Value.Value < holes.Value.Value {
		resent = nil // senders that lose much repeat more than what is missing
	}
	if resent != nil && v.overtaken(common(resent, true)) {
		resent = nil
	}
	if resent != nil && !queue && !v.queueAt(resent.Instance) {
		v.add(finding.LossAfter, common(resent, true), resent, "segments that had left here are sent again, and the own queue drops nothing", "errors and drops of the links from here to there"+suspects)
	}
}

// overtaken reports whether what is sent again to a place is sent again too soon: its delay has just risen above what senders wait for.
func (v *view) overtaken(place finding.Subject) bool {
	for _, s := range []finding.Symptom{finding.HandshakeLate, finding.DataLate} {
		for _, r := range v.by[s] {
			if r.Apart && r.Value.Value-r.Expected.Value > leastTimeout && (place.Type == finding.Interface || r.Subject == place) {
				return true
			}
		}
	}
	return false
}

// leastTimeout is about what senders wait at least until they send again, ns: Linux' smallest retransmission timeout is 200 ms, tail loss probes come after
// two round trips and a few ms.
const leastTimeout = 20e6

// value is the largest of a symptom in this window.
func (v *view) value(s finding.Symptom) (most float64) {
	for _, r := range v.by[s] {
		if r.Apart {
			most = max(most, r.Value.Value)
		}
	}
	return most
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
	if v.has(finding.Flood, finding.Scan, finding.UnfairUser, finding.LinkFull, finding.OneDirection) {
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
		part := narrowest(heavy, r, p)
		f := v.add(finding.HeavyNetwork, part.Subject, part, "no single host or flow of it is heavy", look(r)+" --algo precision --set precision.key=dst shows what they send to")
		f.Lead = finding.KeyOf(&r.Measure) // whatever part of it has most
	}
}

// narrowest is the smallest network within p that has most of what r has, or r.
func narrowest(heavy []*finding.Reading, r *finding.Reading, p netip.Prefix) *finding.Reading {
	best, bits := r, p.Bits()
	for _, o := range heavy {
		q, err := netip.ParsePrefix(o.Subject.Name)
		if err == nil && o.Instance == r.Instance && q.Bits() > bits && p.Contains(q.Addr()) && o.Value.Value >= dominant*r.Value.Value {
			best, bits = o, q.Bits()
		}
	}
	return best
}

// measuring itself.
func (v *view) measuring() {
	attacked := v.has(finding.Flood, finding.FloodManySources, finding.Scan)
	for symptom, k := range map[finding.Symptom]finding.Kind{finding.TooSmall: finding.TableTooSmall, finding.Late: finding.WindowsLate, finding.Unread: finding.Unparsed, finding.NotInside: finding.Unparsed} {
		for _, r := range v.active(symptom) {
			if attacked && (k == finding.TableTooSmall || symptom == finding.NotInside) { // whoever attacks fills tables, and is answered by ICMP
				continue
			}
			v.add(k, r.Subject, r, "", r.Measure.Next)
		}
	}
}
