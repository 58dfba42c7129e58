package beaucoup

import (
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// attack is traffic that one query is for: packets of one key, whose other fields are all new.
type attack struct {
	query   int
	fixed   map[string]bool // fields of the key
	packets int
	syn     bool
}

const (
	attackGap  = 1_000_000      // ns between the packets of an attack
	attackRest = 31_000_000_000 // ns between attacks: windows of 30 s end
)

var (
	keyFields = regexp.MustCompile(`by (\S+) >`)
	attrField = regexp.MustCompile(`distinct (\S+) by`)
)

// fieldsOf splits a tuple.
func fieldsOf(pattern *regexp.Regexp, text string) map[string]bool {
	set := map[string]bool{}
	for _, field := range strings.Split(pattern.FindStringSubmatch(text)[1], "+") {
		set[field] = true
	}
	return set
}

func newAttack(n int, c *compile.Compiled, packets int) attack {
	return attack{query: n, fixed: fieldsOf(keyFields, c.Text()), packets: packets, syn: strings.Contains(c.Text(), "tcp.syn")}
}

// attacks are a model: one attack after the other, rounds times, each with a key of its own. A round is a window of the
// session. An attack on a protocol is UDP and all others are TCP, so that this key is one of its own, too.
type attacks struct {
	list   []attack
	rounds int
	rng    *rand.Rand

	at, sent int
	now      int64
	key      packet.Packet
	step     [2]uint32
	began    []int64 // of each attack
}

func newAttacks(seed uint64, list []attack, rounds int) *attacks {
	return &attacks{list: list, rounds: rounds, rng: rand.New(rand.NewPCG(seed, 3)), now: traffic.Start}
}

// window of the session, ns.
func (a *attacks) window() (sum int64) {
	for _, one := range a.list {
		sum += int64(one.packets)*attackGap + attackRest
	}
	return sum
}

// one is attack number n, over all rounds.
func (a *attacks) one(n int) *attack { return &a.list[n%len(a.list)] }

// Next implements traffic.Model.
func (a *attacks) Next(p *packet.Packet) bool {
	if a.at < a.rounds*len(a.list) && a.sent == a.one(a.at).packets {
		a.at, a.sent = a.at+1, 0
		a.now += attackRest
	}
	if a.at == a.rounds*len(a.list) {
		return false
	}
	if a.sent == 0 {
		a.begin()
	}
	a.now += attackGap
	a.fill(p)
	a.sent++
	return true
}

// begin draws a key.
func (a *attacks) begin() {
	a.key = blank(0)
	a.key.Src, a.key.Dst = address(a.rng.Uint32()), address(a.rng.Uint32())
	a.key.SrcPort, a.key.DstPort = uint16(a.rng.Uint32()), uint16(a.rng.Uint32())
	a.step = [2]uint32{a.rng.Uint32() | 1, a.rng.Uint32() | 1}
	a.began = append(a.began, a.now)
}

// fill in a packet: ports take all their values before one repeats.
func (a *attacks) fill(p *packet.Packet) {
	c := a.one(a.at)
	*p = a.key
	p.Time = a.now
	if !c.syn {
		p.TCPFlags = packet.ACK
	}
	if c.fixed["proto"] {
		p.Proto, p.TCPFlags, p.Valid, p.Len = 17, 0, packet.IP|packet.Ports|packet.UDP|packet.IPID, 42
	}
	if !c.fixed["src"] {
		p.Src = address(a.rng.Uint32())
	}
	if !c.fixed["dst"] {
		p.Dst = address(a.rng.Uint32())
	}
	if !c.fixed["sport"] {
		p.SrcPort += uint16(uint32(a.sent) * a.step[0])
	}
	if !c.fixed["dport"] {
		p.DstPort += uint16(uint32(a.sent) * a.step[1])
	}
}

// count of the packets of attack number n at a time; 0 when it is not of this attack.
func (a *attacks) count(n int, time int64) float64 {
	from := a.began[n]
	if time <= from || time > from+int64(a.one(n).packets)*attackGap {
		return 0
	}
	return float64((time - from) / attackGap)
}
