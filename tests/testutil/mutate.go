package testutil

import (
	"math/rand/v2"
	"strings"
)

// MutateText damages the text of a file somewhere: for tests of programs that read one while it runs.
func MutateText(rng *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
	words := []string{"-1", "0", "1e99", "[]", "{}", "null", "*a", "&a", "true", "10.0.0.0/33", "99999999999999999999", "\t", ":", "-", "'", "\x00", "Gbit", "name", "slices"}
	word := words[rng.IntN(len(words))]
	switch rng.IntN(6) {
	case 0: // another value
		if key, _, ok := strings.Cut(lines[i], ":"); ok {
			lines[i] = key + ": " + word
		}
	case 1:
		lines[i], lines[j] = lines[j], lines[i]
	case 2:
		lines[i] = ""
	case 3:
		lines[i] += "\n" + lines[j]
	case 4: // a word within
		at := rng.IntN(len(lines[i]) + 1)
		lines[i] = lines[i][:at] + word + lines[i][at:]
	default:
		whole := strings.Join(lines, "\n")
		return whole[:rng.IntN(len(whole))]
	}
	return strings.Join(lines, "\n")
}
