package finding

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrPromise is wrapped by errors of promises.
var ErrPromise = errors.New("a promise reads `SUBJECT p99 < 50ms`, `SUBJECT loss < 0.1 %` or `SUBJECT share fair`")

// Promise is what somebody promised of subjects: an upper bound of a percentile or of a share, or fair shares.
type Promise struct {
	Pattern string  // prefix, address, interface; * stands for any characters
	Metric  string  // p50, p95, p99, loss, share
	Limit   float64 // ns, or a share; of share fair: the least Jain's index
	prefix  netip.Prefix
}

// fair is Jain's index from which on shares are called fair: with ten users, one of them at three times the others' share has .71.
const fair = .8

// ParsePromise reads one.
func ParsePromise(text string) (Promise, error) {
	fail := func(why string) (Promise, error) { return Promise{}, fmt.Errorf("%q: %s: %w", text, why, ErrPromise) }
	words := strings.Fields(strings.ReplaceAll(text, "<", " < "))
	if len(words) < 3 {
		return fail("too short")
	}
	p := Promise{Pattern: words[0], Metric: words[1]}
	if _, err := path.Match(p.Pattern, ""); err != nil {
		return fail("the pattern is malformed")
	}
	p.prefix = prefixOf(p.Pattern)
	if p.Metric == "share" {
		if len(words) != 3 || words[2] != "fair" {
			return fail("a share can be fair, and nothing else")
		}
		p.Limit = fair
		return p, nil
	}
	if words[2] != "<" || len(words) < 4 {
		return fail("no < and limit")
	}
	limit := strings.Join(words[3:], "")
	switch p.Metric {
	case "p50", "p95", "p99":
		d, err := time.ParseDuration(limit)
		if err != nil || d <= 0 {
			return fail("the limit is no duration like 50ms")
		}
		p.Limit = float64(d)
	case "loss":
		number, percent := strings.CutSuffix(limit, "%")
		f, err := strconv.ParseFloat(number, 64)
		if percent {
			f /= 100
		}
		if err != nil || !(f > 0 && f < 1) {
			return fail("the limit is no share like 0.1 %")
		}
		p.Limit = f
	default:
		return fail("the metric is none of p50, p95, p99, loss, share")
	}
	return p, nil
}

func prefixOf(text string) netip.Prefix {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked()
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	return netip.Prefix{}
}

func (p Promise) String() string {
	switch p.Metric {
	case "share":
		return p.Pattern + " share fair"
	case "loss":
		return p.Pattern + " loss < " + report.Human(p.Limit, report.Ratio)
	}
	return p.Pattern + " " + p.Metric + " < " + report.Human(p.Limit, report.Nanosecond)
}

// Place is the network or address that the promise is about; ok is false where its pattern is of names.
func (p Promise) Place() (s Subject, ok bool) {
	switch {
	case !p.prefix.IsValid():
		return Subject{}, false
	case p.prefix.IsSingleIP():
		return Subject{Host, p.prefix.Addr().String()}, true
	}
	return Subject{Prefix, p.prefix.String()}, true
}

// Covers reports whether a subject of an instance is one that the promise is about.
func (p Promise) Covers(s Subject, instance string) bool {
	if p.prefix.IsValid() {
		q := prefixOf(s.Name)
		return q.IsValid() && p.prefix.Bits() <= q.Bits() && p.prefix.Contains(q.Addr())
	}
	for _, name := range []string{s.Name, instance} {
		if ok, _ := path.Match(p.Pattern, name); ok {
			return true
		}
	}
	return false
}

// Expected is the promise as an expectation.
func (p Promise) Expected() Expected {
	nan := math.NaN()
	switch p.Metric {
	case "share":
		return Expected{Estimate{p.Limit, p.Limit, nan, report.Ratio}, FromPromise}
	case "loss":
		return Expected{Estimate{p.Limit, nan, p.Limit, report.Ratio}, FromPromise}
	}
	return Expected{Estimate{p.Limit, nan, p.Limit, report.Nanosecond}, FromPromise}
}

// Broken reports whether an interval lies beyond the promise.
func (p Promise) Broken(v Estimate) bool {
	if p.Metric == "share" {
		return v.High < p.Limit
	}
	return v.Low > p.Limit
}
