package conquest

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/bpf/constant"
	xmaps "github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

const (
	sourceCarried = bpf.ConquestConquestSourceKindSOURCE_CARRIED
	sourceTap     = bpf.ConquestConquestSourceKindSOURCE_TAP
	sourceModel   = bpf.ConquestConquestSourceKindSOURCE_MODEL
)

var readings = map[string]bpf.ConquestConquestReadingKind{
	"overlap": bpf.ConquestConquestReadingKindREADING_OVERLAP,
	"nearest": bpf.ConquestConquestReadingKindREADING_NEAREST,
	"inner":   bpf.ConquestConquestReadingKindREADING_INNER,
	"outer":   bpf.ConquestConquestReadingKindREADING_OUTER,
}

// Fixed point of the data plane.
const (
	alphaBits = 20
	byteBits  = 16 // of ns a byte
	lineBits  = 20 // a queue of 2^lineBits ns
)

// Snapshots last from 16 us to 134 ms: below, windows are shorter than clocks of cores agree; above, 100 Gb/s fill a 32-bit count.
const (
	leastShift = 14
	mostShift  = 27
)

// leftByDefault is the longest delay that is expected of a queue of which nothing is known.
const leftByDefault = 8 * time.Millisecond

// config is the parameters, checked and typed.
type config struct {
	values    algo.Values
	source    bpf.ConquestConquestSourceKind
	replay    bool
	rate      float64 // bits a second
	buffer    int64
	egress    uint32
	digests   int
	longest   int64 // ns
	expire    int64
	snapshots int
	shift     int // T = 2^shift ns
	coarse    int // coarse windows are of 2^coarse of them; 0: there are none
	rows      int
	columns   int
	queues    int
	tau       int64
	alpha     uint32 // in 2^-alphaBits
	spec      heavy.Spec
	classes   bool
	bytes     bool
	reading   bpf.ConquestConquestReadingKind
	history   int64 // 0: none
	widest    bool
	ramp      int64
	acting
}

// newConfig reads what a report depends on: it asks for no interface, since a snapshot may be of another host.
func newConfig(v algo.Values, setup algo.Setup) (*config, error) {
	c := &config{values: v, replay: setup.Replay, buffer: v.Bytes("buffer"), digests: int(v.Int("digests")), snapshots: int(v.Int("snapshots")), rows: int(v.Int("rows")),
		columns: int(v.Int("columns")), queues: int(v.Int("queues")), bytes: v.Text("count") == "bytes", reading: readings[v.Text("reading")],
		history: int64(v.Duration("history")), widest: v.Text("delay") == "longest", ramp: v.Bytes("ramp")}
	for _, read := range []func(algo.Values) error{c.readSource, c.readPowers, c.readRate, c.readTimes, c.readKey, c.readAction} {
		if err := read(v); err != nil {
			return nil, err
		}
	}
	c.alpha = uint32(max(1, math.Round(v.Float("alpha")*(1<<alphaBits))))
	return c, nil
}

func (c *config) readSource(v algo.Values) error {
	text := v.Text("source")
	if text == auto {
		text = chosen(v.Text("egress"), c.replay)
	}
	if text == "replay" && !c.replay {
		return v.Error("source", "a model queue needs a capture: xdpmon replay")
	}
	c.source = map[string]bpf.ConquestConquestSourceKind{"qdisc": sourceCarried, "tap": sourceTap, "replay": sourceModel}[text]
	return nil
}

// chosen is what source=auto is: a model's queue in a replay; where an interface after the queue is named, a tap; else this host's own queues.
func chosen(egress string, replay bool) string {
	switch {
	case replay:
		return "replay"
	case egress != auto:
		return "tap"
	}
	return "qdisc"
}

func (c *config) readPowers(v algo.Values) error {
	for key, n := range map[string]int{"snapshots": c.snapshots, "columns": c.columns, "queues": c.queues, "digests": c.digests} {
		if n&(n-1) != 0 {
			return v.Error(key, "allowed are powers of two")
		}
	}
	if c.columns*c.queues > mostColumns {
		return v.Error("columns", fmt.Sprintf("%d queues of %d columns do not fit a pipeline stage: %d columns in all", c.queues, c.columns, mostColumns))
	}
	return nil
}

// mostColumns of all queues: a stage of a switch holds four arrays of so many 64-bit cells.
const mostColumns = 16384

func (c *config) readRate(v algo.Values) (err error) {
	if c.rate, err = parseRate(v.Text("rate")); err != nil {
		return v.Error("rate", err.Error())
	}
	return nil
}

// parseRate reads 10Gbit, 2.5Mbit, 800kbit, with or without /s or ps after it.
func parseRate(text string) (float64, error) {
	number := text
	for _, end := range []string{"/s", "ps"} {
		number = strings.TrimSuffix(number, end)
	}
	for _, u := range []struct {
		name   string
		factor float64
	}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}} {
		if digits, ok := strings.CutSuffix(number, u.name); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			if rate := f * u.factor; err == nil && rate >= 1e3 && rate <= 1e12 {
				return rate, nil
			}
			break
		}
	}
	return 0, fmt.Errorf("allowed are rates from 1kbit to 1000Gbit, like 10Gbit or 100Mbit")
}

// duration reads one that may be auto.
func duration(v algo.Values, key string, otherwise int64, least, most time.Duration) (int64, error) {
	d, err := v.DurationOr(key, time.Duration(otherwise), least, most)
	return int64(d), err
}

func (c *config) readTimes(v algo.Values) (err error) {
	longest := int64(leftByDefault)
	if c.source == sourceModel {
		longest = min(max(room(c.rate, c.buffer), 20_000), int64(2*time.Second))
	}
	if c.longest, err = duration(v, "longest", longest, 20*time.Microsecond, 2*time.Second); err != nil {
		return err
	}
	if c.expire, err = duration(v, "expire", 4*c.longest, 10*time.Microsecond, 30*time.Second); err != nil {
		return err
	}
	interval, err := duration(v, "interval", c.longest/int64(c.snapshots), time.Microsecond, 1<<mostShift)
	if err != nil {
		return err
	}
	c.shift = min(max(bits.Len64(uint64(max(interval, 1)-1)), leastShift), mostShift)
	c.coarse = c.coarseShift()
	c.tau, err = duration(v, "tau", c.longest/8, time.Microsecond, 2*time.Second)
	return err
}

// coarseWindows is how many there are, mostCoarse how many snapshots one of them covers at most, as a power of two, and longestCoarse its longest, ns: 100 Gb/s do not fill
// a 32-bit count in it.
const coarseWindows, mostCoarse, longestCoarse = 4, 7, 28

// coarseShift is 0 where coarse windows would show no more than snapshots do, with more than four snapshots, whose program older verifiers would not walk through with them (sixteen
// leave no stage, either), and with readings that a switch or the paper has.
func (c *config) coarseShift() int {
	if c.reading != readings["overlap"] || c.snapshots > sideBySide {
		return 0
	}
	shift := max(0, min(mostCoarse, longestCoarse-c.shift))
	if coarseWindows<<shift <= c.snapshots {
		return 0
	}
	return shift
}

// coarseColumns of a row of coarse windows: a quarter, since a window of them takes twice the memory.
func (c *config) coarseColumns() int { return max(2, c.columns/4) }

// coarseInterval is the length of a coarse window, ns; 0 without.
func (c *config) coarseInterval() int64 {
	if c.coarse == 0 {
		return 0
	}
	return c.interval() << c.coarse
}

// reaches is how far back a packet can look for certain, ns.
func (c *config) reaches() int64 {
	if c.coarse > 0 {
		return (coarseWindows - 1) << (c.shift + c.coarse)
	}
	return c.interval() * int64(c.snapshots-1)
}

func (c *config) readKey(v algo.Values) (err error) {
	key := v.Text("key")
	if c.classes = key == "class"; c.classes {
		return nil // the tag word alone
	}
	c.spec.Fields, err = heavy.ParseKind(key)
	return err
}

// interval is T in ns.
// pause is how many ticks lie between two bursts at least.
func (c *config) pause() int64 { return min(c.tau/2/burstTick, math.MaxInt32) }

func (c *config) interval() int64 { return 1 << c.shift }

// asks is the wait from which a packet asks: the owner of a burst may have left before anybody has waited tau. The paper's readings ask from tau on.
func (c *config) asks() int64 {
	if c.reading == readings["overlap"] {
		return max(1, c.tau/4)
	}
	return c.tau
}

// alphaShare is alpha as the data plane knows it.
func (c *config) alphaShare() float64 { return float64(c.alpha) / (1 << alphaBits) }

// collided is the share of all that is counted which others add to a flow, in 2^-alphaBits.
func collided(columns int) uint32 {
	return uint32(math.Ceil(collisions / float64(columns) * (1 << alphaBits)))
}

// line is what a queue of 2^lineBits ns holds: the paper's readings compare with it. Packets are taken for full ones.
func (c *config) line() uint32 {
	units := c.rate / 8e9 * (1 << lineBits)
	if !c.bytes {
		units /= fullPacket
	}
	return uint32(min(math.Round(units), math.MaxUint32))
}

const fullPacket = 1514

func (c *config) constants() map[constant.Name]any {
	history := ^uint64(0)
	if c.history > 0 {
		history = uint64(c.history)
	}
	all := map[constant.Name]any{
		constant.ConquestLive:      c.live(),
		constant.ConquestSource:    uint32(c.source),
		constant.ConquestEgress:    c.egress,
		constant.ConquestLongest:   uint64(c.expire),
		constant.ConquestNsPerByte: nsPerByte(c.rate),
		constant.ConquestRoom:      uint64(room(c.rate, c.buffer)),
		constant.ConquestSnapshots: uint32(c.snapshots),
		constant.ConquestRows:      uint32(c.rows),
		constant.ConquestColumns:   uint32(c.columns),
		constant.ConquestQueues:    uint32(c.queues),
		constant.ConquestShift:     uint32(c.shift),
		constant.ConquestTau:       uint64(c.tau),
		constant.ConquestAsk:       uint64(c.asks()),
		constant.ConquestPause:     uint32(c.pause()),
		constant.ConquestAlpha:     c.alpha,
		constant.ConquestRamp:      uint32(min(c.ramp, math.MaxUint32)),
		constant.ConquestBytes:     c.bytes,
		constant.ConquestClasses:   c.classes,
		constant.ConquestWidest:    c.widest,
		constant.ConquestReading:   uint32(c.reading),
		constant.ConquestHistory:   history,
		constant.ConquestLine:      c.line(),

		constant.ConquestCoarse:        uint32(c.coarse),
		constant.ConquestCoarseColumns: uint32(c.coarseColumns()),
		constant.ConquestPacket:        uint32(c.packet()),
		constant.ConquestCollide:       collided(c.columns),
		constant.ConquestCollideWide:   collided(c.coarseColumns()),
		constant.KeyFields:             uint32(c.spec.Fields),
		constant.KeyFamily:             uint32(c.spec.Family),
		constant.KeyWords:              uint32(c.spec.Words()),
		constant.KeyTagged:             true,
	}
	maps.Copy(all, c.acting.constants())
	return all
}

// live reports whether departures are seen at the start of transmission.
func (c *config) live() bool { return c.source == sourceCarried && !c.replay }

// mostSnapshots is how many the object declares, and sideBySide how many of them are in one map.
const mostSnapshots, sideBySide = 16, 4

// reportedFlows is how many flows are remembered as reported in a snapshot.
const reportedFlows = 1024

// configure writes constants, sizes and stages.
func (c *config) configure(spec *ebpf.CollectionSpec) error {
	if err := xmaps.SetConstants(spec, c.constants()); err != nil {
		return err
	}
	for name, a := range c.arrays() {
		if err := xmaps.SetEntries(spec, name, uint32(a.entries)); err != nil {
			return err
		}
		if err := xmaps.SetStage(spec, name, a.stage); err != nil {
			return err
		}
	}
	return xmaps.SetEntries(spec, "conquest_events", c.ring())
}

// ring holds what is reported between two reads: a replay looks less often.
func (c *config) ring() uint32 {
	if c.replay {
		return 8 << 20
	}
	return 1 << 20
}

type array struct{ entries, stage int }

// arrays are sizes and stages: totals and rows of four snapshots side by side, and what follows all of them.
func (c *config) arrays() map[string]array {
	used := func(n int, yes bool) int {
		if yes {
			return n
		}
		return 1
	}
	list := map[string]array{
		"conquest_tap":   {used(c.digests, c.source == sourceTap), 1},
		"conquest_free":  {1, 1},
		"conquest_until": {used(c.queues, c.widest), 2},
	}
	next := 0 // the first stage after what is there
	for group := range mostSnapshots / sideBySide {
		live, stage := group*sideBySide < c.snapshots, 3+group*(c.rows+1)
		list[fmt.Sprintf("conquest_t_%d", group)] = array{used(c.perQueue(), live), stage}
		for r := range 2 {
			live := live && r < c.rows
			at := min(stage+1+r, lastStage)
			list[fmt.Sprintf("conquest_r%d_%d", r, group)] = array{used(c.columns*c.queues, live), at}
			if live {
				next = at + 1
			}
		}
	}
	list["conquest_ct"] = array{used(c.perQueue(), c.coarse > 0), next}
	for r := range 2 {
		list[fmt.Sprintf("conquest_c%d", r)] = array{used(c.coarseColumns()*c.queues, c.coarse > 0 && r < c.rows), min(next+1+r, lastStage)}
	}
	if c.coarse > 0 {
		next += 1 + c.rows
	}
	list["conquest_ramped"] = array{used(reportedFlows, c.ramp > 0), next}
	if c.ramp > 0 {
		next++ // a ramp is reported, or not, before a culprit is
	}
	list["conquest_large"] = array{c.perQueue(), next}
	next++ // reports have it
	list["conquest_told"] = array{reportedFlows, next}
	list["conquest_burst"] = array{c.perQueue(), next}
	list["conquest_peak"] = array{c.perQueue(), next + 1}
	list["conquest_culprits"] = array{used(culprits, c.action != actions["report"]), next + 1}
	list["conquest_drops"] = array{used(culprits, c.action == actions["drop"]), next + 2}
	return list
}

// perQueue is the size of an array with an element a queue: an array of one element is one that is not used.
func (c *config) perQueue() int { return max(2, c.queues) }

// lastStage of the largest switch.
const lastStage = 19

// registerBytes of the arrays that are used.
func (c *config) registerBytes() int64 {
	cells := max(c.snapshots, sideBySide) * (c.rows*c.columns*c.queues + c.perQueue())
	if c.coarse > 0 {
		cells += coarseWindows * (c.rows*c.coarseColumns()*c.queues + c.perQueue())
	}
	return 8 * int64(cells+reportedFlows+3*c.perQueue())
}

// chosenText states what conquest.source=auto has become on an interface.
func (c *config) chosenText() string {
	if c.replay || c.values.Text("source") != auto {
		return ""
	}
	if c.source == sourceTap {
		return "conquest.source=auto: tap, since conquest.egress is set: packets are matched before the device and after it"
	}
	return "conquest.source=auto: qdisc, the queues of the interfaces themselves (conquest.source=tap measures the device between several interfaces)"
}

// tapsOf refuses a tap on one interface: nobody would be seen on both sides of a device.
func (c *config) tapsOf(interfaces int) error {
	if c.source != sourceTap || c.replay || interfaces != 1 {
		return nil
	}
	return c.values.Error("source", "a tap needs an interface before the device and one after it: name both, and conquest.egress; for the queue of one interface itself use conquest.source=qdisc")
}

// findEgress resolves the interface after the queue on this host.
func (c *config) findEgress(v algo.Values) error {
	text := v.Text("egress")
	if c.source != sourceTap || text == auto {
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 32); err == nil && n > 0 {
		c.egress = uint32(n)
		return nil
	}
	i, err := net.InterfaceByName(text)
	if err != nil || c.replay {
		return v.Error("egress", "there is no such interface (a replay knows interfaces by their numbers)")
	}
	c.egress = uint32(i.Index)
	return nil
}
