package report

import (
	"math"
	"testing"
)

func TestHuman(t *testing.T) {
	for _, c := range []struct {
		value any
		unit  Unit
		want  string
	}{
		{int64(0), Nanosecond, "0 ns"},
		{int64(64), Nanosecond, "64 ns"},
		{12.34, Nanosecond, "12.3 ns"},
		{999_499, Nanosecond, "999 us"},
		{999_700.0, Nanosecond, "1.00 ms"},
		{12_345_678.0, Nanosecond, "12.3 ms"},
		{int64(-1500), Nanosecond, "-1.50 us"},
		{123.4e9, Nanosecond, "123 s"},
		{3723e9, Nanosecond, "3,723 s"},
		{uint64(1023), Bytes, "1023 B"},
		{int64(1_258_291), Bytes, "1.20 MiB"},
		{0.034, Ratio, "3.4 %"},
		{0.48611, Ratio, "48.6 %"},
		{0.00123, Ratio, "0.12 %"},
		{0.0000123, Ratio, "0.0012 %"},
		{1.0, Ratio, "100.0 %"},
		{0.0, Ratio, "0 %"},
		{12.0, Ratio, "1,200 %"},
		{1_234_567.0, PerSecond, "1.23 M/s"},
		{950, PerSecond, "950 /s"},
		{uint64(1234567), Count, "1,234,567"},
		{12344.6, Count, "12,345"},
		{-1234567.0, PacketUnit, "-1,234,567"},
		{0.036712, None, "0.0367"},
		{int64(8080), None, "8080"},
		{math.NaN(), Nanosecond, "-"},
		{math.Inf(1), Bytes, "-"},
		{nil, Count, "-"},
		{true, None, "yes"},
		{"a\u202eb\u2066", None, `a\u202eb\u2066`},
		{"a\x1b[31mb\n", None, `a\x1b[31mb\x0a`},
	} {
		if n, ok := c.value.(int); ok {
			c.value = int64(n)
		}
		if got := Human(c.value, c.unit); got != c.want {
			t.Errorf("Human(%v, %q) = %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestIntervalKeepsTheUnitOfTheValue(t *testing.T) {
	for _, c := range []struct {
		value, low, high any
		unit             Unit
		promise          Promise
		want             string
	}{
		{12.3e6, 12.0e6, 12.6e6, Nanosecond, Interval, "12.3 ms (12.0 .. 12.6)"},
		{1.01e9, 0.99e9, 1.03e9, Nanosecond, Interval, "1.01 s (0.990 .. 1.03)"},
		{0.034, 0.03, 0.04, Ratio, Interval, "3.4 % (3.0 .. 4.0)"},
		{12.3e6, 3.0e6, 40.1e6, Nanosecond, Bound, "12.3 ms (at least 3.00, at most 40.1)"},
		{uint64(10), nil, nil, Count, Interval, "10"},
		{10.0, math.NaN(), 3.0, Count, Interval, "10"},
	} {
		if got := Enclosed(c.value, c.low, c.high, c.unit, c.promise); got != c.want {
			t.Errorf("Enclosed(%v) = %q, want %q", c.value, got, c.want)
		}
	}
}

func TestSigned(t *testing.T) {
	for f, want := range map[float64]string{0.012: "+1.2 %", -0.034: "-3.4 %", 0: "0 %"} {
		if got := signed(f); got != want {
			t.Errorf("signed(%v) = %q, want %q", f, got, want)
		}
	}
}
