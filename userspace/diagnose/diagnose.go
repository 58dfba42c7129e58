// Package diagnose makes findings from what several algorithms measured in the same windows, compared with what was expected (package
// finding). Diagnose is a pure function of one round of readings; an Engine keeps state from round to round, and each finding from its
// start to its end.
package diagnose

import (
	"cmp"
	"fmt"
	"maps"
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
	v.connections()
	v.measuring()
	return v.distinct()
}

// look is the command that examines the traffic of a reading with other algorithms.
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

// add makes a finding of its leading reading.
func (v *view) add(k finding.Kind, s finding.Subject, r *finding.Reading, because, next string) *finding.Finding {
	v.found = append(v.found, finding.Finding{ID: string(k) + " " + s.Name + " " + finding.Clock(r.Since), Kind: k, Severity: finding.Of(k), Subject: s, Interface: r.Instance, Numbers: keyOf(r), Capture: r.Command != "", Since: r.Since, Seen: r.Latest,
		Windows: r.Windows, Value: r.Value, Expected: r.Expected, What: r.What, Because: because, Next: next, Evidence: r.Evidence, Harm: r.Times(), Lead: finding.KeyOf(&r.Measure), Fresh: r.Apart})
	return &v.found[len(v.found)-1]
}

// distinct removes findings with the kind and subject of an earlier one.
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
	of := ""
	if name, _, _ := strings.Cut(keyOf(r), "/"); name != "" && name != r.Instance { // several of an algorithm may measure an interface
		of = " --instance " + name
	}
	return fmt.Sprintf("xdpmon history --algo %s%s --interface %s", r.Algorithm, of, r.Instance)
}

// keyOf is the key of the instance whose windows these are (Window.Source).
func keyOf(r *finding.Reading) string {
	if parts := strings.Split(r.Source, "\x00"); len(parts) > 1 {
		return parts[1]
	}
	return ""
}

func (v *view) promises() {
	worst := map[string]*finding.Reading{} // per promise
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

// wider reports whether a reading is the better example of a broken promise: it covers more hosts, or deviates more.
func wider(r, old *finding.Reading) bool {
	one, other := r.Subject.Type == finding.Host, old.Subject.Type == finding.Host
	if one != other {
		return other
	}
	return r.Times() > old.Times()
}

// broken adds the finding of a promise. Its subject is the promised network or address, otherwise the worst that the promise covers.
func (v *view) broken(r *finding.Reading, text string) {
	subject, because := r.Subject, "promised: "+text
	if name, ok := r.Broken.Place(); ok {
		subject = name
	}
	if subject != r.Subject {
		because += "; worst: " + r.Subject.Name
	}
	v.add(finding.PromiseBroken, subject, r, because, steps("the other findings: they name the cause, if one is known", windowsOf(r)))
}

// hostOf is the address of a host or service.
func hostOf(s finding.Subject) string {
	if a, err := netip.ParseAddrPort(s.Name); err == nil {
		return a.Addr().String()
	}
	return s.Name
}

// syn reports whether an alert is about new connections: the victim of a flood sends many answers, and so do the hosts that a scanner probes.
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
		if scanners[host] { // these are answers of the scanned hosts
			continue
		}
		because := "different sources are counted" + v.sources(host)
		if o := opened[host]; o != nil {
			because = fmt.Sprintf("connections to %s are opened and not completed: a SYN flood with spoofed sources, or from many hosts%s", o.Subject.Name, v.sources(host))
		}
		v.add(finding.FloodManySources, r.Subject, r, because, steps("block or limit packets to "+host+" upstream: there are too many sources to list all", "sysctl net.ipv4.tcp_syncookies on "+host+": 1 or 2 keeps TCP services reachable in a SYN flood", flowsOf(r, host)))
	}
	for host, r := range opened {
		if victims[host] == nil {
			v.add(finding.Flood, r.Subject, r, "the connections are opened from few addresses"+v.sources(host), steps(flowsOf(r, host)+": block them", "sysctl net.ipv4.tcp_syncookies on "+host+": 1 or 2 keeps the service reachable in a SYN flood"))
		}
	}
	for _, r := range v.active(finding.Scanning) {
		if !syn(r) { // a host that answers many hosts also sends to many
			continue
		}
		host := r.Subject.Name
		because := ""
		if len(r.Blames) > 0 {
			because = r.Blames[0].Flow
		}
		v.add(finding.Scan, r.Subject, r, because, steps("who operates "+host+": a scanner of your own is harmless; otherwise the host is compromised", look(r)+" --algo precision --set precision.key=srcdst: whom it contacts most"))
	}
}

// silence handles requests without answers.
func (v *view) silence() {
	if v.has(finding.Flood, finding.FloodManySources, finding.Scan) {
		return // their connections are not answered
	}
	if list := v.active(finding.NoResponse); len(list) > 0 {
		v.silent(list[0]) // the same on every interface of an instance
		return
	}
	if v.apart(finding.NoResponse) {
		return // no answer at all: the next window shows whether the return path is not measured
	}
	for _, r := range v.active(finding.HandshakeRefused) {
		v.unanswered(finding.Unanswered, finding.HandshakeVanished, r, "the others answer as usual")
	}
}

// silent handles an instance on which no handshake is answered.
func (v *view) silent(r *finding.Reading) {
	if !v.carries(r.Instance) {
		v.add(finding.Unanswered, iface(r.Instance), r, "no SYN-ACK arrives, and no connection carries data", steps("ping the servers from this host: without an answer they are down, or there is no route to them", "ip route get CLIENT on a server: the answers must return through "+r.Instance, windowsOf(r)))
		return
	}
	f := v.add(finding.OneDirection, iface(r.Instance), r, "connections carry data, so their handshakes were answered on another path",
		steps("ip route get CLIENT on a server: names the path on which the answers return", "run xdpmon also on the interface of that path, and with --direction both: until then delays and losses of "+r.Instance+" cannot be judged"))
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

// together is how many windows before the refusals the answers of a subject may start to decrease.
const together = 3

// explains is the minimum share of the unanswered requests that the missing answers of a subject must explain. One connection makes several: Linux repeats a SYN
// each second, so that a server of 10 connections a window of 2 s leaves up to 100 SYNs unanswered.
const explains = .04

// surely is how many windows of more unanswered requests, without a subject whose answers decrease, are reported as unanswered.
const surely = 4

// unanswered adds findings of the subjects whose answers decreased; without any, of the interface.
func (v *view) unanswered(k finding.Kind, vanished finding.Symptom, r *finding.Reading, because string) {
	var gone, all int
	missing := r.Trials * (r.Expected.Value - r.Value.Value)
	var worst []*finding.Reading
	lossy := v.has(finding.LossAfter, finding.LossBefore) // a window with few answers is expected then
	length := (r.Latest - r.Since) / int64(max(1, r.Windows))
	for _, g := range v.by[vanished] {
		if g.Instance != r.Instance || !g.Known || g.Value.High >= 1 && v.loses(network(g.Subject.Name)) || g.Expected.Value < 1 || g.Subject.Type == finding.Host && v.lateAt(network(g.Subject.Name), vanished) {
			continue
		}
		all++
		if g.Expected.Value-g.Value.Value < explains*missing { // too few to explain the unanswered requests
			continue
		}
		since := g.Since >= r.Since-together*length // a subject that stopped long before was no longer asked
		if (g.Active || g.Apart && !lossy) && since || k != finding.Unanswered && !lossy && gave(g, r) {
			gone++
			worst = append(worst, g)
		}
	}
	if gone == 0 && (r.Windows < surely || v.has(finding.LossAfter, finding.LossBefore, finding.LossInQueue)) {
		return // requests to hosts that do not exist (a scan or flood is reported soon), or requests and answers are lost as other packets are
	}
	if gone == 0 || gone == all && all > 2 {
		because := fmt.Sprintf("%d of %d servers and networks send fewer answers than usual", gone, all)
		next := steps("ping and query the servers from this host: without an answer they are down, or the path to them is", windowsOf(r))
		if gone == 0 {
			because = "the servers that answered before still do: the unanswered requests go to others"
			next = steps(look(r)+" --query 'asked: count distinct src+sport by dst+dport > 20 in 10s if tcp.syn and not tcp.ack': lists the servers that are asked", windowsOf(r))
		}
		v.add(k, iface(r.Instance), r, because, next)
		return
	}
	worst = silentAlone(worst, missing)
	slices.SortFunc(worst, func(a, b *finding.Reading) int {
		return cmp.Or(cmp.Compare(b.Times(), a.Times()), cmp.Compare(a.Subject.Name, b.Subject.Name))
	})
	for _, g := range worst {
		f := v.add(k, g.Subject, r, fmt.Sprintf("of all requests on %s %s are answered, usually %s; %s", r.Instance, report.Human(r.Value.Value, report.Ratio), report.Human(r.Expected.Value, report.Ratio), because),
			v.askAgain(k, g, r))
		f.Since, f.Harm, f.Evidence = min(r.Since, g.Since), g.Times(), append(slices.Clone(r.Evidence), g.Evidence...)
		f.What, f.Value, f.Expected = "answers in a window", g.Value, g.Expected
		f.Value.Unit, f.Expected.Unit = report.Count, report.Count
	}
}

// repeated is how many requests a connection without an answer makes at most.
const repeated = 10

// silentAlone removes the subjects that still answer, if the others explain all unanswered requests: the clients of a server that still answers wait for
// one that does not, and ask it less.
func silentAlone(worst []*finding.Reading, missing float64) []*finding.Reading {
	answers := func(g *finding.Reading) bool { return g.Value.Value >= 1 }
	explained := 0.
	for _, g := range worst {
		if !answers(g) {
			explained += g.Expected.Value * repeated
		}
	}
	if explained < missing || explained == 0 {
		return worst
	}
	return slices.DeleteFunc(worst, answers)
}

// silentAnswers is how many answers in a row a server must miss: with as many expected on average, none arrive by chance in one case of twenty.
const silentAnswers = 3

// gave reports whether a DNS or NTP server has sent no answer since the refusals started. It may have stopped a few windows earlier, since one window without an
// answer is not conclusive.
func gave(g, r *finding.Reading) bool {
	return r.Windows > 1 && g.Gone >= r.Windows-1 && g.Gone <= r.Windows+together && float64(g.Gone)*g.Expected.Value >= silentAnswers
}

// loses reports whether packets to a network are lost, which includes handshakes.
func (v *view) loses(network string) bool {
	return slices.ContainsFunc(v.found, func(f finding.Finding) bool { return f.Kind == finding.LossAfter && f.Subject.Name == network })
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
				continue // answers take another path
			}
			v.unanswered(s.dead, s.vanished, r, "clients that query it for "+s.whatIsAsked+" wait")
		}
		for _, r := range v.late(s.late) {
			because := "the server or its upstream is slow"
			if v.lateAt(network(r.Subject.Name), finding.HandshakeLate) {
				because = "handshakes with its network are also late: possibly the network"
			}
			v.add(s.slow, r.Subject, r, because, steps(s.looked+hostOf(r.Subject)+" from this host: fast now means that only some questions are slow; slow means the server or the path to it", v.trace(hostOf(r.Subject), r), windowsOf(r)))
		}
	}
}

// Thresholds of standing queues and of those who fill them.
const (
	most     = .55  // share of the packets that leave a standing queue from which one flow or host is the cause
	full     = .6   // share of waiting packets from which the link is full
	dropsToo = .005 // share of packets dropped by a full link from which that is a separate finding: less for certain is not
)

func (v *view) queues() {
	for _, r := range v.active(finding.SliceFull) {
		v.add(finding.LinkFull, r.Subject, r, topUsers(r.Blames), steps("more capacity for the slice, or fewer users in it: docs/ahab.md", windowsOf(r)))
	}
	for _, r := range v.active(finding.SliceUnfair) {
		s := r.Subject
		if len(r.Blames) > 0 {
			s = finding.Subject{Type: finding.Flow, Name: r.Blames[0].Flow}
		}
		v.add(finding.UnfairUser, s, r, "of "+r.Subject.Name+topUsers(r.Blames), steps("ahab.dry-run=false: limits users to fair shares", windowsOf(r)))
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
		case v.has(finding.UnfairUser): // the user that fills the queue causes the drops
		case standing[r.Instance] && r.Value.High < dropsToo: // that finding's sentence includes the drops
		case standing[r.Instance]:
			v.add(finding.LossInQueue, iface(r.Instance), r, "the queue is full: more traffic arrives than the link carries", steps(queueCounters(r), shaped(r.Instance)))
		case !v.queueApart(r.Instance): // otherwise the next window shows who fills the queue
			v.add(finding.LossInQueue, iface(r.Instance), r, "the queue is short: packets are dropped before they wait long", steps(queueCounters(r), "a longer queue (tc qdisc change … limit), or a faster link: the drops end"))
		}
	}
}

// stands adds the finding of a standing queue: the user that fills it, or more traffic than the link carries.
func (v *view) stands(r *finding.Reading) {
	if s, share := dominating(r.Blames); share >= most {
		f := v.add(finding.UnfairUser, s, r, fmt.Sprintf("%s of what left the queue of %s while packets waited is its own%s", report.Human(share, report.Ratio), r.Instance, v.dropped(r.Instance)),
			steps("ss -tinp on "+hostOf(finding.Subject{Name: senderOf(s)})+": names the program that sends", shaped(r.Instance)+": others are no longer delayed by it", windowsOf(r)))
		f.Lead = queueLead(r)
		return
	}
	k, because, subject := finding.QueueDelay, "no flow or host has half of the queue", r.Subject
	if v.waiting(r.Instance) >= full {
		k, subject = finding.LinkFull, finding.Subject{Type: finding.Link, Name: r.Instance}
		because = "most packets wait, and no flow or host has half of the queue"
	}
	f := v.add(k, subject, r, because+largest(r.Blames)+v.droppedBeside(r.Instance), steps(look(r)+" --algo conquest,precision: all flows in the queue, and their shares", shaped(r.Instance)))
	f.Lead = queueLead(r)
}

// queueLead is the same for all readings of a standing queue: it may start as a share of waiting packets and continue as their delay.
func queueLead(r *finding.Reading) string {
	m := r.Measure
	m.Symptom = finding.QueueStands
	return finding.KeyOf(&m)
}

// waiting is the share of an instance's packets that wait in the queue.
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

// dominating is the source of most of the blamed traffic, with its share: a flow if one has most, otherwise the sending host.
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
			return "; the queue drops " + report.Human(r.Value.Value, report.Ratio) + " of the packets"
		}
	}
	return ""
}

// droppedBeside is the same where drops are a finding of their own, which has the share: its worst window is another one.
func (v *view) droppedBeside(instance string) string {
	for _, r := range v.by[finding.QueueDrops] {
		if r.Instance == instance && r.Value.High >= dropsToo && r.Value.Value > 0 {
			return "; the queue drops packets"
		}
	}
	return v.dropped(instance)
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

// losses locates them: before this host sequence numbers are missing on arrival; in its own queue the queue counts drops; after it segments are retransmitted.
func (v *view) losses() {
	queue := v.has(finding.LossInQueue, finding.LinkFull, finding.UnfairUser, finding.QueueDelay, finding.Flood, finding.FloodManySources)
	reordered := v.worst(finding.OutOfOrder)
	holes, resent := cmp.Or(v.worst(finding.Holes), v.ofOne(finding.HolesFrom)), cmp.Or(v.worst(finding.Resent), v.ofOne(finding.ResentTo))
	again := v.value(finding.Resent)
	if reordered != nil && (queue || again > reordered.Value.Value) {
		reordered = nil // retransmissions are out of order
	}
	if reordered != nil && (holes == nil || holes.Value.Value < reordered.Value.Value/2) {
		s := common(reordered, false)
		because := "nothing is missing"
		if v.apart(finding.Resent, finding.Holes) {
			because = "senders take it for loss and retransmit, although almost nothing is missing"
			resent = nil
		}
		v.add(finding.Reordering, s, reordered, because, steps("parallel paths from there (ECMP by packet, link aggregation, several queues): one that sends packets of a flow on different paths reorders them", v.trace(s.Name, reordered)))
		holes = nil
	}
	if holes != nil {
		v.add(finding.LossBefore, common(holes, false), holes, "sequence numbers are missing when packets arrive at "+at(holes)+": they were lost on the way to it", steps(counters, v.trace(common(holes, false).Name, holes), linksKnown))
	}
	if holes != nil && resent != nil && resent.Value.Value < holes.Value.Value {
		resent = nil // senders with many losses also repeat segments that arrived
	}
	if resent != nil && v.overtaken(common(resent, true)) {
		resent = nil
	}
	if resent != nil && !queue && !v.queueAt(resent.Instance) {
		v.add(finding.LossAfter, common(resent, true), resent, sentAgain(resent), steps(v.trace(common(resent, true).Name, resent), counters, linksKnown))
	}
}

// wholes are the symptoms of an interface that those of single networks are parts of.
var wholes = map[finding.Symptom]finding.Symptom{finding.HolesFrom: finding.Holes, finding.ResentTo: finding.Resent}

// ofOne is the network with most of the segments that are missing, or sent again, where the share of its interface has not changed enough to show it.
func (v *view) ofOne(s finding.Symptom) (worst *finding.Reading) {
	for _, r := range v.active(s) {
		if (!r.Apart || v.most(r)) && (worst == nil || r.Value.Low > worst.Value.Low) {
			worst = r
		}
	}
	return worst
}

// most reports whether most of a symptom of a network's interface is this network's.
func (v *view) most(r *finding.Reading) bool {
	return slices.ContainsFunc(v.by[wholes[r.Symptom]], func(all *finding.Reading) bool {
		return all.Instance == r.Instance && common(all, r.Symptom == finding.ResentTo) == r.Subject
	})
}

// overtaken reports whether retransmissions to a place are spurious: its delay, or that of a host in it, has just risen above the senders' timeout.
func (v *view) overtaken(place finding.Subject) bool {
	for _, s := range []finding.Symptom{finding.HandshakeLate, finding.DataLate} {
		for _, r := range v.by[s] {
			if r.Apart && r.Value.Value-r.Expected.Value > leastTimeout && (place.Type == finding.Interface || r.Subject == place || network(r.Subject.Name) == place.Name) {
				return true
			}
		}
	}
	return false
}

// leastTimeout is about the shortest retransmission timeout of senders, ns: Linux' minimum is 200 ms, tail loss probes are sent after two
// round trips and a few ms.
const leastTimeout = 20e6

// value is the largest value of a symptom in this window.
func (v *view) value(s finding.Symptom) (most float64) {
	for _, r := range v.by[s] {
		if r.Apart {
			most = max(most, r.Value.Value)
		}
	}
	return most
}

func (v *view) worst(s finding.Symptom) (worst *finding.Reading) {
	for _, r := range v.active(s) {
		if worst == nil || len(r.Blames) > 0 && r.Value.Low > worst.Value.Low {
			worst = r
		}
	}
	return worst
}

// dominant is the share of the total from which one network is the place.
const dominant = .6

// common is the network with most of a measure; the interface if there is none.
func common(r *finding.Reading, destination bool) finding.Subject {
	if r.Subject.Type == finding.Prefix {
		return r.Subject
	}
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
	return finding.NetworkOf(a).String()
}

// networks handles networks of many small hosts.
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
		f := v.add(finding.HeavyNetwork, part.Subject, part, "no single host or flow of it is heavy", steps(look(r)+" --algo precision --set precision.key=dst: the destinations with most packets", windowsOf(r)))
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

// longerThanAlerts is in how many windows an alert of a flood is raised that begins in the middle of the first.
const longerThanAlerts = 3

// wrapped names the largest flows of other protocols than TCP, UDP and ICMP of an interface, and reports whether they are most of its packets that are not parsed: these are
// tunnels then, and no answers to a flood.
func (v *view) wrapped(r *finding.Reading) (names string, most bool) {
	if r.Symptom != finding.NotInside {
		return "", false
	}
	parsed := []string{"tcp", "udp", "icmp", "icmpv6"}
	var list []finding.Blame
	least := 0.
	for _, flows := range v.by[finding.FlowShare] {
		for _, b := range flows.Blames {
			if _, proto, ok := strings.Cut(b.Flow, "/"); ok && flows.Instance == r.Instance && !slices.Contains(parsed, proto) && b.Low > 0 {
				list, least = append(list, b), least+b.Low
			}
		}
	}
	if least < dominant*r.Value.Value {
		return "", false
	}
	return strings.TrimPrefix(largest(list), "; "), true
}

// measuring handles limits of the measurement itself.
func (v *view) measuring() {
	attacked := v.has(finding.Flood, finding.FloodManySources, finding.Scan)
	for symptom, k := range map[finding.Symptom]finding.Kind{finding.TooSmall: finding.TableTooSmall, finding.Late: finding.WindowsLate, finding.Unread: finding.Unparsed, finding.NotInside: finding.Unparsed} {
		for _, r := range v.active(symptom) {
			ends, most := v.wrapped(r)
			if symptom == finding.NotInside && r.Windows < longerThanAlerts && !most {
				continue // who floods is known by then, and answered by ICMP
			}
			if attacked && (k == finding.TableTooSmall || symptom == finding.NotInside) { // an attack fills tables, and causes ICMP answers
				continue
			}
			v.add(k, r.Subject, r, ends, r.Measure.Next)
		}
	}
}
