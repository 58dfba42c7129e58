package loader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/bpf/verdict"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// verdictName is the name of the program that carries out what enforcers decided, among the algorithms.
const verdictName = "verdict"

// arranged puts a chain in order: those that only measure see every packet first, then those that act, and behind them the one
// that carries out what they decided. A chain that only measures has none of that, and no packet pays for it.
func (i *Instance) arranged(objects []Object) ([]Object, error) {
	if err := oneSteers(objects); err != nil {
		return nil, err
	}
	list := slices.Clone(objects)
	slices.SortStableFunc(list, func(a, b Object) int { return order(a) - order(b) })
	if len(list) == 0 || !list[len(list)-1].Enforces {
		return list, nil
	}
	if i.verdict == nil {
		spec, err := verdict.LoadVerdict()
		if err != nil {
			return nil, fmt.Errorf("read verdict object: %w", err)
		}
		i.verdict = &Object{Name: verdictName, Spec: Outline(spec), Read: verdict.LoadVerdict}
	}
	return append(list, *i.verdict), nil
}

// ErrSteering is wrapped where two algorithms of a chain change how packets leave.
var ErrSteering = errors.New("a packet can be steered in one way only")

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

// Steering is how a chain that was loaded changes the way that packets leave.
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

// Verdicts are what was done to packets in one window.
type Verdicts struct {
	Dropped, DroppedBytes uint64 // bytes on the wire
	Marked                uint64 // ECN bits set here
	MarkedBefore          uint64 // a mark was wanted and had been made elsewhere
	Steered               uint64 // another skb->mark, skb->priority or skb->tstamp
	Unmarkable            uint64 // a mark was wanted of a packet whose sender does not understand it; it passed
}

// Verdicts reads a closed bank and resets it. A chain that does not enforce did nothing.
func (i *Instance) Verdicts(bank int) (Verdicts, error) {
	m := verdictOf(i.loaded)
	if m == nil {
		return Verdicts{}, nil
	}
	return m.verdicts(func(a *xmaps.Array) ([]uint64, error) { return a.ReadReset(bank, nil) })
}

// verdictOf finds the member that carries out verdicts; nil in a chain that only measures.
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

// plus is v with sign times what is in w.
func (v Verdicts) plus(w Verdicts, sign uint64) Verdicts {
	v.Dropped += sign * w.Dropped
	v.DroppedBytes += sign * w.DroppedBytes
	v.Marked += sign * w.Marked
	v.MarkedBefore += sign * w.MarkedBefore
	v.Steered += sign * w.Steered
	v.Unmarkable += sign * w.Unmarkable
	return v
}

// verdictsWith are those of a window, with those of a chain that enforced in its first part and was exchanged for one that does not; nil
// when nothing of that is so.
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
