package waits

import (
	"cmp"
	"maps"
	"slices"

	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
	"github.com/xdpmon/xdpmon/userspace/waits/cause"
)

// The words of the counters.
const (
	numberBit = 28
	creditBit = 48
	signBit   = 50
	crowdBit  = 40 // of a tally of waits without a place
)

// key is what a counter belongs to: a connection, from the end that waits to the one that is waited for, and a kind.
type key struct {
	flow heavy.Key
	kind uint8
}

// counted is what was counted of a key, in ticks of 2^14 ns.
type counted struct {
	hash         uint64
	path         uint64
	end          uint8 // that is waited for: 0 the lower, 1 the upper one
	server       bool  // that end is the server
	number, time uint64
}

// spot is a word's place.
type spot struct{ way, index int }

// owners are the keys of the words of a bank, and what was counted of them and of those that had a word before.
type owners struct {
	at   map[spot]key
	sign map[spot]uint64
	all  map[key]*counted
	lost uint64 // waits of keys that nobody named, because their report was dropped
}

func newOwners() owners {
	return owners{at: map[spot]key{}, sign: map[spot]uint64{}, all: map[key]*counted{}}
}

// take is a key that takes a word.
func (o *owners) take(c *config, e *event) {
	index, sign := c.placeOf(e.Hash, e.Kind, e.End, int(e.Way))
	at := spot{int(e.Way), index}
	o.end(at, e.Word)
	k, ok := keyOf(c, e)
	if !ok {
		return
	}
	o.at[at], o.sign[at] = k, sign
	n := o.all[k]
	if n == nil {
		n = &counted{hash: e.Hash, end: e.End}
		o.all[k] = n
	}
	n.server = e.Server == e.End
	if e.Path != 0 {
		n.path = e.Path
	}
}

// keyOf names a report's connection.
func keyOf(c *config, e *event) (key, bool) {
	lower, upper := heavy.Address(e.Lower, e.Family), heavy.Address(e.Upper, e.Family)
	p := packet.Packet{Valid: packet.IP | packet.Ports, Src: upper, SrcPort: e.Uport, Dst: lower, DstPort: e.Lport, Proto: 6}
	if e.End == 1 {
		p.Src, p.SrcPort, p.Dst, p.DstPort = lower, e.Lport, upper, e.Uport
	}
	k, ok := c.spec.Of(&p)
	return key{k, e.Kind}, ok
}

// end adds what a word held to the key that had it.
func (o *owners) end(at spot, word uint64) {
	number := word >> numberBit & (1<<(creditBit-numberBit) - 1)
	if word == 0 {
		return
	}
	k, known := o.at[at]
	if !known || o.sign[at] != word>>signBit {
		o.lost += number
		return
	}
	o.all[k].number += number
	o.all[k].time += word & (1<<numberBit - 1)
}

// words are the waits for a snapshot.
func (o *owners) words(c *config, missed, torn, crowd []uint64) snapshot.Words {
	keys := slices.SortedFunc(maps.Keys(o.all), func(a, b key) int { return cmp.Or(a.flow.Compare(b.flow), cmp.Compare(a.kind, b.kind)) })
	w := make(snapshot.Words, 0, waitWidth*len(keys))
	for _, k := range keys {
		n := o.all[k]
		if n.number == 0 {
			continue
		}
		place, _ := c.placeOf(n.hash, k.kind, n.end, 0)
		slot := c.slotOf(n.hash)
		w = append(append(w, k.flow[:]...), uint64(k.kind), flags(n), n.path, n.number, n.time, crowd[place]>>crowdBit, crowd[place]&(1<<crowdBit-1), missed[slot], torn[slot])
	}
	return w
}

// flagServer marks waits for the server.
const flagServer = 1

func flags(n *counted) uint64 {
	if n.server {
		return flagServer
	}
	return 0
}

// kinds is the number of kinds of waits.
const kinds = uint8(cause.Kinds)
