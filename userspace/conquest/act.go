package conquest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
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
	to       uint32
}

var actionParams = []algo.Param{
	{Key: "action", Type: algo.Enum, Default: "report", Choices: []string{"report", "ecn", "drop", "mark", "class"}, Help: "source=qdisc: what is done to the next packets of culprits: " +
		"nothing; an ECN mark on those that understand it; a mark, then a drop where the queue grows on (and for those that do not understand marks); another skb->mark, or class of the queue (conquest.to)"},
	{Key: "whom", Type: algo.Enum, Default: "culprits", Choices: []string{"culprits", "everyone"}, Help: "whose packets: culprits', or everyone's while the queue is congested (what other queues do, to compare with)"},
	{Key: "chance", Type: algo.Enum, Default: "threshold", Choices: []string{"threshold", "linear", "quadratic", "steps"}, Help: "how many of a culprit's packets: all, or by how much more than conquest.alpha of the queue it has"},
	{Key: "hold", Type: algo.Duration, Default: "10ms", Min: "100us", Max: "1s", Help: "how long a culprit stays one after it was last seen to be"},
	{Key: "drop_from", Type: algo.String, Default: auto, Help: "action=drop: delay from which marks have not helped; auto: three times conquest.tau"},
	{Key: "to", Type: algo.String, Default: "", Help: "action=mark: a number; action=class: MAJOR:MINOR in hexadecimal, as tc writes classes"},
}

func (c *config) readAction(v algo.Values) (err error) {
	c.acting = acting{action: actions[v.Text("action")], chance: chances[v.Text("chance")], everyone: v.Text("whom") == "everyone", hold: int64(v.Duration("hold"))}
	if c.action != actions["report"] && c.source != sourceCarried {
		return v.Error("action", "only a host's own queue can be acted on: conquest.source=qdisc")
	}
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

// starves is a warning where what is done may leave a culprit nothing. Flows that do not understand ECN lose packets from conquest.tau on, whatever
// conquest.drop_from is, until conquest.hold after the last one that waited so long; every chance is all of a flow's packets where it is alone in the queue.
func (c *config) starves() string {
	if c.action != actions["drop"] {
		return ""
	}
	return fmt.Sprintf("conquest.action=drop can starve a flow: one that does not understand ECN loses packets from conquest.tau=%v on and for conquest.hold=%v, "+
		"with conquest.chance=%s all of them where its share is large; conquest.action=ecn drops nothing", time.Duration(c.tau), time.Duration(c.hold), c.values.Text("chance"))
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
func (a acting) constants() map[string]any {
	return map[string]any{
		"conquest_action":    uint32(a.action),
		"conquest_chance":    uint32(a.chance),
		"conquest_everyone":  a.everyone,
		"conquest_hold":      uint64(a.hold),
		"conquest_drop_from": uint64(a.dropFrom),
		"conquest_to":        a.to,
	}
}

// Acts implements algo.Acting.
func (i *instance) Acts() bool { return i.action != actions["report"] && !i.replay }
