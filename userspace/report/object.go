package report

import (
	"math"
	"sort"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
)

// sortedObject converts a map to an object in alphabetical order, with numbers converted by plain.
func sortedObject[V any](m map[string]V) *ordered.Object {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	o := ordered.New()
	for _, k := range keys {
		o.Set(k, plain(m[k], None))
	}
	return o
}

// plain converts a value for JSON: integers for counted units (ns, bytes, packets), null for NaN and infinities, everything else
// unchanged.
func plain(value any, unit Unit) any {
	f, ok := value.(float64)
	if !ok {
		return value
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	if unit.Whole() && math.Abs(f) < math.MaxInt64 {
		return int64(math.Round(f))
	}
	return f
}

// Whole reports whether values of the unit are integers in JSON.
func (u Unit) Whole() bool {
	return u == Count || u == Bytes || u == Nanosecond || u.Counted() != ""
}
