package loader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/bpf/verdict"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// verdictName is the name, among the algorithms, of the program that applies the enforcers' decisions.
const verdictName = "verdict"

// arranged puts a chain in order: first the algorithms that only measure, then those that act, and last the program that
// applies their decisions, with those that select banks in between. A chain that only measures has no such program and no cost of it.
func (i *Instance) arranged(objects []Object) ([]Object, error) {
	if err := oneSteers(objects); err != nil {
		return nil, err
	}
	list := slices.Clone(objects)
	slices.SortStableFunc(list, func(a, b Object) int { return order(a) - order(b) })
	if len(list) == 0 || !list[len(list)-1].Enforces {
		return i.windowed(list)
	}
	if i.verdict == nil {
		spec, err := verdict.LoadVerdict()
		if err != nil {
			return nil, fmt.Errorf("read verdict object: %w", err)
		}
		i.verdict = &Object{Name: verdictName, Spec: Outline(spec), Read: verdict.LoadVerdict}
	}
	return i.windowed(append(list, *i.verdict))
}

// ErrSteering is wrapped where two algorithms of a chain change how packets leave.
var ErrSteering = errors.New("only one algorithm of a chain can steer packets")

func oneSteers(objects []Object) error {
	var by []string
	for _, o := range objects {
		if o.Steering.By != "" {
			by = append(by, o.Steering.By)
		}
	}
	if len(by) < 2 {
		return nil
	}
	return fmt.Errorf("load chain: %w: %s cannot run in one chain; change one of them, or attach it to another interface", ErrSteering, strings.Join(by, " and "))
}

// Steering is how the loaded chain changes mark, class or departure time of packets.
func (i *Instance) Steering() Steering {
	for _, m := range i.loaded {
		if m.object.Steering.By != "" {
			return m.object.Steering
		}
	}
	return Steering{}
}

func order(o Object) int {
	if o.Enforces {
		return 1
	}
	return 0
}

// Verdicts count the actions on packets in one window.
type Verdicts struct {
	Dropped, DroppedBytes uint64 // bytes on the wire
	Marked                uint64 // ECN bits set here
	MarkedBefore          uint64 // a mark was requested and was already set
	Steered               uint64 // skb->mark, skb->priority or skb->tstamp changed
	Unmarkable            uint64 // a mark was requested for a packet that is not ECN-capable; it passed
}

// Verdicts reads a closed bank and resets it. A chain that does not enforce did nothing.
func (i *Instance) Verdicts(bank int) (Verdicts, error) {
	m := verdictOf(i.loaded)
	if m == nil {
		return Verdicts{}, nil
	}
	return m.verdicts(func(a *xmaps.Array) ([]uint64, error) { return a.ReadReset(bank, nil) })
}

// verdictOf finds the member that applies verdicts; nil in a chain that only measures.
func verdictOf(members []*member) *member {
	i := slices.IndexFunc(members, func(m *member) bool { return m.object.Name == verdictName })
	if i < 0 {
		return nil
	}
	return members[i]
}

func (m *member) verdicts(read func(*xmaps.Array) ([]uint64, error)) (Verdicts, error) {
	array, err := m.set.Array("verdict_counts")
	if err != nil {
		return Verdicts{}, err
	}
	c, err := read(array)
	if err != nil {
		return Verdicts{}, fmt.Errorf("read verdicts: %w", err)
	}
	return Verdicts{
		Dropped:      c[verdict.VerdictVerdictCountVERDICT_COUNT_DROPPED],
		DroppedBytes: c[verdict.VerdictVerdictCountVERDICT_COUNT_DROPPED_BYTES],
		Marked:       c[verdict.VerdictVerdictCountVERDICT_COUNT_MARKED],
		MarkedBefore: c[verdict.VerdictVerdictCountVERDICT_COUNT_MARKED_BEFORE],
		Steered:      c[verdict.VerdictVerdictCountVERDICT_COUNT_STEERED],
		Unmarkable:   c[verdict.VerdictVerdictCountVERDICT_COUNT_UNMARKABLE],
	}, nil
}

// plus returns v + sign * w.
func (v Verdicts) plus(w Verdicts, sign uint64) Verdicts {
	v.Dropped += sign * w.Dropped
	v.DroppedBytes += sign * w.DroppedBytes
	v.Marked += sign * w.Marked
	v.MarkedBefore += sign * w.MarkedBefore
	v.Steered += sign * w.Steered
	v.Unmarkable += sign * w.Unmarkable
	return v
}

// verdictsWith are the verdicts of a window, including those of an enforcing chain that was replaced in the window by one that does not
// enforce; nil when neither enforced.
func (i *Instance) verdictsWith(read func(*xmaps.Array) ([]uint64, error)) (*Verdicts, error) {
	m := verdictOf(i.loaded)
	if m == nil {
		return i.enforced, nil
	}
	v, err := m.verdicts(read)
	if i.enforced != nil {
		v = v.plus(*i.enforced, 1)
	}
	return &v, err
}

// Enforces reports whether the chain acts on packets.
func (i *Instance) Enforces() bool {
	return slices.ContainsFunc(i.loaded, func(m *member) bool { return m.object.Enforces })
}
