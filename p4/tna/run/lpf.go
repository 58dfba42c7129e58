package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"math"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Lpf is an array of low-pass filters. It is initialized to 0 and cannot be used before the control plane has set it.
type Lpf struct {
	Name  string
	Array *Register // the value of each filter, of 32 bits: before it is scaled down, rounded to an integer
	Filter
	value []float64
	last  []uint64 // ns; 0: never
	index *lang.Type
}

// Filter is the configuration of a filter.
type Filter struct {
	// Rate: each value is added to the decayed sum of earlier ones, so that the output for values at a steady rate is
	// rate times Decay. Otherwise the output follows the values: its distance to them decays.
	Rate bool
	// Gain and Decay are time constants in ns of a following filter, for values above and below its output. One that
	// measures a rate uses only Decay.
	Gain, Decay float64
	Shift       uint // the output is scaled down by 2^Shift
	// Step is the arithmetic; nil: exponentials of float64, since the chip's arithmetic is not published. With it, the
	// filter equals another implementation word for word; last, the time of the value before, is ns of 48 bits, 0 if there was
	// none, and now is later by the elapsed time, also across the wrap of those bits.
	Step func(held, value, now, last uint64) uint64
}

func newLpf(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 2, 1)
	if t := s.ScalarType(i.Type.Args[0]); t.Signed || t.Width != 32 {
		syntax.Throw(i.Pos, "a low-pass filter of %s: the model has those of bit<32>", t)
	}
	n := s.Positive(i.Args[0], 1<<20)
	l := &Lpf{Name: s.Path + i.Name, index: s.ScalarType(i.Type.Args[1]), value: make([]float64, n), last: make([]uint64, n),
		Array: &Register{Name: i.Name, Path: s.Path + i.Name, At: i.Pos, Width: 32, Words: 1, Entries: n, Data: make([]uint64, n), Initial: []uint64{0}}}
	if l.index.Width < 32 && n > 1<<l.index.Width {
		syntax.Throw(i.Pos, "an index of %d bits does not reach %d entries", l.index.Width, n)
	}
	l.Array.filter = l
	l.Array.sw = switchOf(s)
	l.Array.sw.Filters = append(l.Array.sw.Filters, l)
	return l
}

// Call compiles a method.
func (l *Lpf) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "execute")
	if len(e.Args) != 2 {
		syntax.Throw(e.Pos, "a filter is given a value and an index")
	}
	s.Simple(e.Args[1])
	t, at := lang.BitsType(32), e.Pos
	value, index := s.Value(e.Args[0]).As(t).Eval, s.Value(e.Args[1]).As(l.index).Eval
	return lang.Expr{At: at, Type: t, Eval: func(m *lang.Machine) (uint64, uint64) {
		i, ok := l.Array.access(m, at, index)
		v, u := value(m)
		switch {
		case !ok:
			return 0, 0
		case u != 0:
			m.Fail(at, "an undefined value goes into low-pass filter %s", l.Name)
			return 0, 0
		case l.Decay == 0 && l.Step == nil:
			m.Fail(at, "low-pass filter %s: the control plane has not set it", l.Name)
			return 0, 0
		}
		return l.step(i, v, l.Array.sw.time), 0
	}}
}

// step passes a value to a filter and returns its output.
func (l *Lpf) step(i int, v, now uint64) uint64 {
	last, elapsed := l.last[i], uint64(0)
	if last > 0 {
		elapsed = (now - last) & lang.Mask(48)
	}
	l.last[i] = max(now, 1)
	if math.Round(l.value[i]) != float64(l.Array.Data[i]) { // a control plane wrote it
		l.value[i] = float64(l.Array.Data[i])
	}
	if l.Step != nil {
		if now < last {
			now = last + elapsed
		}
		l.Array.Data[i] = min(l.Step(l.Array.Data[i], v, now, last), lang.Mask(32))
	} else {
		l.value[i] = min(l.follow(l.value[i], float64(v), float64(elapsed)), float64(lang.Mask(32)))
		l.Array.Data[i] = uint64(math.Round(l.value[i]))
	}
	return l.Array.Data[i] >> l.Shift
}

func (l *Lpf) follow(held, v, elapsed float64) float64 {
	if l.Rate {
		return held*math.Exp(-elapsed/l.Decay) + v
	}
	tau := l.Decay
	if v > held {
		tau = l.Gain
	}
	return v + (held-v)*math.Exp(-elapsed/tau)
}
