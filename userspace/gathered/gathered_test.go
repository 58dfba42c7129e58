package gathered

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/finding"
)

var start = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func found(k finding.Kind, typ, name string, harm float64) finding.Finding {
	return finding.Finding{Kind: k, Severity: finding.Of(k), Subject: finding.Subject{Type: typ, Name: name}, Interface: "eth0", Since: start.Add(time.Duration(harm-60) * time.Second).UnixNano(), Harm: harm,
		Because: "SYN-ACKs are late", Next: "1. mtr -rwc 100 10.2.3.4: what begins at one hop; 2. load of 10.2.3.4: a busy kernel; 3. xdpmon history --algo fridge: when they changed"}
}

// settled are the findings after the wait for other hosts.
func settled(g *Gatherer) []finding.Finding {
	g.Open(start)
	return g.Open(start.Add(settle))
}

// Eleven of twelve hosts with traffic to a network find it slow, one of them a part of it: that is one finding, with the worst value and the earliest begin. Who has
// no traffic there could not see it.
func TestOne(t *testing.T) {
	g := New()
	for n := range 12 {
		var list []finding.Finding
		switch {
		case n == 3:
			list = []finding.Finding{found(finding.SlowNetwork, finding.Prefix, "10.2.7.0/24", 30)}
		case n < 11:
			list = []finding.Finding{found(finding.SlowNetwork, finding.Prefix, "10.2.0.0/16", float64(5+n))}
		}
		g.Put(fmt.Sprintf("h%02d", n), list, []string{"10.2.3.0/24", "nonsense"}, start)
	}
	g.Put("elsewhere", nil, []string{"10.9.0.0/16"}, start)
	g.Open(start)
	if early := g.Open(start.Add(settle - time.Second)); len(early) != 0 {
		t.Errorf("it did not wait for other hosts: %v", early)
	}
	list := settled(g)
	if len(list) != 1 {
		t.Fatalf("%d findings: %+v", len(list), list)
	}
	f := list[0]
	if f.Subject.Name != "10.2.0.0/16" || len(f.Hosts) != 11 || f.Known != 12 || f.Harm != 30 || f.Since != start.Add(-55*time.Second).UnixNano() {
		t.Errorf("%+v", f)
	}
	if want := "1. on h03, mtr -rwc 100 10.2.3.4: what begins at one hop; 2. load of 10.2.3.4: a busy kernel; 3. on h03, xdpmon history --algo fridge: when they changed"; f.Next != want {
		t.Errorf("next: %s", f.Next)
	}
	if got := g.who(finding.Finding{Hosts: []string{"a"}}); !strings.HasPrefix(got, "seen by a") {
		t.Errorf("without a cause: %q", got)
	}
	if got := g.who(finding.Finding{Hosts: []string{"a"}, Because: "the queue is full"}); !strings.HasPrefix(got, "the queue is full; seen by a") {
		t.Errorf("with a cause: %q", got)
	}
	for _, want := range []string{"Slow network at 10.2.0.0/16 (11 of 12 hosts see it)", "seen by h00, h01, h02, h03, h04 and 6 more", "not by h11"} {
		if !strings.Contains(f.Sentence(), want) {
			t.Errorf("%q is missing in %s", want, f.Sentence())
		}
	}
}

// Interfaces and queues of two hosts are two things, whatever their names; flows and servers are one. The coordinator's own finding of the same adds no host.
func TestApart(t *testing.T) {
	g := New()
	for _, host := range []string{"a", "b"} {
		g.Put(host, []finding.Finding{found(finding.LossInQueue, finding.Interface, "eth0", 2), found(finding.UnfairUser, finding.Flow, "x > y", 3), found(finding.DNSSlow, finding.Host, "10.9.0.1", 4)}, nil, start)
	}
	g.Own([]finding.Finding{found(finding.DNSSlow, finding.Host, "10.9.0.1", 1), found(finding.Unanswered, finding.Interface, "edge", 9)})
	var got []string
	for _, f := range settled(g) {
		got = append(got, fmt.Sprintf("%s %s %v %d", f.Kind, f.Subject.Name, f.Hosts, f.Known))
	}
	slices.Sort(got)
	want := []string{"dns-slow 10.9.0.1 [a b] 2", "loss-in-queue a:eth0 [] 0", "loss-in-queue b:eth0 [] 0", "unanswered edge [] 0", "unfair-user x > y [a b] 2"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A finding keeps its ID while hosts join and leave, and ends when the last host ends it, or has sent nothing for long.
func TestContinues(t *testing.T) {
	g, one := New(), []finding.Finding{found(finding.DNSSlow, finding.Host, "10.9.0.1", 9)}
	g.Put("a", one, nil, start)
	id := settled(g)[0].ID
	earlier := found(finding.DNSSlow, finding.Host, "10.9.0.1", 1)
	g.Put("b", []finding.Finding{earlier}, nil, start.Add(settle))
	if list := g.Open(start.Add(settle)); len(list) != 1 || list[0].ID != id || len(list[0].Hosts) != 2 || list[0].Since != earlier.Since {
		t.Errorf("%+v, want ID %q", list, id)
	}
	g.Put("a", nil, []string{"10.9.0.0/24"}, start.Add(settle))
	if list := g.Open(start.Add(settle)); len(list) != 1 || list[0].ID != id || !slices.Equal(list[0].Hosts, []string{"b"}) || list[0].Known != 2 {
		t.Errorf("%+v", list)
	}
	if list := g.Open(start.Add(settle + stale + time.Second)); len(list) != 0 {
		t.Errorf("a host that is silent still finds %+v", list)
	}
}

// A host's findings are limited to what an agent could send: it cannot raise a severity, close a finding, set a start in the future, or name hosts and links.
func TestHostile(t *testing.T) {
	g := New()
	f := found(finding.Reordering, finding.Prefix, strings.Repeat("9", 10_000), 1)
	f.Severity, f.State, f.Until, f.Since = finding.Critical, finding.Ends, 5, start.Add(time.Hour).UnixNano()
	f.Because, f.Next, f.What, f.Hosts, f.Known, f.Links = strings.Repeat("é", 5000), strings.Repeat("n", 5000), strings.Repeat("w", 5000), []string{"root"}, 99, []string{"core"}
	g.Put("bad", []finding.Finding{f}, nil, start)
	got := settled(g)[0]
	if got.Severity != finding.Info || got.State != finding.GoesOn || got.Until != 0 || got.Since > start.UnixNano() || len(got.Links) != 0 || !slices.Equal(got.Hosts, []string{"bad"}) || got.Known != 1 ||
		len(got.Subject.Name) > mostName || len(got.Because) > mostText+100 || len(got.Next) > mostText || len(got.What) > mostText {
		t.Errorf("%+v", got)
	}
	for n := range 40 {
		var list []finding.Finding
		for k := range 64 {
			list = append(list, found(finding.Scan, finding.Host, fmt.Sprintf("10.%d.%d.1", n, k), 1))
		}
		g.Put(fmt.Sprint(n), list, nil, start)
	}
	if n := len(settled(g)); n != mostJoined {
		t.Errorf("%d findings, bound %d", n, mostJoined)
	}
}

// Another coordinator knows nothing of what this one gathered.
func TestForget(t *testing.T) {
	g := New()
	one := []finding.Finding{found(finding.SlowNetwork, finding.Prefix, "10.2.0.0/16", 5)}
	g.Put("a", one, []string{"10.2.3.0/24"}, start)
	if list := settled(g); len(list) != 1 {
		t.Fatalf("%d findings", len(list))
	}
	if g.Forget(); len(g.Open(start.Add(2*settle))) != 0 {
		t.Error("a finding is still there")
	}
	g.Put("a", one, nil, start.Add(2*settle))
	if len(g.Open(start.Add(2*settle))) != 0 || len(g.Open(start.Add(3*settle))) != 1 {
		t.Error("it does not wait for other hosts again")
	}
}

// So many hosts are known at most; those that are known still report.
func TestHostsAreBounded(t *testing.T) {
	g := New()
	for n := range mostHosts + 3 {
		g.Put(fmt.Sprint(n), nil, nil, start)
	}
	if g.Put("0", nil, []string{"10.2.3.0/24"}, start); len(g.hosts) != mostHosts || g.hosts[fmt.Sprint(mostHosts)] != nil || len(g.hosts["0"].subjects) != 1 {
		t.Errorf("%d hosts", len(g.hosts))
	}
}

// The largest network of several subjects; hosts and what is no network have none.
func TestWidest(t *testing.T) {
	list := func(names ...string) (l []seen) {
		for _, name := range names {
			l = append(l, seen{Finding: &finding.Finding{Subject: finding.Subject{Name: name}}})
		}
		return l
	}
	for want, names := range map[string][]string{
		"10.2.0.0/16": {"10.2.3.0/24", "10.2.0.0/16", "10.2.4.0/24"},
		"10.2.3.0/24": {"eth0", "10.2.3.0/24", "queue 3"},
		"":            {"eth0", "queue 3"},
	} {
		if got := widest(list(names...)); got.Name != want {
			t.Errorf("%v: %q, want %q", names, got.Name, want)
		}
	}
}
