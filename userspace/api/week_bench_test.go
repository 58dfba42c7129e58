package api

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// BenchmarkWeek asks for a week of one instance of 20, of a store that holds windows of 20 instances and 4 algorithms, one in 10 s as far as 256 MiB go. It is made once.
func BenchmarkWeek(b *testing.B) {
	path := os.Getenv("XDPMON_WEEK")
	if path == "" {
		b.Skip("XDPMON_WEEK names the file, which takes minutes to make")
	}
	now := epoch.Add(7 * 24 * time.Hour)
	s, err := store.Open(path, store.Options{MaxBytes: 4 << 30, Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if st, _ := s.Stats(); st.Records == 0 {
		fill(b, s, now)
	}
	st, _ := s.Stats()
	r := begin(&testing.T{}, 0)
	r.opts.Store = func() store.Past { return s }
	b.ResetTimer()
	for i := range b.N {
		var v Series
		w := r.get(&testing.T{}, fmt.Sprintf("/windows?key=i%d&algorithm=a0&fields=packets.seen,report.delay_ns.p50,report.delay_ns.p99&from=2026-01-02&to=2026-01-09", i%20), &v)
		if len(v.Rows) < 100 {
			b.Fatalf("%d rows, %d: %.200s", len(v.Rows), w.Code, w.Body)
		}
	}
	b.ReportMetric(float64(st.Records), "records")
	b.ReportMetric(float64(st.Bytes)/1e6, "MB")
}

func fill(b *testing.B, s *store.Store, now time.Time) {
	random := rand.New(rand.NewPCG(1, 2))
	l := line(1)
	for n := range 50 {
		l.Report.Tables[0].Rows = append(l.Report.Tables[0].Rows, []any{fmt.Sprintf("10.%d.%d.%d", n, random.IntN(256), random.IntN(256)), random.Float64() * 1e9})
	}
	for at := epoch; at.Before(now); at = at.Add(10 * time.Second) {
		var list []store.Record
		for i := range 20 {
			for a := range 2 {
				l.Packets.Seen = random.Uint64N(1e6)
				l.Report.Values[0].Value = random.Float64()
				text, err := l.Record(report.Clock{UnixOffsetNS: epoch.UnixNano()})
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, store.Record{End: at, Algorithm: fmt.Sprintf("a%d", a), Key: fmt.Sprintf("i%d", i), Instance: fmt.Sprintf("i%d", i), Line: text})
			}
		}
		if err := s.Append(list...); err != nil {
			b.Fatal(err)
		}
	}
}
