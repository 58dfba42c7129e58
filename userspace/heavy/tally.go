package heavy

import "github.com/xdpmon/xdpmon/userspace/packet"

// Tally counts every flow exactly.
type Tally struct {
	Spec   Spec
	Bytes  bool // else packets
	Counts map[Key]float64
	Total  uint64
}

// NewTally is an empty tally.
func NewTally(spec Spec, bytes bool) *Tally {
	return &Tally{Spec: spec, Bytes: bytes, Counts: map[Key]float64{}}
}

// Packet implements algo.Oracle.
func (t *Tally) Packet(p *packet.Packet) {
	key, ok := t.Spec.Of(p)
	if !ok {
		return
	}
	units := uint64(p.Segs)
	if t.Bytes {
		units = uint64(p.Len)
	}
	t.Counts[key] += float64(units)
	t.Total += units
}

// Forget starts with empty counts; maps that were returned before stay valid.
func (t *Tally) Forget() { t.Counts, t.Total = map[Key]float64{}, 0 }
