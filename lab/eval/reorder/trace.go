package reorder

import (
	"errors"
	"io"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/reorder"
)

// segment is one packet of a trace: what differs from the flow's other packets.
type segment struct {
	time    int64 // ns
	flow    uint32
	seq     uint32
	payload uint32
}

// trace is traffic that is stored, to be replayed many times, with what is true of it.
type trace struct {
	segments []segment
	flows    []packet.Packet
	truth    *truth
}

// model makes the traffic of a seed.
func model(p *eval.Page, seed uint64) (*trace, error) {
	m, err := traffic.NewReorder(traffic.ReorderOptions{
		Packets: eval.Pick(p, 1_640_000, 60_000), Flows: eval.Pick(p, 109_000, 4_000), Prefixes: eval.Pick(p, 17_097, 400),
		Span: eval.Pick(p, 6*time.Second, time.Second), Seed: seed})
	if err != nil {
		return nil, err
	}
	return recorded(m)
}

// recorded is all of a model's traffic.
func recorded(m *traffic.Reorder) (*trace, error) {
	b := newRecorder()
	var segment packet.Packet
	for m.Next(&segment) {
		if err := b.add(&segment); err != nil {
			return nil, err
		}
	}
	return b.trace, nil
}

// recorder keeps what reordering is defined for.
type recorder struct {
	trace   *trace
	tracker *reorder.Tracker
}

func newRecorder() *recorder { return &recorder{&trace{truth: newTruth()}, reorder.NewTracker()} }

func (r *recorder) add(p *packet.Packet) error {
	v, used := r.tracker.Packet(p)
	if !used {
		return nil
	}
	t := r.trace
	if int(v.Flow) == len(t.flows) {
		t.flows = append(t.flows, *p)
	}
	t.segments = append(t.segments, segment{p.Time, v.Flow, p.Seq, p.Payload})
	return t.truth.add(v, p)
}

// source replays the trace.
func (t *trace) source() *player { return &player{trace: t} }

type player struct {
	trace  *trace
	next   int
	packer builder.Packer
	p      packet.Packet
}

// Next implements capture.Source.
func (s *player) Next(f *packet.Frame) error {
	if s.next == len(s.trace.segments) {
		return io.EOF
	}
	at := &s.trace.segments[s.next]
	s.next++
	s.p = s.trace.flows[at.flow]
	s.p.Time, s.p.Seq, s.p.Payload = at.time, at.seq, at.payload
	s.p.Valid &= packet.IP | packet.Ports | packet.TCP
	return s.packer.Frame(&s.p, f)
}

// Progress implements capture.Source.
func (s *player) Progress() (read, total int64) { return int64(s.next), int64(len(s.trace.segments)) }

// Skipped implements capture.Source.
func (s *player) Skipped() map[string]uint64 { return nil }

// Close implements capture.Source.
func (s *player) Close() error { return nil }

var errEmpty = errors.New("no packet with TCP payload")
