package main

import (
	"cmp"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// shaper shares A's way out between users, each a source address.
type shaper struct {
	name    string
	install func(t *netns.Topology, rate float64) error // nil: nothing
	args    []string                                    // of xdpmon attach, after the capacity; nil: it does not run
}

const (
	shareTime = 5 * time.Second
	shareWarm = 3 * time.Second // what is measured begins after that
)

// shareRates are what an emulated CPU carries, bits a second.
var shareRates = []float64{10e6, 100e6, 200e6}

func shapers() []shaper {
	ahab := []string{"--hook", "tc", "--direction", "egress", "--algo", "ahab", "--set", "ahab.user=source", "--set", "ahab.columns=16384", "--window", "1m"}
	fq := func(t *netns.Topology, _ float64) error { return queue{name: "fq", make: plain("fq")}.install(t) }
	return []shaper{
		{name: "nothing"},
		{name: "ahab", args: ahab},
		{name: "ahab, pace", install: fq, args: append(slices.Clone(ahab), "--set", "ahab.act=pace")},
		{name: "cake by source", install: func(t *netns.Topology, rate float64) error { return cake(t, rate, cakeDualSource) }},
		{name: "cake by flow", install: func(t *netns.Topology, rate float64) error { return cake(t, rate, cakeFlows) }},
		{name: "htb, fq_codel", install: below("fq_codel")},
		{name: "policer", install: police(200 * time.Millisecond)},
	}
}

// flow modes of cake, and the attributes for them: linux/pkt_sched.h, sch_cake.c
const (
	cakeRate, cakeFlowMode = 2, 5 // TCA_CAKE_BASE_RATE64 (bytes a second), TCA_CAKE_FLOW_MODE
	cakeFlows              = 4
	cakeDualSource         = 5
)

func cake(t *netns.Topology, rate float64, mode uint32) error {
	return t.A.Run(func() error {
		request := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
		request.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(t.A.Index), Handle: netlink.MakeHandle(2, 0), Parent: netlink.HANDLE_ROOT})
		request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("cake")))
		options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
		options.AddRtAttr(cakeRate, encoding.NativeEndian.AppendUint64(nil, uint64(rate/8)))
		options.AddRtAttr(cakeFlowMode, encoding.NativeEndian.AppendUint32(nil, mode))
		request.AddData(options)
		if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
			return fmt.Errorf("add cake: %w", err)
		}
		return nil
	})
}

// below an HTB class of the rate.
func below(kind string) func(*netns.Topology, float64) error {
	return func(t *netns.Topology, rate float64) error {
		return queue{name: "htb, " + kind, make: plain(kind), below: true, rate: uint64(rate)}.install(t)
	}
}

// police drops on the way out what is beyond the rate and a burst.
func police(burst time.Duration) func(*netns.Topology, float64) error {
	return func(t *netns.Topology, rate float64) error {
		h, err := t.A.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: t.A.Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
		action := netlink.NewPoliceAction()
		action.Rate, action.Burst, action.Mtu, action.ExceedAction = uint32(rate/8), uint32(rate/8*burst.Seconds()), 1<<16, netlink.TC_POLICE_SHOT
		filter := &netlink.MatchAll{Actions: []netlink.Action{action},
			FilterAttrs: netlink.FilterAttrs{LinkIndex: t.A.Index, Parent: netlink.HANDLE_MIN_EGRESS, Priority: 1, Protocol: unix.ETH_P_ALL}}
		if err := errors.Join(h.QdiscAdd(clsact), h.FilterAdd(filter)); err != nil {
			return fmt.Errorf("add a policer: %w", err)
		}
		return nil
	}
}

// demand is what a user wants.
type demand struct {
	rate float64 // bits a second of datagrams; 0: as much as its connections get
	tcp  int     // connections
}

// crowd is who shares a rate.
type crowd struct {
	name  string
	rate  float64 // bits a second
	users []demand
	size  int // bytes of a datagram with its headers
	gso   bool
}

// crowds of users; datagrams are larger where an emulated CPU could not send as many.
func crowds(rate float64) []crowd {
	size, small := 1000, 200
	if rate > 10e6 {
		size, small = 1500, 1500
	}
	three := crowd{name: "TCP x 1, TCP x 8, UDP at twice the rate", rate: rate, size: size, users: []demand{{tcp: 1}, {tcp: 8}, {rate: 2 * rate}}}
	return []crowd{
		{name: "1 user, TCP", rate: rate, users: []demand{{tcp: 1}}}, {name: "1 user, TCP, aggregates", rate: rate, users: []demand{{tcp: 1}}, gso: true},
		three, drawn(100, rate, size), drawn(10_000, rate, small),
	}
}

// drawn users send datagrams at .2 to 3.8 times the fair share, twice the rate together.
func drawn(n int, rate float64, size int) crowd {
	c := crowd{name: fmt.Sprintf("%d users, UDP", n), rate: rate, size: size}
	for i := range n {
		share := .2 + 3.6*float64((i*7919)%n)/float64(n)
		c.users = append(c.users, demand{rate: share * rate / float64(n)})
	}
	return c
}

// fair is what max-min leaves each: shares of rate between users who send datagrams at the rates sent, or TCP, each of which would take all.
func (c crowd) fair(rate float64, sent []float64) []float64 {
	want := make([]float64, len(c.users))
	order := make([]int, len(c.users))
	for i, u := range c.users {
		want[i], order[i] = sent[i], i
		if u.tcp > 0 {
			want[i] = rate
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(want[a], want[b]) })
	for n, i := range order {
		want[i] = min(want[i], rate/float64(len(order)-n))
		rate -= want[i]
	}
	return want
}

// classes are users that are judged together: of ten thousand one sends a few datagrams in the whole time, so those of like demand are, a hundred of them.
func (c crowd) classes() (list [][]int) {
	const most = 100
	order := make([]int, len(c.users))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.users[a].rate, c.users[b].rate) })
	for part := range slices.Chunk(order, max(1, len(order)/most)) {
		list = append(list, part)
	}
	return list
}

// outcome is the result of one load with one shaper.
type outcome struct {
	use, most float64       // of the rate: over the whole time, and in the worst second
	off       float64       // mean deviation of users from their fair shares of what got through
	probes    []float64     // round trips of a user who sends next to nothing, sorted, ns
	lost      int           // of probes
	datagrams float64       // a second
	offered   float64       // datagrams a second that were to be sent
	late      time.Duration // timers of this machine, at most
}

func (o outcome) String() string {
	return fmt.Sprintf("use %.3f, worst second %.3f, users %.1f %% off their fair share, a quiet user's round trip %v (p99 %v), %d of %d of its probes lost, %.0f of %.0f datagrams/s; timers late by at most %v",
		o.use, o.most, 100*o.off, quantile(o.probes, .5), quantile(o.probes, .99), o.lost, o.lost+len(o.probes), o.datagrams, o.offered, o.late.Round(time.Millisecond))
}

func quantile(sorted []float64, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return time.Duration(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]).Round(10 * time.Microsecond)
}

// shape puts one load through one shaper. Only what xdpmon promises is a bar; the rest is there to be compared.
func (s shaper) shape(c crowd) (detail string, err error) {
	t, err := netns.New(netns.Options{SingleSegments: !c.gso})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := anywhere(t); err != nil {
		return "", err
	}
	if s.install != nil {
		if err := s.install(t, c.rate); err != nil {
			return "", err
		}
	}
	var run *attached
	if s.args != nil {
		if run, err = start(t, append(slices.Clone(s.args), "--set", fmt.Sprintf("ahab.capacity=%.0fbit", c.rate))...); err != nil {
			return "", err
		}
	}
	late := lateness()
	o, err := c.send(t)
	o.late = late()
	if run != nil {
		err = errors.Join(err, run.end(unix.SIGINT))
	}
	if err != nil {
		return "", err
	}
	return o.String(), s.judge(o)
}

func (s shaper) judge(o outcome) error {
	if s.args == nil {
		return nil
	}
	const ceiling, burst = 1.02, .2 // ahab.burst, in seconds
	if o.most > ceiling+burst+min(o.late, paceLate).Seconds() || o.use > 1.01+burst/shareTime.Seconds() {
		return fmt.Errorf("more than the ceiling and one burst got through: %s", o)
	}
	return nil
}

// anywhere lets A send from all of 10.128.0.0/16, and B answer there.
func anywhere(t *netns.Topology) error {
	_, users, err := net.ParseCIDR("10.128.0.0/16")
	if err != nil {
		return err
	}
	a, err := t.A.Netlink()
	if err != nil {
		return err
	}
	defer a.Close()
	lo, err := a.LinkByName("lo")
	if err != nil {
		return err
	}
	local := &netlink.Route{Dst: users, LinkIndex: lo.Attrs().Index, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: unix.RT_TABLE_LOCAL}
	b, err := t.B.Netlink()
	if err != nil {
		return err
	}
	defer b.Close()
	return errors.Join(a.RouteAdd(local), b.RouteAdd(&netlink.Route{Dst: users, LinkIndex: t.B.Index, Gw: t.A.IPv4.AsSlice()}))
}

func userAddress(i int) [4]byte { return [4]byte{10, 128, byte(i / 250), byte(1 + i%250)} }
