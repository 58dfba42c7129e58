package reorder

import (
	"math"

	"github.com/xdpmon/xdpmon/bpf/constant"
	bpf "github.com/xdpmon/xdpmon/bpf/reorder"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

const (
	tickNS  = 1 << 10 // of a stored time: TICK in the program
	maxWays = 5
	crcWays = 2 // ways with a polynomial of their own
	// hybridWays is the most ways whose last stage precedes the array's first: a flow that moves to a way leaves the array in the
	// same pass.
	hybridWays = 4
)

// config is the parsed and checked form of the parameters.
type config struct {
	values     algo.Values
	method     bpf.ReorderReorderMethodKind
	definition Definition
	all        bool // every record is reported
	ways       int  // 0 when sampling
	wayBuckets int  // of one way
	array      int  // buckets of the array; 0 with method=precision

	stale, most, enough uint32  // T in ticks, C, R
	share               float64 // the ways' threshold: reorder.Rshare
	alpha, beta         uint64
	epsilon, c          float64
	bits4, bits6        int
	recirculate         float64
	ring                int64
	top                 int
}

func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	c := &config{
		values:     v,
		definition: Definition(v.Int("definition")), all: v.Text("report") == "all",
		stale: uint32(int64(v.Duration("T")) / tickNS), most: uint32(v.Int("C")), enough: uint32(v.Int("R")),
		share: v.Float("Rshare"), alpha: uint64(v.Int("alpha")), beta: uint64(v.Int("beta")),
		epsilon: v.Float("epsilon"), c: v.Float("c"), bits4: int(v.Int("prefix")), bits6: int(v.Int("prefix6")),
		recirculate: v.Float("recirculate"), ring: v.Bytes("ring"), top: int(v.Int("top")),
	}
	if c.ring&(c.ring-1) != 0 {
		return nil, v.Error("ring", "allowed are powers of two from 4KiB to 1GiB")
	}
	if err := c.divide(v); err != nil {
		return nil, err
	}
	if c.method == bpf.ReorderReorderMethodKindMETHOD_HYBRID && c.ways > hybridWays {
		return nil, v.Error("ways", "with method=hybrid, 1 to 4: the fifth ends in a stage after the array's first")
	}
	if setup.Hash == algo.HashCRC && c.ways > crcWays {
		return nil, v.Error("ways", "with --hash crc, 1 or 2: there are no polynomials for more")
	}
	return c, nil
}

// divide splits the buckets between ways and array.
func (c *config) divide(v algo.Values) error {
	buckets, share := int(v.Int("buckets")), 0.0
	switch v.Text("method") {
	case "precision":
		c.method, share = bpf.ReorderReorderMethodKindMETHOD_PRECISION, 1
	case "hybrid":
		c.method, share = bpf.ReorderReorderMethodKindMETHOD_HYBRID, v.Float("x")
	}
	if share > 0 {
		c.ways = int(v.Int("ways"))
		c.wayBuckets = int(share*float64(buckets)) / c.ways
		if c.wayBuckets == 0 {
			return v.Error("buckets", "too few for the ways: raise reorder.buckets or x, or lower ways")
		}
	}
	if share < 1 {
		c.array = buckets - c.ways*c.wayBuckets
	}
	return nil
}

// buckets in use: a share that does not divide evenly loses less than one bucket a way.
func (c *config) buckets() int { return c.ways*c.wayBuckets + c.array }

func (c *config) constants() map[constant.Name]any {
	return map[constant.Name]any{
		constant.ReorderMethod:     uint32(c.method),
		constant.ReorderDefinition: uint32(c.definition),
		constant.ReorderWays:       uint32(c.ways),
		constant.ReorderStale:      c.stale,
		constant.ReorderMost:       c.most,
		constant.ReorderEnough:     c.enough,
		constant.ReorderShare:      uint32(math.Round(c.share * (1 << 16))),
		constant.ReorderAll:        c.all,
		constant.ReorderMask4:      ^uint32(0) << (32 - c.bits4),
		constant.ReorderMask6:      ^uint64(0) << (64 - c.bits6),
	}
}

// bucketArrays are the names of the registers that hold a record's words, without the suffix of the part.
var bucketArrays = [4]string{"reorder_id", "reorder_prefix", "reorder_seq", "reorder_count"}

// parts are the suffixes of the registers: ways, then the array.
var parts = [maxWays + 1]string{"0", "1", "2", "3", "4", "_array"}

// entries of a part; an unused part has one.
func (c *config) entries(part int) int {
	switch {
	case part == maxWays:
		return max(c.array, 1)
	case part < c.ways:
		return c.wayBuckets
	}
	return 1
}

// used reports whether a part of the registers is in use.
func (c *config) used(part int) bool { return part < c.ways || part == maxWays && c.array > 0 }
