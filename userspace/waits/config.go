package waits

import (
	"strconv"
	"strings"

	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

const (
	baseMemory = 80_000
	baseSlots  = 1024
	baseWords  = 512
	tickBits   = 6 // a tick is 2^6 ns
	replayRing = 4 << 20
	wholeShare = 1 << 16
)

// config is the parsed and checked form of the parameters.
type config struct {
	spec         heavy.Spec
	small        uint32
	late, slow   int64 // ns
	share        uint32
	slots, words int
	top          int
	ring         int64
}

func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	fields, err := heavy.ParseKind("5tuple")
	if err != nil {
		return nil, err
	}
	c := &config{spec: heavy.Spec{Fields: fields}, small: uint32(v.Bytes("small")), late: int64(v.Duration("late")), slow: int64(v.Duration("slow")),
		top: int(v.Int("top")), ring: v.Bytes("ring")}
	if c.ring&(c.ring-1) != 0 {
		return nil, v.Error("ring", "allowed are powers of two from 4KiB to 1GiB")
	}
	if setup.Replay {
		c.ring = max(c.ring, replayRing)
	}
	p, ok := shareOf(v.Text("p"))
	if !ok {
		return nil, v.Error("p", "allowed is 1/1024 to 1, as a fraction or a number")
	}
	c.share = uint32(p * wholeShare)
	c.slots, c.words = baseSlots, baseWords
	for scale := int64(baseMemory); v.Bytes("memory") >= 2*scale && c.slots < 1<<16; scale *= 2 {
		c.slots, c.words = 2*c.slots, 2*c.words
	}
	for scale := int64(baseMemory); v.Bytes("memory") < scale && c.words > 32; scale /= 2 {
		c.slots, c.words = c.slots/2, c.words/2
	}
	return c, nil
}

// shareOf reads 1/4 or 0.25.
func shareOf(text string) (float64, bool) {
	above, below, fraction := strings.Cut(text, "/")
	p, err := strconv.ParseFloat(above, 64)
	if fraction && err == nil {
		var q float64
		q, err = strconv.ParseFloat(below, 64)
		p /= q
	}
	return p, err == nil && p >= 1./1024 && p <= 1
}

// constants of the program.
func (c *config) constants() map[constant.Name]any {
	return map[constant.Name]any{
		constant.WaitsSmall: c.small,
		constant.WaitsLate:  uint32(c.late >> tickBits),
		constant.WaitsSlow:  uint32(c.slow >> tickBits),
		constant.WaitsShare: c.share,
	}
}

// records are the tables with a slot a connection.
var records = []string{"waits_ends", "waits_path0", "waits_path1", "waits_syn", "waits_third", "waits_closed", "waits_lower", "waits_upper", "waits_ask"}

// wordNames are the ways of the counters.
var wordNames = [2]string{"waits_w0", "waits_w1"}

func (c *config) sizes() map[string]int {
	sizes := map[string]int{"waits_torn": c.slots, "waits_missed": c.slots, "waits_crowd": c.words}
	for _, name := range records {
		sizes[name] = c.slots
	}
	for _, name := range wordNames {
		sizes[name] = c.words
	}
	return sizes
}

// used is the memory of one bank, bytes.
func (c *config) used() int {
	return c.slots*(4+8*8+2*4) + c.words*(2*8+8) + 4*legs*delayBins.Len()
}

// slotOf is a connection's slot in the tables of records.
func (c *config) slotOf(hash uint64) int { return int(hash>>16) & 0xffff & (c.slots - 1) }

// placeOf is a key's place in a way, and its signature.
func (c *config) placeOf(hash uint64, kind, end uint8, way int) (place int, sign uint64) {
	key := mix(hash ^ (uint64(kind)*2+uint64(end)+1)*0x9e3779b97f4a7c15)
	return int(key>>(16*way)) & 0xffff & (c.words - 1), max(key>>signBit, 1)
}

// mix is hash_mix() of bpf/include/hash.h.
func mix(x uint64) uint64 {
	for range 2 {
		x ^= x >> 32
		x *= 0xd6e8feb86659fd93
	}
	return x ^ x>>32
}
