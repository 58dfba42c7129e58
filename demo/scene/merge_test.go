package scene

import (
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Two halves of one distribution, cut into different buckets, are the whole.
func TestMerge(t *testing.T) {
	a := logNormal("d", 3000, 12e6, 1)
	b := logNormal("d", 1000, 40e6, 0.5)
	var coarse []report.Bucket
	for i, bucket := range b.Buckets {
		if i%3 == 2 {
			coarse = append(coarse, bucket)
		}
	}
	b.Buckets = coarse
	sum := merge(a, b)
	if sum.Count != 4000 || math.Abs(sum.Mean*4-(3*a.Mean+b.Mean)) > 1 || math.Abs(sum.CountErr-math.Hypot(a.CountErr, b.CountErr)) > 1e-9 {
		t.Errorf("count %v +- %v, mean %v", sum.Count, sum.CountErr, sum.Mean)
	}
	for x := 1e6; x < 1e9; x *= 1.3 {
		want := (3000*a.Share(x) + 1000*b.Share(x)) / 4000
		if got := sum.Share(x); math.Abs(got-want) > 0.005 {
			t.Errorf("share at %v: %v, want %v", x, got, want)
		}
	}
	for _, q := range sum.Quantiles {
		if !q.Defined || q.Value != sum.At(q.Q) || q.Low != 0 || q.High != 0 {
			t.Errorf("percentile %+v", q)
		}
	}
}

func TestMergeWithNothing(t *testing.T) {
	d := logNormal("d", 100, 1e6, 1)
	for _, sum := range []report.Distribution{merge(report.Distribution{}, d), merge(d, report.Distribution{})} {
		if sum.Count != 100 || sum.Name != "d" || sum.Quantiles[0].Value != d.Quantiles[0].Value || sum.Quantiles[0].Low != 0 {
			t.Errorf("got %+v", sum.Quantiles)
		}
	}
	if d.Quantiles[0].Low == 0 {
		t.Error("the argument was changed")
	}
}

// logNormal is a distribution of n values.
func logNormal(name string, n, median, sigma float64) report.Distribution {
	d := report.Distribution{Name: name, Title: "delay from SYN to SYN-ACK", Unit: report.Nanosecond, Count: n, CountErr: math.Sqrt(n),
		Mean: median * math.Exp(sigma*sigma/2), Help: "delay from a request to its response"}
	d.Sum = d.Mean * n
	for i := range 200 {
		x := 1e5 * math.Pow(2, float64(i)/10)
		d.Buckets = append(d.Buckets, report.Bucket{Upper: x, Cumulative: n * (0.5 + 0.5*math.Erf(math.Log(x/median)/sigma/math.Sqrt2))})
	}
	for _, q := range []struct {
		name string
		q    float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}} {
		x := d.At(q.q)
		d.Quantiles = append(d.Quantiles, report.Quantile{Name: q.name, Q: q.q, Value: x, Low: 0.97 * x, High: 1.03 * x, Defined: true})
	}
	return d
}
