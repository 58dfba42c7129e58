// Package conquest judges ConQuest packet by packet: what the bytecode reports of every packet that waited long, beside the exact contents of
// the queue. docs/eval/conquest.md is made with it.
package conquest

import (
	"fmt"
	"io"
	"unsafe"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Link is the queue that all packets go through.
type Link struct {
	Rate   float64 // bits a second
	Buffer int64   // bytes
	Tau    int64   // ns
}

// Truth of one packet that waited tau or longer.
type Truth struct {
	Key         heavy.Key
	Departure   int64
	Delay       int64
	Size, Total uint64 // bytes of its flow, and of all, that left while it waited
}

// Share of the queue that was its flow's.
func (t Truth) Share() float64 { return float64(t.Size) / float64(max(t.Total, 1)) }

// Stream is traffic with its truth.
type Stream struct {
	Link
	Packets []packet.Packet
	Truth   []Truth // of packets that waited long, in order
	Dropped int
}

var spec = heavy.Spec{Fields: heavy.Src | heavy.Dst | heavy.SrcPort | heavy.DstPort | heavy.Proto}

// NewStream draws traffic and sends it through the link.
func NewStream(m traffic.Model, l Link) *Stream {
	s := &Stream{Link: l}
	model, contents := conquest.NewModel(l.Rate, l.Buffer), conquest.NewContents()
	var p packet.Packet
	for m.Next(&p) {
		s.Packets = append(s.Packets, p)
		w := model.Pass(p.Time, p.Len)
		if w.Dropped {
			s.Dropped++
			continue
		}
		key, _ := spec.Of(&p)
		if w.Delay() >= l.Tau {
			t := Truth{Key: key, Departure: w.Departure, Delay: w.Delay()}
			t.Size, t.Total = contents.Share(key, w.Arrival, w.Departure)
			s.Truth = append(s.Truth, t)
		}
		contents.Depart(key, w.Departure, uint64(p.Len))
	}
	return s
}

// Answer of the bytecode to one packet.
type Answer struct {
	Departure, Delay int64
	Size, Total      uint64
	Culprit          bool
	Low, High        float64 // between which its share is reported
}

// batch is how many packets go by between two looks at the ring.
const batch = 30000

// Ask sends a stream through the bytecode, which answers for every packet that waited long.
func (s *Stream) Ask(set map[string]string, seed uint64) ([]Answer, error) {
	b, err := open(s.parameters(set), seed)
	if err != nil {
		return nil, err
	}
	defer b.close()
	var packer builder.Packer
	for i := range s.Packets {
		var f packet.Frame
		if err := packer.Frame(&s.Packets[i], &f); err != nil {
			return nil, err
		}
		if err := b.feed.Feed(&f); err != nil {
			return nil, err
		}
		if i%batch == batch-1 {
			if err := b.drain(); err != nil {
				return nil, err
			}
		}
	}
	if err := b.drain(); err != nil {
		return nil, err
	}
	if len(b.answers) != len(s.Truth) {
		return nil, fmt.Errorf("ask about %d packets that waited: %d answers: %w", len(s.Truth), len(b.answers), io.ErrUnexpectedEOF)
	}
	return b.answers, nil
}

func (s *Stream) parameters(set map[string]string) map[string]string {
	all := map[string]string{"source": "replay", "rate": fmt.Sprintf("%.0fbit", s.Rate), "buffer": fmt.Sprint(s.Buffer), "tau": fmt.Sprintf("%dns", s.Tau)}
	for key, text := range set {
		all[key] = text
	}
	return all
}

// bench is the loaded program.
type bench struct {
	inst    *loader.Instance
	feed    *replay.Replayer
	ring    *maps.Ring
	shares  func(*bpf.ConquestConquestEvent) (value, low, high float64)
	answers []Answer
}

func open(set map[string]string, seed uint64) (_ *bench, err error) {
	d, err := algo.Lookup(conquest.Name)
	if err != nil {
		return nil, err
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		return nil, err
	}
	objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: seed}, true)
	if err != nil {
		return nil, err
	}
	if err := maps.SetConstants(objects[0].Spec, map[constant.Name]any{constant.ConquestEvery: true}); err != nil {
		return nil, err
	}
	b := &bench{}
	if b.shares, err = conquest.Shares(v, true); err != nil {
		return nil, err
	}
	if b.inst, err = loader.Load(objects, loader.Options{Seed: seed, Replay: true, Fixed: true}); err != nil {
		return nil, err
	}
	if err := b.start(seed); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) start(seed uint64) error {
	set, err := b.inst.Set(conquest.Name)
	if err != nil {
		return err
	}
	events, err := set.Array("conquest_events")
	if err != nil {
		return err
	}
	if b.ring, err = maps.NewRing(events.Map()); err != nil {
		return err
	}
	b.feed, err = replay.New(b.inst, seed)
	return err
}

func (b *bench) close() {
	if b.feed != nil {
		b.feed.Close()
	}
	b.inst.Close()
}

func (b *bench) drain() error {
	if err := b.feed.Flush(); err != nil {
		return err
	}
	return b.ring.Drain(func(record []byte) {
		e := (*bpf.ConquestConquestEvent)(unsafe.Pointer(unsafe.SliceData(record)))
		if e.Kind == uint32(bpf.ConquestConquestEventKindEVENT_PACKET) {
			_, low, high := b.shares(e)
			b.answers = append(b.answers, Answer{int64(e.Time), int64(e.Delay), e.Size, e.Total, e.Culprit != 0, low, high})
		}
	})
}

// Score counts packets of contributing flows.
type Score struct{ Right, Said, True int }

// Precision is the share of what was named that is right, Recall of what is right that was named.
func (s Score) Precision() float64 { return float64(s.Right) / float64(max(s.Said, 1)) }

// Recall of a score.
func (s Score) Recall() float64 { return float64(s.Right) / float64(max(s.True, 1)) }

// Judge compares answers with the truth: a packet is of a contributing flow if that has more than alpha of the queue. names decides what
// an answer names.
func (s *Stream) Judge(answers []Answer, alpha float64, names func(Answer) bool) (score Score) {
	for i, a := range answers {
		truth, named := float64(s.Truth[i].Size) > alpha*float64(s.Truth[i].Total), names(a)
		if truth {
			score.True++
		}
		if named {
			score.Said++
		}
		if named && truth {
			score.Right++
		}
	}
	return score
}

// Relative names a flow that has more than alpha of what left in the same snapshots.
func Relative(alpha float64) func(Answer) bool {
	return func(a Answer) bool { return float64(a.Size) > alpha*float64(a.Total) }
}

// Absolute is the paper's: more than alpha of what a queue of that delay holds.
func (s *Stream) Absolute(alpha float64) func(Answer) bool {
	return func(a Answer) bool { return float64(a.Size) > alpha*float64(a.Delay)*s.Rate/8e9 }
}

// Said is how answers of a reading are compared.
func (s *Stream) Said(set map[string]string, alpha float64) func(Answer) bool {
	if r := set["reading"]; r == "inner" || r == "outer" {
		return s.Absolute(alpha)
	}
	return Relative(alpha)
}

// Crowd is how many flows left while a packet waited that waited long, and how many of them had more than alpha of that, on average over a
// few hundred such packets.
func (s *Stream) Crowd(alpha float64) (flows, contributing float64) {
	const samples = 300
	step := max(1, len(s.Truth)/samples)
	model, contents, seen := conquest.NewModel(s.Rate, s.Buffer), conquest.NewContents(), 0.0
	recent := map[heavy.Key]int64{} // last departures
	waited := 0
	for i := range s.Packets {
		p := &s.Packets[i]
		w := model.Pass(p.Time, p.Len)
		if w.Dropped {
			continue
		}
		if w.Delay() >= s.Tau {
			if waited++; waited%step == 0 {
				seen++
				for key, last := range recent {
					if last < w.Arrival {
						delete(recent, key)
						continue
					}
					flows++
					if size, total := contents.Share(key, w.Arrival, w.Departure); float64(size) > alpha*float64(total) {
						contributing++
					}
				}
			}
		}
		key, _ := spec.Of(p)
		recent[key] = w.Departure
		contents.Depart(key, w.Departure, uint64(p.Len))
	}
	return flows / max(seen, 1), contributing / max(seen, 1)
}
