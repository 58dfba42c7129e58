package report

import (
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Hosts says whose windows a line is made of, where it is of many.
type Hosts struct {
	Known, Merged, Missing int // hosts that are expected, that are in it, and that are not
	MissingNames           []string
	Windows                int // of hosts
	Skewed                 int // ... that were off by more than a hundredth of their length
	Cut                    int // ... that were shorter than the others
	Unmeasured             int // ... of hosts whose clocks nobody has measured yet
	// Vantage says why a packet counts once: "declared once" or "declared sets".
	Vantage string
	// FlowsShared are named by several hosts; of FlowsTwice several have counted about the same, as hosts on one path do.
	FlowsShared, FlowsTwice int
	TwiceNames              []string // hosts of these
}

func (h *Hosts) object() *ordered.Object {
	o := ordered.New()
	o.Set("known", h.Known)
	o.Set("merged", h.Merged)
	o.Set("missing", h.Missing)
	o.Set("missing_names", orEmpty(h.MissingNames))
	o.Set("windows", h.Windows)
	o.Set("windows_skewed", h.Skewed)
	o.Set("windows_cut", h.Cut)
	o.Set("windows_unmeasured", h.Unmeasured)
	o.Set("vantage", h.Vantage)
	o.Set("flows_shared", h.FlowsShared)
	o.Set("flows_twice", h.FlowsTwice)
	o.Set("twice_names", orEmpty(h.TwiceNames))
	return o
}

// text is what a table says of hosts.
func (h *Hosts) text() string {
	text := fmt.Sprintf("%d of %d", h.Merged, h.Known)
	if h.Missing > 0 {
		text += "; missing " + typeset.Printable(strings.Join(h.MissingNames, ", "))
	}
	for _, part := range []struct {
		n    int
		what string
	}{{h.Skewed, "off in time"}, {h.Cut, "cut"}, {h.Unmeasured, "of clocks that nobody has measured"}} {
		if part.n > 0 {
			text += fmt.Sprintf("; %d windows %s", part.n, part.what)
		}
	}
	if h.FlowsTwice > 0 {
		text += fmt.Sprintf("; %d flows count twice, perhaps: seen alike by %s", h.FlowsTwice, typeset.Printable(strings.Join(h.TwiceNames, ", ")))
	}
	return text
}
