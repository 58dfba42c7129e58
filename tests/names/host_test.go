package names

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// seven are the algorithms that measure a host's interfaces.
var seven = []string{"beaucoup", "conquest", "fridge", "hhh", "lean", "precision", "reorder"}

// hundred is a host of as many interfaces, each of which has the lines of seven algorithms. It is the most that they have: every percentile and every share is known, with its interval.
func hundred(lines map[string]report.Line) *prom.Store {
	s := prom.NewStore(time.Now)
	for _, name := range seven {
		l := lines[name]
		for _, d := range l.Report.Distributions {
			for i := range d.Quantiles {
				d.Quantiles[i].Defined, d.Quantiles[i].Low, d.Quantiles[i].Value, d.Quantiles[i].High = true, 1, 2, 3
			}
		}
		for i := range l.Report.Values {
			if v := &l.Report.Values[i]; v.Kind == report.Gauge && v.Promise == report.Bound {
				v.Low, v.Value, v.High = 0., .5, 1.
			}
		}
		for n := range 100 {
			l.Each = fmt.Sprintf("vnet%d", n)
			s.Add(l)
		}
	}
	return s
}

// host counts its series.
func host(t *testing.T, usual map[string]report.Line) {
	t.Helper()
	s := hundred(usual)
	for _, c := range []struct {
		form    prom.Histograms
		details bool
		most    int
	}{{prom.BothHistograms, false, 25_000}, {prom.NativeHistograms, false, 18_000}, {prom.BothHistograms, true, 32_500}} {
		s.ServeHistograms(c.form)
		s.Details(c.details)
		n := s.Series()
		t.Logf("100 interfaces with seven algorithms: %d series, %s histograms, details %v", n, c.form, c.details)
		if n < c.most*4/5 || n >= c.most {
			t.Errorf("100 interfaces with seven algorithms have %d series with %s histograms (details: %v), below %d are expected", n, c.form, c.details, c.most)
		}
	}
}

// used is the processor time of this process.
func used(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkScrape is a scrape of that host, as Prometheus asks for it: mean and shortest time, and processor time, which others on the machine do not change.
func BenchmarkScrape(b *testing.B) {
	testutil.NeedRoot(b)
	lines, capture := map[string]report.Line{}, string(builder.Handshakes(b, 300))
	for _, name := range seven {
		d, err := algo.Lookup(name)
		if err != nil {
			b.Fatal(err)
		}
		replayNames(b, d, nil, capture, func(l report.Line) { lines[name] = l })
	}
	handler := prom.Handler(hundred(lines), log.New(io.Discard, "", 0))
	for _, c := range []struct{ what, accept, encoding string }{
		{"text", "text/plain;version=0.0.4", ""}, {"text-gzip", "text/plain;version=0.0.4", "gzip"},
		{"protobuf-gzip", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "gzip"},
	} {
		b.Run(c.what, func(b *testing.B) {
			before, shortest := used(b), time.Hour
			for b.Loop() {
				began := time.Now()
				r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				r.Header.Set("Accept", c.accept)
				r.Header.Set("Accept-Encoding", c.encoding)
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Body.String())
				}
				shortest = min(shortest, time.Since(began))
				b.ReportMetric(float64(w.Body.Len()), "bytes")
			}
			b.ReportMetric(float64(shortest.Microseconds())/1e3, "shortest-ms")
			b.ReportMetric(float64((used(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms")
		})
	}
}
