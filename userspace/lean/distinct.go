package lean

import (
	"math"

	"github.com/xdpmon/xdpmon/userspace/lean/expect"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
)

// distinctRegisters are the registers of one list entry: DISTINCT_REGISTERS of bpf/lean/distinct.h.
const distinctRegisters = 64

// distinctError is HyperLogLog's relative standard error with so many registers (Flajolet et al. 2007: 1.04 / sqrt(m)).
var distinctError = 1.04 / math.Sqrt(distinctRegisters)

// distinctLayout: at 40 kB, half for the sketch that finds the elephants, half for a list of 128 of them.
func distinctLayout(scale float64) layout {
	list := power(128 * scale)
	return layout{columns: power(1024 * scale), filter: 1, widths: retransWidths, tables: map[string]int{
		"lean_ret_list": list, "lean_ret_rank": distinctRegisters * list, "lean_twin": twins}}
}

// decodeKeyed reads Algorithm 4's list; ok is false when the sketch holds the counts. A flow's value is its packets less its
// distinct packets. The noise is the mean error of the listed flows.
func (r *repetitions) decodeKeyed(array func(name string) []uint64, places []place, _ counts) (d sketch.Decoded, ok bool) {
	if !r.distinct {
		return d, false
	}
	list, ranks := array("lean_ret_list"), array("lean_ret_rank")
	d.Values = make([]float64, len(places))
	var sum float64
	for k, p := range places {
		entry := int(uint32(p.Rows)) & (len(list) - 1)
		if list[entry]>>32 != p.Rows>>32 {
			continue
		}
		n := float64(uint32(list[entry]))
		different := expect.Different(ranks[entry*distinctRegisters:][:distinctRegisters], p.Rows>>40&0xff)
		d.Values[k] = max(0, n-different)
		sum += distinctError * different
	}
	d.Plain, d.Noise = d.Values, sum/float64(max(1, len(places)))/expect.MedianError
	return d, true
}

// keyedArrays implements keyed.
func (r *repetitions) keyedArrays() []string {
	if r.distinct {
		return []string{"lean_ret_list", "lean_ret_rank"}
	}
	return nil
}
