// Package nearest finds the name closest to a mistyped one.
package nearest

import (
	"slices"
	"strings"
)

// Of is the nearest of some names to what was typed; "" when none is near.
func Of(typed string, names []string) string {
	best, distance := "", 3
	for _, name := range slices.Sorted(slices.Values(names)) {
		d := edits(strings.ToLower(typed), strings.ToLower(name))
		if len(typed) > 1 && strings.HasPrefix(name, typed) {
			d = min(d, 1)
		}
		if d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	return best
}

// Hint is Of as the end of a sentence.
func Hint(typed string, names []string) string {
	best := Of(typed, names)
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits counts the characters to insert, delete or replace.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
