package diagnose

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/finding"
)

// delays finds the networks that are late at the same time, after excluding other explanations. Delays of the own queue are included in these.
func (v *view) delays() {
	late := v.hosts(v.late(finding.HandshakeLate))
	v.slow(late, "SYN-ACKs are late: the network towards the servers, or the servers' kernels", finding.DataLate, "ACKs of data from there are also late")
	v.shut()
	v.clients()
	if v.has(finding.SlowNetwork, finding.SlowReceiver, finding.LossBefore, finding.LossAfter, finding.LossInQueue, finding.Unanswered, finding.Reordering) {
		return // this explains why connections last longer
	}
	for _, r := range v.late(finding.DurationLong) {
		if r.Windows < surely && v.apart(finding.DataLate, finding.ClientLate) {
			continue // connections may last longer because ACKs are late: the next window shows whose
		}
		if v.lateAt(r.Subject.Name, finding.HandshakeLate) && r.Subject.Type != finding.Host || v.lateAt(network(r.Subject.Name), finding.HandshakeLate) {
			continue
		}
		v.add(finding.SlowServer, r.Subject, r, "connections last longer, while handshakes and network delays are as usual: the servers take longer to answer", steps("load, disks and logs of "+r.Subject.Name+" since then: network and kernel answer as usual, so the service itself is slow", windowsOf(r)))
	}
}

// shut handles receivers that close their windows, at the finest level known: each host, otherwise each network, otherwise the interface.
func (v *view) shut() {
	list := v.active(finding.ZeroWindows)
	for _, narrowest := range []string{finding.Host, finding.Prefix, finding.Interface} {
		found := false
		for _, r := range list {
			if r.Subject.Type != narrowest {
				continue
			}
			if found = true; narrowest == finding.Interface && r.Windows < surely && v.narrowerShut() {
				continue // the next window shows whose they are
			}
			v.add(finding.SlowReceiver, r.Subject, r, "it closes its receive window: its application reads more slowly than data arrive", steps("ss -tmn on "+v.orAny(r.Subject.Name, r)+": a large Recv-Q is data that its program does not read", "load of that host: a program without a processor reads slowly", windowsOf(r)))
		}
		if found {
			return
		}
	}
}

// narrowerShut reports whether a host or network closes its windows more often than usual in this window.
func (v *view) narrowerShut() bool {
	return slices.ContainsFunc(v.by[finding.ZeroWindows], func(r *finding.Reading) bool { return r.Subject.Type != finding.Interface && r.Apart })
}

// clients handles networks and hosts that acknowledge data late and are no servers.
func (v *view) clients() {
	known := map[string]bool{}
	for _, r := range v.by[finding.HandshakeLate] {
		known[r.Subject.Name] = true
	}
	var networks, hosts []*finding.Reading
	for _, r := range v.late(finding.DataLate) {
		switch {
		case known[r.Subject.Name] || known[network(r.Subject.Name)]:
		case r.Subject.Type == finding.Host:
			hosts = append(hosts, r)
		case v.few(r.Subject.Name, finding.DataLate) == 0:
			networks = append(networks, r)
		}
	}
	networks = append(networks, v.late(finding.ClientLate)...)
	v.slow(networks, "ACKs of data sent there are late, SYN-ACKs of servers are not: the clients' side", "", "")
	if len(networks) > 0 || v.has(finding.LossBefore) || apart(hosts) {
		return // a delay of all hosts is not one host's, and packets lost on the way from it also delay its ACKs
	}
	for _, r := range hosts {
		if n := network(r.Subject.Name); v.few(n, finding.DataLate) == 0 {
			continue // its network is late
		}
		v.add(finding.SlowReceiver, r.Subject, r, "its ACKs of data are late, those of other hosts of "+network(r.Subject.Name)+" are not: this host, its application, or its link",
			steps("ss -tmn on "+v.orAny(r.Subject.Name, r)+": a large Recv-Q is data that its program does not read", "load of that host: a program without a processor reads slowly", windowsOf(r)))
	}
}

// apart reports whether hosts are of several networks.
func apart(hosts []*finding.Reading) bool {
	return slices.ContainsFunc(hosts, func(r *finding.Reading) bool { return network(r.Subject.Name) != network(hosts[0].Subject.Name) })
}

// few is the number of late hosts of a network, if few of its known hosts are late; 0 if the whole network is, or may be.
func (v *view) few(of string, s finding.Symptom) int {
	bad, all := 0, 0
	for _, r := range v.by[s] {
		if r.Subject.Type != finding.Host || !r.Known || network(r.Subject.Name) != of {
			continue
		}
		all++
		if r.Apart || r.Active {
			bad++
		}
	}
	if 2*bad >= all {
		return 0
	}
	return bad
}

// late are the active readings of delays that the own queue does not explain.
func (v *view) late(s finding.Symptom) (list []*finding.Reading) {
	for _, r := range v.active(s) {
		if !v.waitsHere(r) && !v.whole(r) {
			list = append(list, r)
		}
	}
	return list
}

// whole reports whether a reading covers all networks of an instance, while others cover one each.
func (v *view) whole(r *finding.Reading) bool {
	return r.Subject.Type == finding.Interface && r.Symptom == finding.HandshakeLate &&
		slices.ContainsFunc(v.by[r.Symptom], func(o *finding.Reading) bool { return o.Instance == r.Instance && o.Subject.Type != finding.Interface })
}

// waits is how often a delay includes the wait in the own queue: once, or once for each of two packets.
const waits = 2

// waitsHere reports whether the own queue explains an increase of a delay: the queue stands or drops, and packets wait that long in it.
func (v *view) waitsHere(r *finding.Reading) bool {
	if !v.queueAt(r.Instance) {
		return false
	}
	for _, q := range v.by[finding.QueuePeak] {
		if q.Instance == r.Instance {
			return r.Value.Value-r.Expected.Value <= waits*q.Value.Value
		}
	}
	return true // the wait is not known
}

// queueAt reports whether the queue of an instance stands or drops.
func (v *view) queueAt(instance string) bool {
	for _, s := range []finding.Symptom{finding.QueueStands, finding.QueueWait, finding.QueueDrops} {
		for _, r := range v.by[s] {
			if r.Instance == instance && (r.Apart || r.Active) {
				return true
			}
		}
	}
	return false
}

// hosts makes findings of single servers that are late while their network is not, and returns the late networks.
func (v *view) hosts(late []*finding.Reading) (networks []*finding.Reading) {
	for _, r := range late {
		if r.Subject.Type != finding.Host && v.few(r.Subject.Name, finding.HandshakeLate) == 0 {
			networks = append(networks, r)
		}
	}
	for _, r := range late {
		if r.Subject.Type != finding.Host || len(networks) >= several || v.few(network(r.Subject.Name), finding.HandshakeLate) == 0 && v.lateAt(network(r.Subject.Name), finding.HandshakeLate) {
			continue
		}
		v.add(finding.SlowServer, r.Subject, r, "its SYN-ACKs are late, those of other servers of "+network(r.Subject.Name)+" are not: this server, or its link", steps("ss -ltn on "+r.Subject.Name+": Recv-Q as large as Send-Q is a full accept queue: the program accepts too slowly", "load of "+r.Subject.Name+": a busy kernel answers late", v.trace(r.Subject.Name, r), windowsOf(r)))
	}
	return networks
}

// slow adds findings of late networks: a single one for several of one larger network.
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
		f := v.add(finding.SlowNetwork, s, worst, fmt.Sprintf("%d networks of it are late at once; %s", len(late), explain(worst.Subject.Name)), steps(v.trace(worst.Subject.Name, worst), windowsOf(worst)))
		for _, r := range late {
			f.Since = min(f.Since, r.Since)
		}
		return
	}
	for _, r := range late {
		v.add(finding.SlowNetwork, r.Subject, r, explain(r.Subject.Name), steps(v.trace(r.Subject.Name, r), windowsOf(r)))
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

// several is how many late networks of one larger network make one finding.
const several = 3

// parent is the smallest prefix, /8 or longer, that contains all late networks; the interface if there is none.
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
