package samples

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// How often the stream of samples is read, ns: live, and of a capture's time. The ring holds what its rate allows in a second and a half.
const (
	sampleEvery       = 100_000_000
	sampleReplayEvery = 250_000_000
)

// paceOf is the length of a window without an end, ns.
const paceOf = 10_000_000_000

// ringBytes hold 4,095 samples: what is sent at most in a second and a half.
const ringBytes = 1 << 18

// streamRate is how many samples a second the data plane sends at most: SAMPLE_RATE of bpf/fridge/fridge.bpf.c.
const streamRate = 2048

// drawnRate is how many are drawn whatever their delay.
const drawnRate = streamRate / 4

// mostShift draws one id of 2^20: more would leave none.
const mostShift = 20

// Stream reads the samples and makes them follow the load.
type Stream struct {
	Form
	ring    *maps.Ring
	choice  *maps.Array
	counts  *maps.Array
	pending [2]*Collection
	bank    int    // that the data plane writes to
	floor   int64  // ns
	shift   int    // one response of 2^shift is drawn
	given   uint64 // last written choice
	start   int64  // of the window, ns; 0: not ticked yet
	last    int64  // tick, ns
	drawn   int    // since then
	offered uint64 // to the stream in this window, until then
	words   []uint64
}

// NewStream has no floor.
func NewStream(f Form) *Stream {
	s := &Stream{Form: f}
	s.pending = [2]*Collection{NewCollection(f, 0), NewCollection(f, 0)}
	return s
}

// Bind receives the loaded maps.
func (s *Stream) Bind(set *maps.Set) (err error) {
	if s.choice, err = set.Array("fridge_choice"); err != nil {
		return err
	}
	if s.counts, err = set.Array("fridge_sampling"); err != nil {
		return err
	}
	stream, err := set.Array("fridge_stream")
	if err != nil {
		return err
	}
	if s.ring, err = stream.Ring(); err != nil {
		return err
	}
	s.given = math.MaxUint64
	return s.publish()
}

// publish writes floor and mask where they have changed.
func (s *Stream) publish() error {
	word := (uint64(1)<<s.shift-1)<<32 | uint64(s.floor/s.Form.Tick)
	if word == s.given {
		return nil
	}
	s.given = word
	return s.choice.Write(0, []uint64{word})
}

// IntervalNS implements algo.Controller.
func (s *Stream) IntervalNS() int64 { return sampleEvery }

// Rests implements algo.Rester.
func (s *Stream) Rests() bool { return true }

// Begin implements algo.WindowOpener.
func (s *Stream) Begin(bank int) { s.bank = bank }

// NextTick implements algo.ReplayController.
func (s *Stream) NextTick(_, now int64) int64 { return now + sampleReplayEvery }

// Tick implements algo.Controller: it reads the stream and makes it follow the load.
func (s *Stream) Tick(now int64) (err error) {
	if err := s.poll(); err != nil {
		return err
	}
	if s.words, err = s.counts.Read(s.bank, s.words); err != nil {
		return err
	}
	if s.start == 0 {
		s.start = now
	}
	s.follow(now, offered(s.words))
	length := s.WindowNS
	if length == 0 {
		length = paceOf
	}
	s.floor = s.pending[s.bank].pace(s.floor, min(1, max(0, float64(now-s.start)/float64(length))))
	return s.publish()
}

// offered are the samples that were worth a report.
func offered(n []uint64) uint64 {
	return n[bpf.FridgeFridgeSamplingCounterSAMPLES_SENT] + n[bpf.FridgeFridgeSamplingCounterSAMPLES_REFUSED] + n[bpf.FridgeFridgeSamplingCounterSAMPLES_LOST]
}

// follow chooses the share of responses that is drawn: by the rate of those that were, and where more were offered than the stream carries, by that.
func (s *Stream) follow(now int64, offered uint64) {
	if s.last != 0 && now > s.last {
		seconds := float64(now-s.last) / 1e9
		rate := float64(s.drawn) / seconds
		if all := float64(offered-min(s.offered, offered)) / seconds; all > streamRate {
			rate = all
		}
		switch {
		case rate > 2*drawnRate:
			s.shift = min(mostShift, s.shift+bits.Len(uint(rate/drawnRate))-1)
		case rate < drawnRate/4:
			s.shift = max(0, s.shift-1)
		}
	}
	s.drawn, s.last, s.offered = 0, now, offered
}

// poll drains the ring and adds each sample to its window.
func (s *Stream) poll() error {
	return s.ring.Drain(func(b []byte) {
		var r bpf.FridgeFridgeSample
		if len(b) < int(unsafe.Sizeof(r)) {
			return
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)), b)
		one, ok := s.sampleOf(&r)
		if !ok {
			return
		}
		s.pending[r.Flags&uint8(bpf.FridgeFridgeSampleFlagSAMPLE_BANK)].Add(one)
		if r.Flags&uint8(bpf.FridgeFridgeSampleFlagSAMPLE_DRAWN) != 0 {
			s.drawn++
		}
	})
}

// sampleOf is a record of the ring; false if no program of this configuration can have written it.
func (s *Stream) sampleOf(r *bpf.FridgeFridgeSample) (Sample, bool) {
	p := packet.Packet{Valid: packet.IP | packet.Ports, Src: heavy.Address(r.Src, r.Family), Dst: heavy.Address(r.Dst, r.Family),
		SrcPort: r.Sport, DstPort: r.Dport, Proto: r.Proto}
	key, ok := Spec.Of(&p)
	return Sample{Time: int64(r.Time), Delay: int64(r.Delay) * s.Form.Tick, X: r.X, Part: int(r.Fridge), Key: key}, ok && int(r.Fridge) < s.Parts
}

// Read ends a window. The next one starts with the least delay of its list as its floor.
func (s *Stream) Read(end int64, bank int) (w Window, err error) {
	if err := s.poll(); err != nil {
		return w, fmt.Errorf("read samples: %w", err)
	}
	n, err := s.counts.ReadReset(bank, nil)
	if err != nil {
		return w, fmt.Errorf("read samples: %w", err)
	}
	c := s.pending[bank]
	w = Window{List: c.All(), Complete: c.complete(), Sent: n[bpf.FridgeFridgeSamplingCounterSAMPLES_SENT],
		Refused: n[bpf.FridgeFridgeSamplingCounterSAMPLES_REFUSED], Lost: n[bpf.FridgeFridgeSamplingCounterSAMPLES_LOST]}
	s.pending[1-bank].floor, s.floor = max(s.floor, c.least()), c.least()
	s.pending[bank], s.bank = NewCollection(s.Form, 0), 1-bank
	s.start, s.offered = end, 0
	return w, s.publish()
}

// Configure sizes the ring: a page where no samples are sent.
func (f Form) Configure(spec *ebpf.CollectionSpec) error {
	size := os.Getpagesize()
	if f.Listed > 0 {
		size = ringBytes
	}
	return maps.SetEntries(spec, "fridge_stream", uint32(size))
}
