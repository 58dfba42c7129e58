// Package verdict is the line in which the virtual machine of `make kernels` prints how a check ended, among whatever else
// is on its console.
package verdict

import (
	"encoding/json"
	"strings"
)

// Names of lines that are no check.
const (
	Kernel = "kernel" // the detail is the release
	End    = "end"    // all checks have run
)

const mark = "xdpmon-check "

// Line is the outcome of one check.
type Line struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Detail  string  `json:"detail"`  // what was seen, or the error
	Seconds float64 `json:"seconds"` // on the emulated machine
}

// String is the line as the console shows it.
func (l Line) String() string {
	text, err := json.Marshal(l)
	if err != nil {
		return mark + err.Error() // a Line has nothing that JSON lacks
	}
	return mark + string(text)
}

// Parse finds the lines in a console's output.
func Parse(console string) []Line {
	var lines []Line
	for text := range strings.SplitSeq(console, "\n") {
		_, found, ok := strings.Cut(text, mark)
		var line Line
		if ok && json.Unmarshal([]byte(strings.TrimSpace(found)), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}
