// Package beaucoup is userspace's half of BeauCoup: queries "how many distinct A per B", the compiler that maps them to coupon
// collectors, alerts, and the exact answer to compare with. Chen, "Designing Compact Data Structures for Network Measurement and
// Control", chapter 4.
package beaucoup

import (
	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

func init() { algo.Register(descriptor()) }

// losses describe the entries of algo.Result.Lost.
var losses = map[string]string{
	"ties":     "packets with two coupons, of which one was lost",
	"crowds":   "packets with more than two coupons, which lost all of them; with several tables, those of a table but one",
	"collided": "coupons whose table slot another key occupies",
	"evicted":  "collectors that were ended because they could no longer raise an alert",
	"raced":    "coupons that arrived while another core was starting the same collector",
	"no_key":   "coupons of packets without the key's fields",
	"alerts":   "alerts that were dropped because the ring to userspace was full",
	"exports":  "keys' vectors that were dropped because the ring to userspace was full",
}

func descriptor() *algo.Descriptor {
	return &algo.Descriptor{
		Name:    Name,
		Summary: "who has too many distinct peers, ports, packets: many queries at once",
		Lost:    losses,
		Paper:   `Chen: "Designing Compact Data Structures for Network Measurement and Control", dissertation, Princeton University, 2023, chapter 4`,
		Doc:     doc,
		Params:  params,
		Twin: []algo.TwinForm{algo.Just("coupons", "32"), algo.Just("export", "false"), algo.Just("total", "auto", "false"), algo.Just("tables", "1"),
			algo.Just("places", "1")},
		Spec:     bpf.LoadBeaucoup,
		Config:   algo.Typed(newConfig),
		Layout:   2,
		Lines:    func() algo.LineMerger { return NewMerger() },
		Findings: findings,
	}
}

const doc = `Up to 128 queries of the form "which keys have more than T distinct attributes within W", in one program that
touches memory for a part of the packets only. A query is written

  NAME: count distinct FIELDS by FIELDS > NUMBER in DURATION [if FILTER]

  superspreader: count distinct dst by src > 1000 in 1s

  syn-flood: count distinct src+sport by dst+dport > 5000 in 1s if tcp.syn and not tcp.ack

Fields, joined by +: src and dst (also src/24; lengths to 32 mean IPv4, longer ones IPv6), sport, dport, proto, vlan, tcp.flags,
dns.id, dns.qname (hash of the name that is asked for), timestamp (different in every packet: counts packets; attributes only). Filters, joined by and: tcp, udp, icmp,
ipv4, ipv6, [not] tcp.syn (ack, fin, rst, psh, urg), sport=, dport=, proto=, vlan=, tcp.flags=.

Each query collects coupons: an attribute's hash draws one of m coupons with probability p each, always the same one, and
n different ones raise an alert. m, p, n are chosen for the smallest error within the budget of coupons a packet. The error of
an alert's count is 12 to 18 per cent with 32 coupons, and more for small thresholds among many queries: xdpmon plan beaucoup
prints it. A packet that draws two coupons keeps one, one that draws more keeps none; probabilities allow for that, as if every
attribute were in one packet. With beaucoup.tables=3 it keeps one of each third of the attributes, and fields of a key that draw for other
queries take hardly any of its coupons. After an alert the key is counted on until its window ends: total. A collector's window begins with its first coupon; when half of the table is taken, those
without hope of an alert are evicted.

--set beaucoup.file=queries.yaml reads a YAML file: a list "queries" whose entries are queries like those above. A live run
follows changes of the file: no packet is missed, and queries that stay are undisturbed.`
