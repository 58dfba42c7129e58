package expect

import "math"

// Different is HyperLogLog's estimate of distinct packets from the registers that carry the owner's tag, with linear counting
// below 2.5 packets a register.
func Different(registers []uint64, tag uint64) float64 {
	const alpha = 0.709 // of 64 registers
	m, sum, empty := float64(len(registers)), 0.0, 0.0
	for _, r := range registers {
		rank := r & 0xff
		if r>>8 != tag {
			rank = 0
		}
		if rank == 0 {
			empty++
		}
		sum += math.Exp2(-float64(rank))
	}
	e := alpha * m * m / sum
	if e <= 2.5*m && empty > 0 {
		return m * math.Log(m/empty)
	}
	return e
}
