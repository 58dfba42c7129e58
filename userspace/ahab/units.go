package ahab

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// lengthShift: lengths are charged in 2^-4 bytes.
const lengthShift = 4

// full is AHAB_FULL: no limit is higher.
const full = 1 << 30

// Units turn rates into what filters and limits hold: bytes that have arrived in tau, in 2^-4 of them, times the slice's normalisation.
type Units struct {
	Tau  time.Duration
	Norm uint32 // of the slice, in 2^-16
}

// Limit is a rate in bytes a second as a limit.
func (u Units) Limit(rate float64) float64 {
	return rate * u.Tau.Seconds() * (1 << lengthShift) * float64(u.Norm) / (1 << 16)
}

// Rate is a limit, or a filter's value, in bytes a second.
func (u Units) Rate(limit uint64) float64 { return float64(limit) / u.Limit(1) }

// tickShift is the length of a filter's tick as a power of two of nanoseconds: 64 of them make tau, or somewhat more.
func tickShift(tau time.Duration) uint32 {
	return uint32(math.Ceil(math.Log2(float64(tau) / 64)))
}

// decayTable is what is left of a filter's sum after i ticks, in 2^-16.
func decayTable(tau time.Duration) []uint64 {
	table := make([]uint64, 1024)
	for i := range table {
		table[i] = uint64(math.Floor(65536*math.Exp(-float64(i)*math.Pow(2, float64(tickShift(tau)))/float64(tau)) + 0.5))
	}
	return table
}

// The division table of section 6.5.1, with six bits.
const (
	ratioBits = 6
	ratioSize = 1 << ratioBits
	ratioOne  = 1 << 15
)

// ratioTables are shares of packets, and of steps: a quarter of what is below 1/4, where most of it is noise.
func ratioTables() (shares, moves []uint64) {
	shares, moves = make([]uint64, ratioSize*ratioSize), make([]uint64, ratioSize*ratioSize)
	for n := range ratioSize {
		for d := range ratioSize {
			share := uint64(math.Round(min(1, (float64(n)+.5)/(float64(d)+.5)) * ratioOne))
			shares[n*ratioSize+d], moves[n*ratioSize+d] = share, share
			if share < ratioOne/4 {
				moves[n*ratioSize+d] = share / 4
			}
		}
	}
	return shares, moves
}

var rateUnits = []struct {
	suffix string
	factor float64
}{{"Tbit", 1e12}, {"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// parseRate reads bits a second (100Mbit, 2.5Gbit) and returns bytes a second.
func parseRate(text string) (uint64, error) {
	if text == "0" {
		return 0, nil
	}
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n*u.factor >= 8000) || n*u.factor > 8e11 {
			break
		}
		return uint64(n * u.factor / 8), nil
	}
	return 0, fmt.Errorf("%q is no rate: allowed are 0 and 8kbit to 800Gbit, like 100Mbit", text)
}
