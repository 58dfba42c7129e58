package reorder

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// bucketBytes is a record's three words of 64 bits and one of 32, in two banks.
const bucketBytes = (3*8 + 4) * 2

// typicalPrefixes is the paper's trace (section 4.1): 17,097 prefixes.
const typicalPrefixes = 17097

var errPlan = errors.New("a plan for reorder")

// planLoad is the traffic that a plan is made for: packets with payload a second, and active prefixes.
type planLoad struct {
	rate, prefixes, window float64
	buckets                int
}

func readPlan(a algo.PlanArgs) (planLoad, error) {
	l := planLoad{rate: a.RatePerSecond, prefixes: typicalPrefixes, window: 60,
		buckets: int(min(a.MemoryBytes/bucketBytes, 32768))}
	if !(l.rate > 0) {
		return l, fmt.Errorf("%w: --rate, packets a second with payload, must be positive", errPlan)
	}
	if l.buckets < 2 {
		return l, fmt.Errorf("%w: --memory %d bytes hold no two buckets of %d", errPlan, a.MemoryBytes, bucketBytes)
	}
	for key, text := range a.Extra {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0) {
			return l, fmt.Errorf("%w: --extra %s=%s: a positive number", errPlan, key, text)
		}
		switch key {
		case "prefixes":
			l.prefixes = n
		case "window-seconds":
			l.window = n
		default:
			return l, fmt.Errorf("%w: --extra %s: there are prefixes and window-seconds", errPlan, key)
		}
	}
	return l, nil
}

// advise chooses the method by the number of buckets per prefix: section 4.3 finds sampling most accurate while memory is small,
// and a larger share for the ways best the closer there is one bucket for every prefix.
func (l planLoad) advise() (method string, x float64) {
	perPrefix := float64(l.buckets) / l.prefixes
	switch {
	case perPrefix < 1.0/64:
		return "sampling", 0
	case perPrefix < 1:
		return "hybrid", 0.2
	}
	return "hybrid", 0.5
}

// Plan implements algo.Planner: it derives from a memory budget and a rate a method and its expected accuracy. In a contended
// bucket a flow is watched for at most C+1 of its packets. A bucket of the array that gets r packets a second writes at most r/2
// records a second, so a prefix with its fair share of the bucket's packets is watched for at least half of them while its
// packets arrive in trains. There is at most one second pass for C+2 packets.
func (c *config) Plan(a algo.PlanArgs) (*report.Body, error) {
	l, err := readPlan(a)
	if err != nil {
		return nil, err
	}
	method, x := l.advise()
	beta, alpha := float64(c.beta), float64(c.alpha)
	average := l.rate * l.window / l.prefixes
	share := 1 / (float64(c.most) + 2)
	b := report.Body{Values: []report.Value{
		{Name: "method", Value: method, Kind: report.Info, Help: "set reorder.method"},
		gauge("buckets", l.buckets, report.Count, "set reorder.buckets"),
		gauge("memory", int64(l.buckets)*bucketBytes, report.Bytes, "four words a bucket, two banks"),
		gauge("prefixes_a_bucket", l.prefixes/float64(l.buckets), report.Count, "prefixes that share a bucket, on average"),
		gauge("packets_a_prefix", average, report.PacketUnit, "packets with payload in a window, on average"),
		gauge("recirculation_most", share, report.Ratio, "second passes of the array for n > C, at most; out-of-order packets (R) add to them"),
		gauge("share_error", math.Sqrt(c.epsilon/max(alpha, 1)), report.Ratio,
			"standard error of the share of a prefix that was watched for alpha packets, at a true share of epsilon"),
	}}
	if method == "hybrid" {
		b.Values = append(b.Values, gauge("x", x, report.Ratio, "set reorder.x"))
	}
	if average < beta {
		b.Notes = append(b.Notes, fmt.Sprintf("an average prefix sends %.0f packets in a window of %g s, less than beta = %.0f: take longer windows", average, l.window, beta))
	}
	b.Notes = append(b.Notes, "accuracy depends on how flows spread over prefixes and cannot be planned without traffic: replay a capture with --truth")
	return &b, nil
}
