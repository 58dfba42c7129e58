package algo

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Values are the checked parameters of one algorithm: every declared key has a value.
type Values struct {
	algorithm string
	params    map[string]Param
	text      map[string]string
}

// NewValues checks set against the declared parameters and fills in the defaults. An error names the
// key, the offending value and what is allowed.
func NewValues(algorithm string, params []Param, set map[string]string) (Values, error) {
	v := Values{algorithm: algorithm, params: map[string]Param{}, text: map[string]string{}}
	for _, p := range params {
		v.params[p.Key] = p
		v.text[p.Key] = p.Default
	}
	for key, text := range set {
		p, ok := v.params[key]
		if !ok {
			return Values{}, fmt.Errorf("set %s.%s: no such parameter: %s has %s", algorithm, key, algorithm, strings.Join(v.keys(), ", "))
		}
		if err := p.check(text); err != nil {
			return Values{}, fmt.Errorf("set %s.%s=%s: %w", algorithm, key, text, err)
		}
		v.text[key] = text
	}
	return v, nil
}

func (v Values) keys() []string {
	keys := make([]string, 0, len(v.params))
	for k := range v.params {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// Text returns a parameter as it was written. Asking for a key that was not declared is a programming error.
func (v Values) Text(key string) string {
	text, ok := v.text[key]
	if !ok {
		panic("algo: " + v.algorithm + " declares no parameter " + key)
	}
	return text
}

// typed returns the text of a parameter that was declared with a type. Asking for another type is a programming error, which must not
// read as 0.
func (v Values) typed(key string, t Type) string {
	text, p := v.Text(key), v.params[key]
	if p.Type != t && !(t == Int && p.Type == Enum && integer(text)) {
		panic(fmt.Sprintf("algo: %s declares %s as type %v, not %v", v.algorithm, key, p.Type, t))
	}
	return text
}

func integer(text string) bool { _, err := strconv.ParseInt(text, 0, 64); return err == nil }

// Int returns an Int parameter, or an Enum's choice that is an integer (4 of auto, 4, 8). A parameter that was declared with another type panics, here
// and below.
func (v Values) Int(key string) int64 { n, _ := strconv.ParseInt(v.typed(key, Int), 0, 64); return n }

// Float returns a Float parameter; fractions (1/64) are numbers too.
func (v Values) Float(key string) float64 { f, _ := ParseFloat(v.typed(key, Float)); return f }

// Duration returns a Duration parameter.
func (v Values) Duration(key string) time.Duration {
	d, _ := time.ParseDuration(v.typed(key, Duration))
	return d
}

// auto is the value of a String parameter that is chosen from the others.
const auto = "auto"

// DurationOr returns a String parameter that is a duration from least to most, or auto: chosen.
func (v Values) DurationOr(key string, chosen, least, most time.Duration) (time.Duration, error) {
	text := v.typed(key, String)
	if text == auto {
		return chosen, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, v.Error(key, fmt.Sprintf("allowed are auto and durations from %v to %v", least, most))
	}
	return d, nil
}

// Bytes returns a Size parameter.
func (v Values) Bytes(key string) int64 { n, _ := ParseSize(v.typed(key, Size)); return n }

// Bool returns a Bool parameter.
func (v Values) Bool(key string) bool { b, _ := strconv.ParseBool(v.typed(key, Bool)); return b }

// Map returns all parameters for the report: numbers as numbers, the rest as text.
func (v Values) Map() map[string]any {
	m := make(map[string]any, len(v.text))
	for k, t := range v.text {
		switch v.params[k].Type {
		case Int:
			m[k] = v.Int(k)
		case Bool:
			m[k] = v.Bool(k)
		default:
			m[k] = t
		}
	}
	return m
}

// Error returns the error for a value that the algorithm rejects; allowed describes valid values.
func (v Values) Error(key, allowed string) error {
	return fmt.Errorf("set %s.%s=%s: %s", v.algorithm, key, v.Text(key), allowed)
}

// ParseFloat reads a number or a fraction of two numbers.
func ParseFloat(text string) (float64, error) {
	num, den, isFraction := strings.Cut(text, "/")
	a, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number or a fraction like 1/64", text)
	}
	if !isFraction {
		return a, nil
	}
	b, err := strconv.ParseFloat(strings.TrimSpace(den), 64)
	if err != nil || b == 0 {
		return 0, fmt.Errorf("%q is not a number or a fraction like 1/64", text)
	}
	return a / b, nil
}

// ParseSize reads bytes with an optional unit: 4096, 64KiB, 1MiB, 40kB.
func ParseSize(text string) (int64, error) {
	units := []struct {
		suffix string
		factor float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || f < 0 || math.IsInf(f, 0) {
			break
		}
		return int64(f * u.factor), nil
	}
	return 0, fmt.Errorf("%q is not a size like 64KiB or 1MiB", text)
}

func (p Param) check(text string) error {
	number, err := p.number(text)
	if err != nil {
		return err
	}
	for _, bound := range []struct {
		text string
		bad  func(limit float64) bool
	}{{p.Min, func(l float64) bool { return number < l }}, {p.Max, func(l float64) bool { return number > l }}} {
		if bound.text == "" {
			continue
		}
		limit, err := p.number(bound.text)
		if err != nil || bound.bad(limit) || math.IsNaN(number) {
			return fmt.Errorf("allowed are %s to %s", orAny(p.Min), orAny(p.Max))
		}
	}
	return nil
}

func orAny(bound string) string {
	if bound == "" {
		return "any"
	}
	return bound
}

// number checks the syntax of a value and returns the number that its bounds are compared with.
func (p Param) number(text string) (float64, error) {
	switch p.Type {
	case Int:
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not an integer", text)
		}
		return float64(n), nil
	case Float:
		return ParseFloat(text)
	case Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration like 10s or 3ms", text)
		}
		return float64(d), nil
	case Size:
		n, err := ParseSize(text)
		return float64(n), err
	case Bool:
		if _, err := strconv.ParseBool(text); err != nil {
			return 0, fmt.Errorf("%q is neither true nor false", text)
		}
	case Enum:
		if slices.Contains(p.Choices, text) {
			return 0, nil
		}
		return 0, fmt.Errorf("choose one of %s", strings.Join(p.Choices, ", "))
	}
	return 0, nil
}
