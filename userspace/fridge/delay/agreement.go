package delay

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Agreement is a service level agreement: a share of the responses arrives within a limit.
type Agreement struct {
	Limit float64 // ns
	Share float64 // 0..1
}

var errAgreement = errors.New("allowed are none and DELAY@PERCENT, like 50ms@95%")

// ParseAgreement reads DELAY@PERCENT; none is nil.
func ParseAgreement(text string) (*Agreement, error) {
	if text == "none" || text == "" {
		return nil, nil
	}
	limit, share, ok := strings.Cut(text, "@")
	d, err := time.ParseDuration(limit)
	if !ok || err != nil || d <= 0 {
		return nil, errAgreement
	}
	number, isPercent := strings.CutSuffix(share, "%")
	f, err := strconv.ParseFloat(number, 64)
	if isPercent {
		f /= 100
	}
	if err != nil || !(f > 0 && f < 1) {
		return nil, errAgreement
	}
	return &Agreement{Limit: float64(d), Share: f}, nil
}

// Verdicts: an agreement counts as broken or kept at 95 % confidence.
const (
	Broken    = "broken"
	Kept      = "kept"
	Undecided = "too few to decide"
)

// Judgement of a distribution.
type Judgement struct {
	Over, Low, High float64 // share of responses beyond the limit, with its 95 % interval
	Verdict         string
	Confidence      float64 // that more than the agreed share is beyond the limit, 0..1
}

// Judge an estimated distribution.
func (a *Agreement) Judge(s *Spectrum) Judgement {
	var j Judgement
	j.Over, j.Low, j.High = s.Above(a.Limit)
	allowed := 1 - a.Share
	switch {
	case j.Low > allowed:
		j.Verdict = Broken
	case j.High < allowed:
		j.Verdict = Kept
	default:
		j.Verdict = Undecided
	}
	spread := math.Sqrt(allowed * a.Share / s.Effective())
	j.Confidence = 0.5 * math.Erfc((allowed-j.Over)/spread/math.Sqrt2)
	return j
}

// TrueVerdict is the verdict when the share is known exactly.
func (a *Agreement) TrueVerdict(over float64) string {
	if over > 1-a.Share {
		return Broken
	}
	return Kept
}
