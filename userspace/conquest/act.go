package conquest

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/bpf/constant"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

var actions = map[string]bpf.ConquestConquestActionKind{
	"report": bpf.ConquestConquestActionKindACTION_REPORT,
	"ecn":    bpf.ConquestConquestActionKindACTION_ECN,
	"drop":   bpf.ConquestConquestActionKindACTION_DROP,
	"mark":   bpf.ConquestConquestActionKindACTION_MARK,
	"class":  bpf.ConquestConquestActionKindACTION_CLASS,
}

var chances = map[string]bpf.ConquestConquestChanceKind{
	"threshold": bpf.ConquestConquestChanceKindCHANCE_THRESHOLD,
	"linear":    bpf.ConquestConquestChanceKindCHANCE_LINEAR,
	"quadratic": bpf.ConquestConquestChanceKindCHANCE_QUADRATIC,
	"steps":     bpf.ConquestConquestChanceKindCHANCE_STEPS,
}

// culprits is how many flows can be acted on at a time: two that share a place take it from each other.
const culprits = 4096

// acting is what is done to culprits.
type acting struct {
	action   bpf.ConquestConquestActionKind
	chance   bpf.ConquestConquestChanceKind
	everyone bool
	hold     int64
	dropFrom int64
	weight   uint32 // in units of the snapshots; 0: alpha decides
	gap      uint32 // ticks of 2^gapTick ns, a power of two
	to       uint32
}

// gapTick is the data plane's unit of gaps between drops, ns, and gapDoubles how often a gap doubles.
const gapTick, gapDoubles = 14, 6

var actionParams = []algo.Param{
	{Key: "action", Type: algo.Enum, Default: "report", Choices: []string{"report", "ecn", "drop", "mark", "class"}, Help: "source=qdisc: what is done to the next packets of culprits: " +
		"nothing; an ECN mark on those that understand it; a mark, then a drop where the queue grows to conquest.drop_from (no mark on those that do not understand it), one a conquest.gap; another skb->mark, or class of the queue (conquest.to)"},
	{Key: "whom", Type: algo.Enum, Default: "culprits", Choices: []string{"culprits", "everyone"}, Help: "whose packets: culprits', or everyone's while the queue is congested (what other queues do, to compare with)"},
	{Key: "chance", Type: algo.Enum, Default: "threshold", Choices: []string{"threshold", "linear", "quadratic", "steps"}, Help: "how many of a culprit's packets: all, or by how much more than conquest.alpha of the queue it has"},
	{Key: "weight", Type: algo.Size, Default: "0", Max: "1GB", Help: "whom=culprits: a flow is acted upon from so much of it in the queue on, whatever its share (section 5.4.2: w_T; bytes or packets, as conquest.count); 0: from conquest.alpha of the queue on"},
	{Key: "hold", Type: algo.Duration, Default: "10ms", Min: "100us", Max: "1s", Help: "how long a culprit stays one after it was last seen to be"},
	{Key: "drop_from", Type: algo.String, Default: auto, Help: "action=drop: delay from which culprits lose packets, whether they understand ECN or not; auto: three times conquest.tau"},
	{Key: "gap", Type: algo.Duration, Default: "10ms", Min: "100us", Max: "1s", Help: "action=drop: of a flow one packet at most is dropped in this time (rounded up to a power of two of 16.4 us), and the next one only if a packet that was handed over after it has waited " +
		"conquest.drop_from; doubles up to 64 times that until the flow reacts"},
	{Key: "to", Type: algo.String, Default: "", Help: "action=mark: a number; action=class: MAJOR:MINOR in hexadecimal, as tc writes classes"},
}

func (c *config) readAction(v algo.Values) (err error) {
	c.acting = acting{action: actions[v.Text("action")], chance: chances[v.Text("chance")], everyone: v.Text("whom") == "everyone", hold: int64(v.Duration("hold")), weight: uint32(v.Bytes("weight"))}
	if c.action != actions["report"] && c.source != sourceCarried {
		return v.Error("action", "only a host's own queue can be acted on: conquest.source=qdisc")
	}
	c.gap = 1 << bits.Len64(uint64(v.Duration("gap")-1)>>gapTick)
	if c.dropFrom, err = duration(v, "drop_from", 3*c.tau, 1000, 10_000_000_000); err != nil {
		return err
	}
	if !slices.Contains([]string{"mark", "class"}, v.Text("action")) {
		return nil
	}
	if c.to, err = parseTo(v.Text("action"), v.Text("to")); err != nil {
		return v.Error("to", err.Error())
	}
	return nil
}

// The floor of drops (bpf/conquest/act.h) holds for flows whose round trip is no longer than the longest gap, that of marks while conquest.hold is about a round trip.
const (
	longRoundTrip = 100 * time.Millisecond
	longHold      = 10 * time.Millisecond
)

// starves is a warning where what is done can leave a culprit less than the floor that the documentation states: where gaps stay shorter than a long round trip, and
// where a flow is marked for many round trips after it reacted.
func (c *config) starves() string {
	if longest := time.Duration(c.gap) << (gapTick + gapDoubles); c.action == actions["drop"] && longest < longRoundTrip {
		return fmt.Sprintf("conquest.gap=%v: a flow whose round trip is longer than %v can lose a packet in each round trip and keep less than half of conquest.alpha of the link; "+
			"conquest.gap=2ms and longer leaves that much to flows of %v", c.values.Duration("gap"), longest, longRoundTrip)
	}
	if hold := time.Duration(c.hold); (c.action == actions["ecn"] || c.action == actions["drop"]) && hold > longHold {
		return fmt.Sprintf("conquest.hold=%v: a flow that understands ECN is marked so long after its last packet that waited conquest.tau, and can fall to two segments a round trip; "+
			"conquest.hold=%v is enough for marks (drops do not depend on it)", hold, longHold)
	}
	return ""
}

// fine is how many times tau a snapshot lasts at most before nearly all waits of tau lie inside of one.
const fine = 4

// blind is a warning where packets that waited tau bear out next to nothing: then flows that have most of the queue for a moment are acted upon, and those that fill it are not.
func (c *config) blind() string {
	if c.action == actions["report"] || c.everyone || c.interval() <= fine*c.tau {
		return ""
	}
	return fmt.Sprintf("conquest.tau=%v: a wait inside of one snapshot (%v) is no evidence, so that only flows with most of the queue are acted upon; conquest.interval=%v conquest.snapshots=16 are fine enough",
		time.Duration(c.tau), time.Duration(c.interval()), time.Duration(c.tau/2))
}

// parseTo reads a mark, or a class as tc writes it.
func parseTo(action, text string) (uint32, error) {
	if action == "mark" {
		n, err := strconv.ParseUint(text, 0, 32)
		if err != nil {
			return 0, fmt.Errorf("allowed are numbers up to %d", uint32(math.MaxUint32))
		}
		return uint32(n), nil
	}
	major, minor, ok := strings.Cut(text, ":")
	a, err1 := strconv.ParseUint(major, 16, 16)
	b, err2 := strconv.ParseUint(minor, 16, 16)
	if !ok || err1 != nil || err2 != nil || a == 0 {
		return 0, fmt.Errorf("allowed are classes as tc writes them, like 1:20")
	}
	return uint32(a<<16 | b), nil
}

// constants of what is done.
func (a acting) constants() map[constant.Name]any {
	return map[constant.Name]any{
		constant.ConquestAction:   uint32(a.action),
		constant.ConquestChance:   uint32(a.chance),
		constant.ConquestEveryone: a.everyone,
		constant.ConquestHold:     uint64(a.hold),
		constant.ConquestDropFrom: uint64(a.dropFrom),
		constant.ConquestWeight:   a.weight,
		constant.ConquestGap:      a.gap,
		constant.ConquestTo:       a.to,
	}
}

// Steers implements algo.Steerer.
func (i *instance) Steers() algo.Steering {
	if kind := i.values.Text("action"); i.Acts() && (kind == "mark" || kind == "class") {
		return algo.Steering{By: Name + ".action=" + kind}
	}
	return algo.Steering{}
}

// Acts implements algo.Enforcer.
func (i *instance) Acts() bool { return i.action != actions["report"] && !i.replay }
