package fridge

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

// sla is a service level agreement: a share of the responses arrives within a limit.
type sla struct {
	limit float64 // ns
	share float64 // 0..1
}

var errSLA = errors.New("allowed are none and DELAY@PERCENT, like 50ms@95%")

func parseSLA(text string) (*sla, error) {
	if text == "none" || text == "" {
		return nil, nil
	}
	limit, share, ok := strings.Cut(text, "@")
	d, err := time.ParseDuration(limit)
	if !ok || err != nil || d <= 0 {
		return nil, errSLA
	}
	number, isPercent := strings.CutSuffix(share, "%")
	f, err := strconv.ParseFloat(number, 64)
	if isPercent {
		f /= 100
	}
	if err != nil || !(f > 0 && f < 1) {
		return nil, errSLA
	}
	return &sla{limit: float64(d), share: f}, nil
}

// Verdicts: an agreement counts as broken or kept at 95 % confidence.
const (
	slaBroken  = "broken"
	slaKept    = "kept"
	slaUnknown = "too few to decide"
)

// judgement of a distribution.
type judgement struct {
	over, low, high float64 // share of responses beyond the limit, with its 95 % interval
	verdict         string
	confidence      float64 // that more than the agreed share is beyond the limit, 0..1
}

func (a *sla) judge(s *delay.Spectrum) judgement {
	var j judgement
	j.over, j.low, j.high = s.Above(a.limit)
	allowed := 1 - a.share
	switch {
	case j.low > allowed:
		j.verdict = slaBroken
	case j.high < allowed:
		j.verdict = slaKept
	default:
		j.verdict = slaUnknown
	}
	spread := math.Sqrt(allowed * a.share / s.Effective())
	j.confidence = 0.5 * math.Erfc((allowed-j.over)/spread/math.Sqrt2)
	return j
}

// trueVerdict is the verdict when the share is known exactly.
func (a *sla) trueVerdict(over float64) string {
	if over > 1-a.share {
		return slaBroken
	}
	return slaKept
}
