package link

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Crowd is users who arrive by chance, send a volume from a heavy-tailed distribution at a rate of their own, and go: pairs of addresses on a
// provider's link. Volumes are Pareto with exponent 1.2, cut at 20 MB; rates are log-normal with a median of 2 Mbit/s and a factor of
// 4.5 as its deviation, 200 Mbit/s at most. Gaps between packets are exponential.
type Crowd struct {
	random   *rand.Rand
	arrivals float64 // a second
	smallest float64 // bytes of a volume
	queue    senders
	next     time.Duration // arrival
	users    int
	p        packet.Packet
	active   map[int]*visitor
}

type visitor struct {
	left, rate float64 // bytes, bytes a second
	size       uint32
}

const (
	paretoExponent = 1.2
	largestVolume  = 20e6
)

// NewCrowd makes one of so many users a second who send so many bits a second together in the long run.
func NewCrowd(seed uint64, arrivals, load float64) *Crowd {
	return &Crowd{random: rand.New(rand.NewPCG(seed, 0x63726f77)), arrivals: arrivals, smallest: smallestVolume(load / 8 / arrivals), active: map[int]*visitor{}}
}

// smallestVolume of a cut Pareto distribution with a mean.
func smallestVolume(mean float64) float64 {
	low, high := 1.0, mean
	for range 60 {
		m := (low + high) / 2
		tail := math.Pow(m/largestVolume, paretoExponent-1)
		if m*paretoExponent/(paretoExponent-1)*(1-tail)+m*tail > mean {
			high = m
		} else {
			low = m
		}
	}
	return low
}

// Next is the next packet: who sends it, when, and how long it is on the wire.
func (c *Crowd) Next() (user int, at time.Duration, p *packet.Packet) {
	for len(c.queue) == 0 || c.next < c.queue[0].next {
		c.arrive()
	}
	s := c.queue[0]
	v := c.active[s.user]
	user, at = s.user, s.next
	c.packet(user, at, v)
	v.left -= float64(c.p.Len)
	if v.left <= 0 {
		delete(c.active, s.user)
		heap.Pop(&c.queue)
		return user, at, &c.p
	}
	s.next += time.Duration(c.random.ExpFloat64() * float64(v.size) / v.rate * 1e9)
	heap.Fix(&c.queue, 0)
	return user, at, &c.p
}

func (c *Crowd) arrive() {
	v := &visitor{left: min(largestVolume, c.smallest*math.Pow(1-c.random.Float64(), -1/paretoExponent)),
		rate: min(25e6, 250e3*math.Exp(1.5*c.random.NormFloat64()))}
	v.size = uint32(min(1514, max(64, v.left)))
	c.active[c.users] = v
	heap.Push(&c.queue, &sender{user: c.users, next: c.next})
	c.users++
	c.next += time.Duration(c.random.ExpFloat64() / c.arrivals * 1e9)
}

func (c *Crowd) packet(user int, at time.Duration, v *visitor) {
	c.p = packet.Packet{Valid: packet.IP | packet.Ports | packet.UDP, Src: netip.AddrFrom4([4]byte{10, byte(user >> 16), byte(user >> 8), byte(user)}),
		Dst: netip.AddrFrom4([4]byte{172, 16, byte(user >> 24), 1}), SrcPort: 1024, DstPort: 443, Proto: 17, Payload: v.size - 42, Segs: 1, Len: v.size}
	if v.left < float64(v.size) {
		c.p.Len = uint32(max(64, v.left))
		c.p.Payload = c.p.Len - 42
	}
}

// Users that have appeared.
func (c *Crowd) Users() int { return c.users }

// Judged is what a crowd lost, by whether a user's exact rate was below the limit.
type Judged struct {
	Users, Packets        int
	Bytes, Below, Lost    float64 // bytes: all, of users below the limit, and what those lost
	Above, LostAbove, Due float64 // of users above it, what they lost, and what they should have
	Limited               float64 // share of packets that arrived while the limit was below the capacity
}

// Judge lets a crowd send until the end, and compares with exact rates from a time on.
func (l *Link) Judge(c *Crowd, from, end, tau time.Duration, highest uint32) (*Judged, error) {
	type exact struct {
		value float64
		at    time.Duration
	}
	rates, j, limit := map[int]*exact{}, &Judged{}, highest
	for {
		user, at, p := c.Next()
		if at >= end {
			break
		}
		e := rates[user]
		if e == nil {
			e = &exact{}
			rates[user] = e
		}
		e.value = e.value*math.Exp(-float64(at-e.at)/float64(tau)) + 16*float64(p.Len)
		e.at = at
		passed, next, err := l.decide(p, at)
		if err != nil {
			return nil, err
		}
		if at >= from {
			j.add(float64(p.Len), e.value, float64(limit), passed)
			if limit < highest {
				j.Limited++
			}
		}
		if next != 0 {
			limit = next
		}
		if c.active[user] == nil {
			delete(rates, user)
		}
	}
	j.Users, j.Limited = c.Users(), j.Limited/float64(j.Packets)
	return j, nil
}

func (j *Judged) add(length, rate, limit float64, passed bool) {
	lost := length
	if passed {
		lost = 0
	}
	j.Packets++
	j.Bytes += length
	if rate <= limit {
		j.Below, j.Lost = j.Below+length, j.Lost+lost
		return
	}
	j.Above, j.LostAbove, j.Due = j.Above+length, j.LostAbove+lost, j.Due+length*(1-limit/rate)
}
