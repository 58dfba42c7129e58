package finding

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// normal is the upper tail of the standard normal distribution.
func normal(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }

// heavy is the upper tail of Student's distribution with three degrees of freedom, scaled to variance 1: windows of real traffic have outliers.
func heavy(x float64) float64 {
	t := x * math.Sqrt(3)
	return .5 - (math.Atan(t/math.Sqrt(3))+t/math.Sqrt(3)/(1+t*t/3))/math.Pi
}

// The average run length that docs/findings.md states is what the Markov chain yields, and a simulation of the test itself.
func TestRunLength(t *testing.T) {
	if n := RunLength(normal); n < 1e9 {
		t.Errorf("normal windows: %.3g", n)
	}
	exact := RunLength(heavy)
	if exact < 5e5 || exact > 2e6 {
		t.Errorf("windows with outliers: %.0f", exact)
	}
	// a chance that is high enough to be simulated: every tenth window lies 4.5 deviations out
	often := func(x float64) float64 {
		if x <= 4.5 {
			return .1
		}
		return 0
	}
	want, r, sum := RunLength(often), rand.New(rand.NewPCG(1, 2)), 0
	const runs = 500
	for range runs {
		var s Score
		for !s.Active {
			s.Step(r.Float64() < .1, 4.5, 2)
			sum++
		}
	}
	if got := float64(sum) / runs; math.Abs(got/want-1) > .15 {
		t.Errorf("simulated %.0f windows, calculated %.0f", got, want)
	}
}

// Two windows far out begin a finding, one does not; it ends when windows are as usual again, whatever their number was.
func TestScore(t *testing.T) {
	var s Score
	if s.Step(true, 100, 2); s.Active {
		t.Error("one window is enough")
	}
	if s.Step(true, 100, 2); !s.Active {
		t.Error("two windows are not")
	}
	for range 50 {
		s.Step(true, 100, 2)
	}
	n := 0
	for s.Active {
		s.Step(false, 0, 2)
		n++
	}
	if n != (alarm+over)/rest {
		t.Errorf("ends after %d windows", n)
	}
}

// Odd windows make a stream need more of them in a row, and are forgotten.
func TestOdd(t *testing.T) {
	var o Odd
	for n := range 4000 {
		if n == 100 && o.Needed() != 2 {
			t.Errorf("without odd windows %d are needed", o.Needed())
		}
		o.Pass(n >= 100 && n%250 == 0)
	}
	if o.Needed() != 3 {
		t.Errorf("with one odd window in 250 %d are needed", o.Needed())
	}
	for range 20 * oddMemory {
		o.Pass(false)
	}
	if o.Needed() != 2 {
		t.Errorf("%d are needed long after", o.Needed())
	}
	var s Score
	for n := range 4 {
		if s.Step(true, 100, 4); s.Active != (n == 3) {
			t.Errorf("window %d of 4 that are needed: active %v", n+1, s.Active)
		}
	}
}

func window(n int) (int64, int64) {
	const length = 10e9
	return unix2000 + int64(n)*length, unix2000 + int64(n+1)*length
}

func delayed(value float64) Measure {
	return Measure{Symptom: HandshakeLate, Subject: Subject{Prefix, "10.2.0.0/16"}, Algorithm: "fridge", Instance: "eth0", Value: Estimate{value, value * .95, value * 1.05, report.Nanosecond},
		Ratio: true, Factor: 1.5, Delta: 2e6, Bound: math.NaN(), Absent: math.NaN()}
}

// Nothing is expected before there is a past; then a delay that doubles is a symptom in two windows, since its first, and the past learns nothing of it.
func TestStreams(t *testing.T) {
	s, r := NewStreams(), rand.New(rand.NewPCG(3, 4))
	var got Reading
	step := func(n int, value float64) {
		begin, end := window(n)
		got = s.Window("fridge", []Measure{delayed(value * math.Exp(.05*r.NormFloat64()))}, begin, end)[0]
	}
	for n := range 40 {
		if step(n, 40e6); got.Known != (n >= fewest) || got.Active {
			t.Fatalf("window %d: known %v, active %v", n, got.Known, got.Active)
		}
	}
	for n := 40; n < 80; n++ {
		step(n, 90e6)
		if since, _ := window(40); got.Active != (n > 41) && n != 41 || got.Active && got.Since != since {
			t.Fatalf("window %d: active %v since %d", n, got.Active, got.Since)
		}
	}
	if e := got.Expected.Value; e < 36e6 || e > 44e6 || got.Expected.Source != FromBaseline {
		t.Errorf("expected %v", got.Expected)
	}
	for n := 80; got.Active && n < 100; n++ {
		step(n, 40e6)
	}
	if got.Active {
		t.Error("it does not end")
	}
}

// A window that can show nothing is no evidence either way, and a delay that is only twice a microsecond matters to nobody.
func TestWeak(t *testing.T) {
	s := NewStreams()
	for n := range 60 {
		m := delayed(1e3)
		if n >= 30 {
			m = delayed(1e6)
		}
		if n >= 50 {
			m.Value, m.Weak = Estimate{math.NaN(), math.NaN(), math.NaN(), report.Nanosecond}, "fewer than 8 answers"
		}
		begin, end := window(n)
		if got := s.Window("fridge", []Measure{m}, begin, end)[0]; got.Active {
			t.Fatalf("window %d: active", n)
		}
	}
}

// The usual of an hour of the week is used once there are values of two weeks, so that a delay of every night is no finding.
func TestHours(t *testing.T) {
	var b Baseline
	const hour = int64(3600e9)
	for h := range int64(2 * 7 * 24) {
		value := 40.
		if h%24 < 4 {
			value = 400
		}
		for k := range int64(6) {
			b.Learn(value, unix2000+h*hour+k*10*60e9)
		}
	}
	night, day := unix2000+15*24*hour+hour, unix2000+15*24*hour+12*hour
	if u, ok := b.Usual(night, true); !ok || !u.Weekly || math.Abs(u.Median-400) > 20 {
		t.Errorf("at night %+v %v", u, ok)
	}
	if u, ok := b.Usual(day, true); !ok || !u.Weekly || math.Abs(u.Median-40) > 2 {
		t.Errorf("by day %+v %v", u, ok)
	}
	p := Past{Baseline: b, At: day, Length: 10e9}
	if c, err := ReadBaseline(p.MarshalBaseline()); err != nil || !reflect.DeepEqual(*c, p) {
		t.Errorf("read back: %v", err)
	}
}

// One window in five that is wild moves what is usual by little.
func TestRobust(t *testing.T) {
	var b Baseline
	for n := range 100 {
		value := 40.
		if n%5 == 0 {
			value = 4000
		}
		b.Learn(value, 0)
	}
	if u, _ := b.Usual(0, true); math.Abs(u.Median-40) > 1 || u.Scatter > .2 {
		t.Errorf("%+v", u)
	}
}

func TestPromises(t *testing.T) {
	for text, want := range map[string]string{
		"10.2.0.0/16 p99 < 50ms": "10.2.0.0/16 p99 < 50.0 ms", "eth* loss < 0.1 %": "eth* loss < 0.10 %", "tenants share fair": "tenants share fair", "10.2.3.4 p50<1s": "10.2.3.4 p50 < 1.00 s",
	} {
		if p, err := ParsePromise(text); err != nil || p.String() != want {
			t.Errorf("%q: %q, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "x p99", "x p98 < 5ms", "x p99 < -5ms", "x loss < 2", "x share small", "[ p99 < 5ms"} {
		if _, err := ParsePromise(text); !errors.Is(err, ErrPromise) {
			t.Errorf("%q: %v", text, err)
		}
	}
	p, _ := ParsePromise("10.2.0.0/16 p50 < 50ms")
	for name, want := range map[string]bool{"10.2.3.0/24": true, "10.2.3.4": true, "10.3.0.0/24": false, "10.0.0.0/8": false, "eth0": false} {
		if p.Covers(Subject{Prefix, name}, "eth0") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	p99, _ := ParsePromise("10.2.0.0/16 p99 < 50ms")
	if got := NewStreams(p99).Window("fridge", []Measure{delayed(60e6)}, 0, 1)[0]; got.Broken == nil {
		t.Error("a median above what is promised of the 99th percentile breaks no promise")
	}
	s := NewStreams(p)
	for n := range 3 {
		begin, end := window(n)
		got := s.Window("fridge", []Measure{delayed(60e6)}, begin, end)[0]
		if got.Active != (n > 0) || got.Broken == nil || got.Expected.Source != FromPromise {
			t.Errorf("window %d: %+v", n, got)
		}
	}
}

// A finding is read back from JSON as it was written, and its sentence names what, where, how much, since when and what next.
func TestForm(t *testing.T) {
	f := Finding{ID: "a", State: Begins, Kind: SlowNetwork, Severity: Warning, Subject: Subject{Prefix, "10.2.0.0/16"}, Interface: "eth0", Since: unix2000 + 3*3600e9 + 12*60e9, Windows: 2,
		Value: Estimate{420e6, 380e6, 470e6, report.Nanosecond}, Expected: Expected{Estimate{38e6, 35e6, 42e6, report.Nanosecond}, FromBaseline}, What: "median delay from SYN to SYN-ACK",
		Because: "SYN-ACKs are late", Next: "mtr", Evidence: []string{"fridge.groups.p50_ns"}, Harm: 11}
	want := "Slow network at 10.2.0.0/16: median delay from SYN to SYN-ACK: 420 ms (380 .. 470), usually 38.0 ms (up to 42.0 ms); since 2000-01-01 03:12:00 UTC; SYN-ACKs are late. Next: mtr"
	if got := f.Sentence(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var g Finding
	if err := json.Unmarshal(text, &g); err != nil || !reflect.DeepEqual(f, g) {
		t.Errorf("%+v, %v", g, err)
	}
	if err := json.Unmarshal([]byte(`{"kind":"nonsense","severity":"info"}`), &g); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%v", err)
	}
	for _, k := range Kinds() {
		if headlines[k] == "" {
			t.Errorf("%s has no headline", k)
		}
	}
	if len(Kinds()) != len(headlines) {
		t.Errorf("%d kinds are listed, %d have headlines", len(Kinds()), len(headlines))
	}
}

// A share of the traffic that must triple to matter begins with its second window where both are far above all that was, however widely that scattered: thirteen
// hundredths and one lie in the past of a network whose small parts are sometimes listed by themselves.
func TestShareBeyondAll(t *testing.T) {
	for name, c := range map[string]struct {
		value float64
		want  int // windows; 0: never
	}{"far above": {.4, 2}, "above twice the largest only": {.28, 2}, "within reach": {.2, 0}} {
		s := NewStreams()
		begun := 0
		for n := range int64(16) {
			m := delayed(0)
			m.Symptom, m.Ratio, m.Trials, m.Factor, m.Delta = PrefixShare, false, 0, 3, .1
			v := []float64{.01, .13, .05, .01, .1, .02, .08, .03}[n%8]
			if n >= 8 {
				v = c.value
			}
			m.Value = Estimate{Value: v, Low: v * .95, High: v * 1.05, Unit: m.Value.Unit}
			if r := s.Window("hhh", []Measure{m}, n*10e9, (n+1)*10e9)[0]; r.Active && begun == 0 {
				begun = int(n) - 7
			}
		}
		if begun != c.want {
			t.Errorf("%s: begins after %d windows, want %d", name, begun, c.want)
		}
	}
}

// A process that stood still for half a window is seen in that one window; one that is a little late needs several.
func TestStalled(t *testing.T) {
	for name, c := range map[string]struct {
		length int64 // of the eleventh window, ns
		want   bool
	}{"stalled": {16e9, true}, "late": {14e9, false}, "in time": {10e9, false}} {
		s, at := NewStreams(), int64(0)
		for n := range 11 {
			length := int64(10e9)
			if n == 10 {
				length = c.length
			}
			l := report.Line{Algorithm: "lean", Window: report.Window{Start: at, End: at + length}, Packets: report.Packets{Seen: 1000}}
			at += length
			for _, r := range s.Window("lean", Windowed(l), l.Window.Start, l.Window.End) {
				if r.Symptom == Late && r.Active != (c.want && n == 10) {
					t.Errorf("%s, window %d: active %v", name, n, r.Active)
				}
			}
		}
	}
}

// Median and scatter are those that sorting gives.
func TestUsual(t *testing.T) {
	middle := func(list []float64) float64 {
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 2000 {
		n, ratio := 1+r.IntN(40), trial%2 == 0
		values, list := make([]float32, n), make([]float64, n)
		for i := range values {
			values[i] = float32(1 + r.IntN(30))
			if list[i] = float64(values[i]); ratio {
				list[i] = math.Log(list[i])
			}
		}
		median := middle(list)
		for i := range list {
			list[i] = math.Abs(list[i] - median)
		}
		few, u := float64(n), usual(values, ratio)
		want := Usual{Median: median, Scatter: 1.4826 * middle(list) * (1 + 2/few) * math.Sqrt(1+1.57/few), Most: float64(slices.Max(values)), Windows: n}
		if ratio {
			want.Median = math.Exp(median)
		}
		if math.Abs(u.Median-want.Median) > 1e-9*want.Median || math.Abs(u.Scatter-want.Scatter) > 1e-9 || u.Most != want.Most || u.Windows != n {
			t.Fatalf("%v, ratio %v: %+v, want %+v", values, ratio, u, want)
		}
	}
}

// The place of a loss is the interface or the capture, whatever their names contain.
func TestHeadlineNamesThePlace(t *testing.T) {
	for _, c := range []struct {
		name    string
		capture bool
		want    string
	}{
		{"eth0.100", false, "Packets from 10.2.0.0/16 are lost before they reach eth0.100"},
		{"a%s.pcap", true, "Packets from 10.2.0.0/16 are lost before they reach the place of the capture a%s.pcap"},
	} {
		f := Finding{Kind: LossBefore, Subject: Subject{Prefix, "10.2.0.0/16"}, Interface: c.name, Capture: c.capture}
		if got := f.Headline(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A host is named as what it is to the finding.
func TestHeadlineOfAHost(t *testing.T) {
	host, network := Subject{Type: Host, Name: "10.1.1.1"}, Subject{Type: Prefix, Name: "10.1.0.0/16"}
	for want, f := range map[string]Finding{"Slow server 10.1.1.1": {Kind: SlowServer, Subject: host}, "One host fills the queue: 10.1.1.1": {Kind: UnfairUser, Subject: host}} {
		if got := f.Headline(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, kind := range []Kind{Scan, SlowNetwork, SlowServer, UnfairUser} {
			other := Finding{Kind: kind, Subject: network}
			if kind == Scan {
				other.Subject = host
			}
			if other.Headline() == want || strings.HasPrefix(other.Headline(), "One host fills") {
				t.Errorf("%s at %s is %q", kind, other.Subject.Name, other.Headline())
			}
		}
	}
}
