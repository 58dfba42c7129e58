package entries

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The sum of what an entry sets and the total length is where the payload of a packet with these headers ends.
func TestLengths(t *testing.T) {
	list := Lengths()
	if len(list) != 11 {
		t.Fatalf("%d entries", len(list))
	}
	for i, entry := range list {
		var words, plain, one uint32
		if _, err := fmt.Sscanf(strings.TrimSpace(entry), "(true, true, 4w%d): lengths(%d, %d);", &words, &plain, &one); err != nil {
			t.Fatal(err)
		}
		if words != uint32(5+i) || plain+20+4*words != 0 || one != plain+1 {
			t.Errorf("%s", entry)
		}
	}
}

// A segment's total length states its payload: none, one byte, or more.
func TestKinds(t *testing.T) {
	list := Kinds()
	kind := func(words, total int) string {
		for _, e := range list {
			if strings.HasPrefix(e, fmt.Sprintf("            (true, true, 4w%d, %d): ", words, total)) || strings.Contains(e, "4w") == false {
				_, action, _ := strings.Cut(e, "): ")
				return action
			}
		}
		return ""
	}
	for words := 5; words <= 15; words++ {
		for payload, want := range []string{"bare();", "probe();", "data();", "data();"} {
			if got := kind(words, 20+4*words+payload); got != want {
				t.Errorf("%d words and %d bytes: %s", words, payload, got)
			}
		}
	}
}

// Masks and steps are of each bit and each step.
func TestMasksAndSteps(t *testing.T) {
	masks := Masks()
	if len(masks) != 32 || strings.TrimSpace(masks[0]) != "0: set_mask(0x1);" || strings.TrimSpace(masks[31]) != "31: set_mask(0x80000000);" {
		t.Errorf("%q", masks)
	}
	if got := Steps(4); !slices.Equal(got, []string{"            (2, _): lost(1);", "            (3, _): lost(2);", "            (4, _): lost(3);"}) {
		t.Errorf("%q", got)
	}
}

// Every random word chooses the number that the bytecode's product has.
func TestRanges(t *testing.T) {
	for _, numbers := range []int{1, 3, 104, 120} {
		word := 0
		for n, entry := range Ranges(numbers) {
			var first, last, chosen int
			if _, err := fmt.Sscanf(strings.TrimSpace(entry), "%d .. %d: choose(%d);", &first, &last, &chosen); err != nil {
				t.Fatal(err)
			}
			if first != word || chosen != n || first*numbers>>16 != n || last*numbers>>16 != n {
				t.Errorf("of %d: %s", numbers, entry)
			}
			word = last + 1
		}
		if word != 1<<16 {
			t.Errorf("%d numbers end at %d", numbers, word)
		}
	}
}

// The entries of a number match those keys in which this bit is 1, and no others.
func TestOnes(t *testing.T) {
	const check, used = 104, 120
	type rule struct {
		number       int
		values, mask [6]uint32
	}
	var rules []rule
	for _, entry := range Ones(check, used) {
		r := rule{}
		inner, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(entry), "("), "): one();")
		for i, part := range strings.Split(inner, ", ") {
			var err error
			switch {
			case i == 0:
				_, err = fmt.Sscanf(part, "%d", &r.number)
			case part != "_":
				_, err = fmt.Sscanf(part, "0x%x &&& 0x%x", &r.values[i-1], &r.mask[i-1])
			}
			if err != nil {
				t.Fatalf("%s: %v", entry, err)
			}
		}
		rules = append(rules, r)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		key := [6]uint32{rng.Uint32(), rng.Uint32(), rng.Uint32() & 0xffff, rng.Uint32() & 0xffff, rng.Uint32() & 0xff, rng.Uint32() & 0xffff}
		var want []bool // bit by bit, the highest of each field first
		for field, width := range []int{32, 32, 16, 16, 8, used - check} {
			v := key[field]
			if field == 5 {
				v ^= key[4]
			}
			for bit := width - 1; bit >= 0; bit-- {
				want = append(want, v>>bit&1 == 1)
			}
		}
		for number, one := range want {
			got := slices.ContainsFunc(rules, func(r rule) bool {
				for i := range key {
					if key[i]&r.mask[i] != r.values[i] {
						return false
					}
				}
				return r.number == number
			})
			if got != one {
				t.Fatalf("bit %d of %x is %v", number, key, one)
			}
		}
	}
}

// The first entry that matches reports all statistics whose flow is new to one of their two arrays.
func TestReports(t *testing.T) {
	const stats = 3
	for mask := 1; mask < 1<<stats; mask++ {
		list := reported(stats, mask)
		for seen := range 1 << (2 * stats) { // two bits a statistic: 1 is a bit that was set
			want := 0
			for s := range stats {
				if mask>>s&1 == 1 && seen>>(2*s)&3 != 3 {
					want |= 1 << s
				}
			}
			got := 0
			for _, entry := range list {
				keys, action, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(entry), "("), "): report(")
				parts, at, matches := strings.Split(keys, ", "), 0, true
				for s := range stats {
					for which := range 2 {
						if mask>>s&1 == 1 {
							matches = matches && (parts[at] == "_" || seen>>(2*s+which)&1 == 0)
							at++
						}
					}
				}
				if at != len(parts) {
					t.Fatalf("%s: %d keys, want %d", entry, len(parts), at)
				}
				if matches {
					if _, err := fmt.Sscanf(action, "%d", &got); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			if got != want {
				t.Errorf("of %b with bits %b: %b is reported, want %b", mask, seen, got, want)
			}
		}
	}
	text := Reports(stats)
	if strings.Count(text, "\n#elif LEAN_STATS == ") != 6 || strings.Count(text, "#if LEAN_STATS == 1\n") != 1 || !strings.HasSuffix(text, "\n#endif\n\n") || strings.Count(text, "report(7)") != 1<<bits.OnesCount(7) {
		t.Errorf("%s", text)
	}
}
