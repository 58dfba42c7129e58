package eval

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// difference of a page and what a second run says.
type difference struct {
	where    string
	old, new string
	share    float64 // of the old number; NaN for words
	allowed  bool
}

func (d difference) String() string {
	if math.IsNaN(d.share) {
		return fmt.Sprintf("%s: %q, now %q", d.where, d.old, d.new)
	}
	return fmt.Sprintf("%s: %s, now %s (%+.2g %%)", d.where, d.old, d.new, 100*d.share)
}

// spreads is how many of the spreads of both numbers, printed as x ± s, a difference may have.
const spreads = 3

var number = regexp.MustCompile(`[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?`)

// compare finds the numbers that differ in two texts, and the lines that differ in more.
func compare(old, text string) (list []difference) {
	a, b := strings.Split(old, "\n"), strings.Split(text, "\n")
	var columns []string
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) {
			return append(list, difference{where: "length", old: fmt.Sprintf("%d lines", len(a)), new: fmt.Sprintf("%d lines", len(b)), share: math.NaN()})
		}
		if !strings.HasPrefix(a[i], "|") {
			columns = nil
		} else if columns == nil {
			columns = strings.Split(a[i], "|")
		}
		list = append(list, compareLine(a[i], b[i], columns)...)
	}
	return list
}

func compareLine(a, b string, columns []string) (list []difference) {
	if a == b {
		return nil
	}
	if number.ReplaceAllString(a, "#") != number.ReplaceAllString(b, "#") {
		return []difference{{where: "line", old: a, new: b, share: math.NaN()}}
	}
	from, to := number.FindAllStringIndex(a, -1), number.FindAllStringIndex(b, -1)
	for n := range from {
		x, y := a[from[n][0]:from[n][1]], b[to[n][0]:to[n][1]]
		if x == y {
			continue
		}
		one, _ := strconv.ParseFloat(x, 64)
		other, _ := strconv.ParseFloat(y, 64)
		d := difference{where: whereIs(a, from[n][0], columns), old: x, new: y, share: (other - one) / math.Abs(one)}
		s, known := spreadAfter(a, from[n][1])
		r, _ := spreadAfter(b, to[n][1])
		d.allowed = known && math.Abs(one-other) <= spreads*math.Hypot(s, r) || isSpread(a, from[n][0])
		list = append(list, d)
	}
	return list
}

var (
	spreadNext   = regexp.MustCompile(`^ ?(?:±|\+-) ?(\d+(?:\.\d+)?)`)
	spreadBefore = regexp.MustCompile(`(?:±|\+-) ?$`)
)

// spreadAfter is the spread of a number that ends at a place.
func spreadAfter(line string, end int) (float64, bool) {
	m := spreadNext.FindStringSubmatch(line[end:])
	if m == nil {
		return 0, false
	}
	s, err := strconv.ParseFloat(m[1], 64)
	return s, err == nil
}

func isSpread(line string, start int) bool { return spreadBefore.MatchString(line[:start]) }

// whereIs is the row and the column of a place in a table's line; of another line its beginning.
func whereIs(line string, at int, columns []string) string {
	cells := strings.Split(line, "|")
	if n := strings.Count(line[:at], "|"); columns != nil && n < len(columns) && len(cells) > 1 {
		return strings.TrimSpace(cells[1]) + ", " + strings.TrimSpace(columns[n])
	}
	return line[:min(len(line), 60)]
}
