// Package entries makes the constant entries of tables in lean's P4 twin that no parameter changes.
package entries

import (
	"fmt"
	"math/bits"
	"strings"
)

// Lengths: a sequence number less the length of both headers, so that adding the IP total length gives the end of the payload.
func Lengths() (list []string) {
	for words := 5; words <= 15; words++ {
		less := 1<<32 - 20 - 4*words
		list = append(list, fmt.Sprintf("            (true, true, 4w%d): lengths(%d, %d);", words, less, less+1))
	}
	return list
}

// Kinds: segments without payload, with one byte, with more.
func Kinds() (list []string) {
	for words := 5; words <= 15; words++ {
		list = append(list, fmt.Sprintf("            (true, true, 4w%d, %d): bare();", words, 20+4*words),
			fmt.Sprintf("            (true, true, 4w%d, %d): probe();", words, 21+4*words))
	}
	return append(list, "            (true, true, _, _): data();")
}

// Masks are the bits of a word, one by one.
func Masks() (list []string) {
	for bit := range 32 {
		list = append(list, fmt.Sprintf("            %d: set_mask(%#x);", bit, uint32(1)<<bit))
	}
	return list
}

// Steps: a step of n identifiers, above one and below a jump, leaves out n - 1.
func Steps(small int) (list []string) {
	for step := 2; step <= small; step++ {
		list = append(list, fmt.Sprintf("            (%d, _): lost(%d);", step, step-1))
	}
	return list
}

// Ranges divide 16 random bits among numbers, as bpf/lean/bits.h does: their product with how many there are, without its lower 16 bits.
func Ranges(numbers int) (list []string) {
	const all = 1 << 16
	for n := range numbers {
		first, next := (n*all+numbers-1)/numbers, ((n+1)*all+numbers-1)/numbers
		list = append(list, fmt.Sprintf("            %d .. %d: choose(%d);", first, next-1, n))
	}
	return list
}

// Ones are the keys in which one bit, by its number, is 1: source, destination, ports, protocol, and from number check on a check, which has the protocol
// added to its low half without carry.
func Ones(check, used int) (list []string) {
	widths := []int{32, 32, 16, 16, 8, used - check}
	number := 0
	for field, width := range widths {
		for bit := width - 1; bit >= 0; bit-- {
			fields := []string{"_", "_", "_", "_", "_", "_"}
			value := func(field, bit int, v uint32) {
				fields[field] = fmt.Sprintf("%#x &&& %#x", v<<bit, uint32(1)<<bit)
			}
			entry := func() {
				list = append(list, fmt.Sprintf("            (%d, %s): one();", number, strings.Join(fields, ", ")))
			}
			value(field, bit, 1)
			if number >= check && bit < 8 {
				value(4, bit, 0)
				entry()
				value(field, bit, 0)
				value(4, bit, 1)
			}
			entry()
			number++
		}
	}
	return list
}

// Reports are macros: for every set of compiled statistics, the entries that select which of them are reported.
func Reports(stats int) string {
	var b strings.Builder
	b.WriteString("/* Of the statistics that are compiled: which are to be reported. */\n")
	for mask := 1; mask < 1<<stats; mask++ {
		fmt.Fprintf(&b, "#%s LEAN_STATS == %d\n#define LEAN_REPORTS \\\n%s\n", map[bool]string{true: "if", false: "elif"}[mask == 1],
			mask, strings.Join(reported(stats, mask), " \\\n"))
	}
	b.WriteString("#endif\n\n")
	return b.String()
}

// reported lists every subset of a mask's statistics whose flow is new to the Bloom filter (one of its two bits was 0), the
// larger subsets first.
func reported(stats, mask int) (list []string) {
	for size := stats; size > 0; size-- {
		for set := 1; set <= mask; set++ {
			if set&^mask == 0 && bits.OnesCount(uint(set)) == size {
				list = append(list, choices(stats, set, mask)...)
			}
		}
	}
	return list
}

// choices of a set: for each of its statistics either of the two arrays; the mask's other statistics are wildcards.
func choices(stats, set, mask int) (list []string) {
	for which := range 1 << stats {
		if which&^set != 0 {
			continue
		}
		var keys []string
		for s := range stats {
			pair := [2]string{"_", "_"}
			if set>>s&1 == 1 {
				pair[which>>s&1] = "0"
			}
			if mask>>s&1 == 1 {
				keys = append(keys, pair[:]...)
			}
		}
		list = append(list, fmt.Sprintf("    (%s): report(%d);", strings.Join(keys, ", "), set))
	}
	return list
}
