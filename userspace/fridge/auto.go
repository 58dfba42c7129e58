package fridge

import (
	"fmt"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/fridge/tune"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// fridges=auto: the entry probabilities of four equal parts follow load and delays between windows (section 5.2). bpf/fridge states what keeps the
// correction unbiased across a change.

const (
	mostShard   = 1 << 14 // slots: x is stored modulo 2^20, and a record survives half of that with probability e^-32
	changeWords = "fridge_changes"
)

// follows reports whether the probabilities change.
func (c *config) follows() bool { return c.slots > 0 }

// planes of a row of the histograms.
func (c *config) planes() int {
	if c.follows() {
		return tune.Planes * len(c.parts)
	}
	return len(c.parts)
}

func (c *config) checkAuto(v algo.Values) error {
	if !c.follows() {
		return nil
	}
	if !c.recorded {
		return v.Error("fridges", "auto needs counter=recorded: the setting of each request is stored with its counter")
	}
	for _, p := range c.parts {
		if p.Slots/p.Shards > mostShard {
			return v.Error("shards", fmt.Sprintf("with fridges=auto a shard may have at most %d entries: take auto, or more shards", mostShard))
		}
	}
	return nil
}

// CheckMerge implements algo.MergeChecker: a coordinator takes no auto, since each host would change its probabilities by itself. Windows of one host can be
// summed, whatever their settings were.
func (c *config) CheckMerge() error {
	if !c.follows() {
		return nil
	}
	return fmt.Errorf("%w: fridge.fridges=auto changes probabilities on every host by itself, and no coordinator can order it yet: give entries and "+
		"probabilities (`xdpmon plan fridge`), or take auto in an instance of the agent that is not shared", algo.ErrMerge)
}

// setting is one setting whose samples a window may have.
type setting struct {
	plane   int
	parts   []layout.Part
	samples float64
	over    float64 // ns from its end to that of the window; 0: it is the present one
	tune.Setting
}

// newEstimator has one setting.
func newEstimator(c *config) *estimator {
	return &estimator{config: c, rates: newRates(c.parts), lives: []setting{{parts: c.parts}}}
}

// estimatorOf a snapshot.
func (c *config) estimatorOf(s *snapshot.Snapshot, r *snapshot.Reader) *estimator {
	e := newEstimator(c)
	e.span = [2]int64{s.Window.Start, s.Window.End}
	if !c.follows() || s.Parts > 1 {
		return e
	}
	e.lives = nil
	for _, one := range tune.HistoryOf(r, s.Window.End) {
		e.lives = append(e.lives, setting{plane: one.Plane(), parts: one.Parts(c.parts), Setting: one})
	}
	for i := range e.lives[:len(e.lives)-1] {
		e.lives[i].over = float64(e.span[1] - e.lives[i+1].Since)
	}
	e.rates = newRates(e.now().parts)
	return e
}

// now is the present setting.
func (e *estimator) now() *setting { return &e.lives[len(e.lives)-1] }

// shares of the requests with a delay of t ns, by the setting that they were admitted with.
func (e *estimator) shares(t float64) []float64 {
	if len(e.lives) == 1 {
		return []float64{1}
	}
	h := make(tune.History, len(e.lives))
	for i, s := range e.lives {
		h[i] = s.Setting
	}
	return h.Shares(t, e.span[0], e.span[1])
}

// admittedWith returns the fridges of a sample's setting, and which of them it was admitted to.
func (e *estimator) admittedWith(plane int) (parts []layout.Part, k int) {
	k = plane % len(e.parts)
	for _, s := range e.lives {
		if s.plane == plane/len(e.parts) {
			return s.parts, k
		}
	}
	return e.now().parts, k
}

// settingValues state which setting a window had, and since when.
func (e *estimator) settingValues(s spectra) []report.Value {
	if !e.follows() || s.merged {
		return nil
	}
	now := e.now()
	values := []report.Value{
		{Name: "setting", Value: now.Text(e.config.parts), Kind: report.Info, Help: "entries@probability of each fridge, from the start of this window on"},
		{Name: "setting_changes", Value: int64(now.Number), Unit: report.Count, Kind: report.Info, Help: "times that load or delays changed the setting, since the start"},
	}
	if now.Number > 0 {
		values = append(values, report.Value{Name: "setting_age_ns", Value: e.span[1] - now.Since, Unit: report.Nanosecond,
			Help: "from the last change of the setting to the end of this window"})
	}
	earlier := 0.0
	for _, one := range e.lives[:len(e.lives)-1] {
		earlier += one.samples
	}
	return append(values, report.Value{Name: "earlier_settings", Value: int64(earlier), Unit: report.Responses,
		Help: "responses to requests that were admitted with an earlier setting, and are corrected with its probabilities"})
}

// changes counts what a change of the setting lost.
func (e *estimator) changes(s *snapshot.Snapshot, lost map[string]uint64) {
	if !e.follows() {
		return
	}
	lost["stale"] = 0
	if n := s.Words[changeWords]; len(n) > int(bpf.FridgeFridgeChangeCounterCHANGE_STALE) {
		lost["stale"] = n[bpf.FridgeFridgeChangeCounterCHANGE_STALE]
	}
}

// publish writes the setting for the next packets: one word, which each packet reads once.
func (i *instance) publish() error {
	if i.tuner == nil {
		return nil
	}
	array, err := i.set.Array("fridge_setting")
	if err != nil {
		return err
	}
	return array.Write(0, []uint64{i.tuner.Word()})
}

// retune stores the settings of a window in its snapshot, and chooses that of the next.
func (i *instance) retune(s *snapshot.Snapshot) (changed bool, err error) {
	if i.tuner == nil {
		return false, nil
	}
	i.tuner.History().Into(s)
	r := s.Read()
	e := i.estimatorOf(s, r)
	n, p := i.readingOf(r), pastOf(r, len(i.parts))
	if err := r.Err(); err != nil {
		return false, fmt.Errorf("retune: %w", err)
	}
	all := e.window(n, p)
	w := tune.Window{End: s.Window.End, NS: float64(e.span[1] - e.span[0]), Requests: n.counts.at(bpf.FridgeFridgeCounterFRIDGE_REQUESTS), Delays: all.total}
	for _, one := range e.lives {
		w.Samples = append(w.Samples, one.samples)
	}
	if !i.tuner.Next(w) {
		return false, nil
	}
	return true, i.publish()
}
