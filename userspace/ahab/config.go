package ahab

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/ahab/slices"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// What a user is: enum ahab_user.
const (
	userFlow = iota
	userSource
	userDestination
)

var users = map[string]uint64{"5tuple": userFlow, "source": userSource, "destination": userDestination}

// membership is the word of bpf/ahab/member.h.
func membership(slice, weight, user uint64, prefix4, prefix6 int) uint64 {
	return slice | weight<<16 | user<<26 | uint64(prefix4)<<28 | uint64(prefix6)<<34
}

// slice of the link. A number that nobody has is without a name.
type slice struct {
	name     string
	capacity uint64 // bytes a second; 0: nobody is limited
	norm     uint32
	user     uint64  // bits of a membership
	ceiling  float64 // bytes a second that it never passes; 0: none
}

type config struct {
	values     algo.Values
	slices     []slice // by number, from 1; the first is nobody's
	path       string  // of the file of slices, or its text; "": everything is one
	file       *slices.File
	plan       *slices.Plan
	fail       string
	hold       time.Duration
	everything uint64 // membership of all packets, where there is one slice
	tau, epoch time.Duration
	lease      time.Duration
	burst      time.Duration // unused time that a ceiling keeps
	pace       bool          // packets wait
	horizon    time.Duration // ... so long at most
	columns    int
	flows      int
	spacing    int64
	grace      int
	aimd       bool
	table      bool
	dry        bool
	top        int
}

// full is the configuration with its file of slices, which only this host has. It is a copy: an instance follows changes of the file.
func (c *config) full() (_ *config, err error) {
	own := *c
	own.slices = append([]slice(nil), c.slices...)
	c = &own
	v := c.values
	if c.path == "" {
		c.file = &slices.File{Capacity: float64(c.slices[1].capacity), Room: 1, Slices: []slices.Slice{{Name: c.slices[1].name, Weight: 1}}}
		c.plan, err = c.file.Plan(nil, nil)
		return c, err
	}
	if c.file, err = c.load(); err != nil {
		return nil, v.Error("config", "\n"+err.Error())
	}
	if c.plan, err = c.file.Plan(interfaces(c.file), nil); err != nil {
		return nil, v.Error("config", err.Error())
	}
	c.slices = make([]slice, c.file.Room+1)
	c.take(c.plan)
	return c, c.checkSlices(v)
}

// inline reports whether the slices are given by themselves, and not in a file.
func (c *config) inline() bool { return strings.HasPrefix(c.path, "{") }

func (c *config) load() (*slices.File, error) {
	if c.inline() {
		return slices.Parse("ahab.config", []byte(c.path))
	}
	return slices.Load(c.path)
}

// take gives slices of a plan their places. One that was there keeps what its registers are counted in.
func (c *config) take(plan *slices.Plan) {
	next := make([]slice, len(c.slices))
	next[0].ceiling = plan.Ceiling
	for _, leaf := range plan.Leaves {
		s := slice{name: leaf.Name, user: leaf.User, norm: normOf(leaf.Share), capacity: initial(leaf), ceiling: leaf.Ceiling}
		if old := c.slices[leaf.Number]; old.name == leaf.Name {
			s.norm, s.capacity = old.norm, old.capacity
		}
		next[leaf.Number] = s
	}
	c.slices = next
}

// initial is what a slice may take before anything is known of the others: its share if all are busy.
func initial(leaf slices.Leaf) uint64 {
	rate := leaf.Full
	if math.IsInf(rate, 1) {
		return 0
	}
	return uint64(max(1, rate))
}

// newConfig reads the parameters, without the file of slices, which a report has no use for: its snapshot names the slices.
func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	c := &config{values: v, path: v.Text("config"), fail: v.Text("fail"), hold: v.Duration("hold"), burst: v.Duration("burst"), pace: v.Text("act") == actPace, horizon: v.Duration("horizon"), lease: v.Duration("lease"), columns: int(v.Int("columns")), flows: int(v.Int("flows")),
		spacing: v.Bytes("spacing"), grace: int(v.Int("grace")), aimd: v.Text("update") == "aimd", table: v.Text("form") == "table",
		dry: v.Bool("dry-run"), top: int(v.Int("top"))}
	capacity, err := parseRate(v.Text("capacity"))
	if err != nil {
		return nil, v.Error("capacity", err.Error())
	}
	if c.path != "" && capacity > 0 {
		return nil, v.Error("capacity", "ahab.config sets the capacities: give one of the two")
	}
	if c.fail == failHold && c.hold == 0 {
		return nil, v.Error("fail", "set how long limits are held: ahab.hold=10s")
	}
	if err := c.readTimes(v, setup, capacity); err != nil {
		return nil, err
	}
	if c.path == "" {
		c.slices = []slice{{}, {name: "all", capacity: capacity, norm: normOf(1), ceiling: float64(capacity)}}
		c.everything = membership(1, 1, users[v.Text("user")], 32, 128)
	}
	return c, c.check(v)
}

func (c *config) check(v algo.Values) error {
	for key, n := range map[string]int{"columns": c.columns, "flows": c.flows} {
		if n&(n-1) != 0 {
			return v.Error(key, "allowed are powers of two")
		}
	}
	if c.table && c.aimd {
		return v.Error("update", "ahab.form=table interpolates")
	}
	if c.table && c.epoch != time.Millisecond {
		return v.Error("epoch", "ahab.form=table has epochs of 2^20 ns")
	}
	if c.pace && (c.table || c.aimd || c.epoch != time.Millisecond) {
		return v.Error("act", "pace has a limit of its own: leave ahab.form, ahab.update and ahab.epoch at their defaults")
	}
	if c.epoch > c.tau {
		return v.Error("epoch", fmt.Sprintf("allowed is at most ahab.tau, %v", c.tau))
	}
	return c.checkSlices(v)
}

func (c *config) checkSlices(v algo.Values) error {
	for n, s := range c.slices {
		if l := c.units(n).Limit(float64(s.capacity)); l > full {
			return v.Error("tau", fmt.Sprintf("at most %v at a capacity of %d bytes a second", time.Duration(float64(c.tau)*full/l), s.capacity))
		}
	}
	return nil
}

// normOf is what a byte of a slice counts in the shared sketch: inverse to its share of the link, as a power of two, so that users of small
// slices are seen beside those of large ones.
func normOf(share float64) uint32 {
	return 1 << (16 - max(-8, min(8, int(math.Round(math.Log2(max(share, 1e-9)))))))
}

func (c *config) norm(n int) uint32 {
	if n >= len(c.slices) || c.slices[n].norm == 0 {
		return 1 << 16
	}
	return c.slices[n].norm
}

// units of a slice.
func (c *config) units(n int) Units { return Units{Tau: c.tau, Norm: c.norm(n)} }

// entries of the arrays that have one for each slice: a power of two.
func (c *config) entries() uint32 { return uint32(max(2, 1<<bits.Len(uint(len(c.slices)-1)))) }

// fullPacket is the longest frame of a link with the usual MTU.
const fullPacket = 1514
