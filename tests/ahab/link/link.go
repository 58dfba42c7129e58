// Package link is a bottleneck in virtual time: users send, the bytecode that `xdpmon attach` loads decides over each packet at the time
// that it bears, and what passed, what was dropped and the limit are known for every millisecond.
package link

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// User sends datagrams of one size at one rate.
type User struct {
	From, Until time.Duration
	Rate        float64 // bits a second on the wire
	Size        int     // bytes of an IP packet; 0: 1500
	Src         netip.Addr
	Proto       packet.Valid // packet.UDP, or packet.TCP; 0: UDP
}

// Jitter of the gaps between a user's packets: each is this part longer or shorter at most.
const Jitter = 0.1

// Step of what users got, and Glance of the limits.
const (
	Step   = time.Millisecond
	Glance = Step / 10
)

// Link runs one instance of ahab.
type Link struct {
	Algorithm algo.Instance
	// Clock is what packets and the control loop take for the time; nil: it is the time.
	Clock  func(at time.Duration) time.Duration
	inst   *loader.Instance
	feed   *replay.Replayer
	set    *maps.Set
	limit  *maps.Array
	packer builder.Packer
	random *rand.Rand
}

// New loads ahab with these parameters. Close it.
func New(set map[string]string, seed uint64) (*Link, error) {
	d, err := algo.Lookup("ahab")
	if err != nil {
		return nil, err
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return nil, err
	}
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: seed}, true)
	if err != nil {
		return nil, err
	}
	inst, err := loader.Load(objects, loader.Options{Seed: seed, Replay: true, Fixed: true})
	if err != nil {
		return nil, err
	}
	l := &Link{Algorithm: instances[0], inst: inst, random: rand.New(rand.NewPCG(seed, 0x61686162))}
	if err := l.bind(seed); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Link) bind(seed uint64) (err error) {
	if l.set, err = l.inst.Set("ahab"); err != nil {
		return err
	}
	if err := l.Algorithm.Bind(l.set); err != nil {
		return err
	}
	if l.limit, err = l.set.Array("ahab_limit"); err != nil {
		return err
	}
	l.feed, err = replay.New(l.inst, seed)
	return err
}

// Close unloads.
func (l *Link) Close() error {
	if l.feed != nil {
		return errors.Join(l.feed.Close(), l.inst.Close())
	}
	return l.inst.Close()
}

// Flow is what became of a user's bytes, by milliseconds.
type Flow struct{ Sent, Passed []float64 }

// Result of a run.
type Result struct {
	Users   []Flow
	Limit   [][]uint32 // by slice, then by Glance: the register at its end
	Packets int
}

// LimitAt is a slice's limit at a time.
func (r *Result) LimitAt(slice int, at time.Duration) uint32 {
	return r.Limit[slice][max(0, at/Glance-1)]
}

// Rate is what passed of a user in [from, to), in bits a second.
func (f Flow) Rate(from, to time.Duration) float64 {
	sum := 0.0
	for _, b := range f.Passed[from/Step : to/Step] {
		sum += b
	}
	return 8 * sum / (to - from).Seconds()
}

// sender is a user in the queue of events.
type sender struct {
	user   int
	next   time.Duration
	packet packet.Packet
}

type senders []*sender

func (s senders) Len() int           { return len(s) }
func (s senders) Less(i, j int) bool { return s[i].next < s[j].next }
func (s senders) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *senders) Push(x any)        { *s = append(*s, x.(*sender)) }
func (s *senders) Pop() any          { old := *s; x := old[len(old)-1]; *s = old[:len(old)-1]; return x }

func (l *Link) sender(n int, u User) *sender {
	size := u.Size
	if size == 0 {
		size = 1500
	}
	src := u.Src
	if !src.IsValid() {
		src = netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
	}
	p := packet.Packet{Valid: packet.IP | packet.Ports | packet.UDP, Src: src, Dst: netip.AddrFrom4([4]byte{10, 200, 0, 1}),
		SrcPort: uint16(1024 + n), DstPort: 5001, Proto: 17, Payload: uint32(size - 28), Segs: 1}
	if u.Proto == packet.TCP {
		p.Valid, p.Proto, p.Payload, p.TCPFlags = packet.IP|packet.Ports|packet.TCP, 6, uint32(size-40), packet.ACK
	}
	p.Len = uint32(size + 14)
	return &sender{user: n, next: u.From + time.Duration(l.random.Float64()*float64(u.gap(p.Len))), packet: p}
}

// gap between two packets of a length.
func (u User) gap(length uint32) time.Duration {
	return time.Duration(float64(length) * 8 / u.Rate * 1e9)
}

// Run lets users send until the end; each is called at the end of every millisecond, if it is not nil.
func (l *Link) Run(users []User, end time.Duration, each func(now time.Duration) error) (*Result, error) {
	steps := int(end / Step)
	r := &Result{Users: make([]Flow, len(users))}
	queue := senders{}
	for n, u := range users {
		r.Users[n] = Flow{make([]float64, steps), make([]float64, steps)}
		heap.Push(&queue, l.sender(n, u))
	}
	done := 0 // glances
	for len(queue) > 0 && queue[0].next < end {
		s := queue[0]
		for ; done < int(s.next/Glance); done++ {
			if err := l.ends(r, done, each); err != nil {
				return nil, err
			}
		}
		u := users[s.user]
		if s.next >= u.Until {
			heap.Pop(&queue)
			continue
		}
		passed, err := l.send(&s.packet, s.next)
		if err != nil {
			return nil, err
		}
		r.Packets++
		r.Users[s.user].Sent[s.next/Step] += float64(s.packet.Len)
		if passed {
			r.Users[s.user].Passed[s.next/Step] += float64(s.packet.Len)
		}
		s.next += time.Duration(float64(u.gap(s.packet.Len)) * (1 + Jitter*(2*l.random.Float64()-1)))
		heap.Fix(&queue, 0)
	}
	for ; done < int(end/Glance); done++ {
		if err := l.ends(r, done, each); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// ends a glance, and with each tenth a millisecond.
func (l *Link) ends(r *Result, done int, each func(time.Duration) error) error {
	words, err := l.limit.Read(0, nil)
	if err != nil {
		return err
	}
	if r.Limit == nil {
		r.Limit = make([][]uint32, len(words))
	}
	for n, w := range words {
		r.Limit[n] = append(r.Limit[n], uint32(w))
	}
	now := time.Duration(done+1) * Glance
	if c, ok := l.Algorithm.(algo.Controller); ok && now%time.Duration(c.IntervalNS()) == 0 {
		if err := c.Tick(l.stamp(now)); err != nil {
			return err
		}
	}
	if each != nil && now%Step == 0 {
		return each(now)
	}
	return nil
}

// stamp is what the clock shows.
func (l *Link) stamp(at time.Duration) int64 {
	if l.Clock != nil {
		at = l.Clock(at)
	}
	return traffic.Start + int64(at)
}

// verdictDrop is VERDICT_DROP.
const verdictDrop = 2

// send reports whether a packet passes.
func (l *Link) send(p *packet.Packet, at time.Duration) (bool, error) {
	passed, _, err := l.decide(p, at)
	return passed, err
}

// decide is send, and the limit that the packet has written; 0: it has not.
func (l *Link) decide(p *packet.Packet, at time.Duration) (passed bool, limit uint32, err error) {
	var f packet.Frame
	p.Time = l.stamp(at)
	if err := l.packer.Frame(p, &f); err != nil {
		return false, 0, err
	}
	v, err := l.feed.Step(&f)
	if err != nil {
		return false, 0, fmt.Errorf("send packet: %w", err)
	}
	if v.Pass != 0 {
		limit = uint32(v.Carry[1])
	}
	return v.Verdict != verdictDrop, limit, nil
}
