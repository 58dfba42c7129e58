package report

import (
	"fmt"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Hosts describes the hosts whose windows a merged line consists of.
type Hosts struct {
	Known, Merged, Missing int // hosts expected, included, and missing
	MissingNames           []string
	Windows                int // windows of hosts that were merged
	Skewed                 int // ... that were shifted by more than a hundredth of their length
	Cut                    int // ... that were cut short
	Unmeasured             int // ... of hosts whose clock offset is not yet measured
	// Vantage is the reason why each packet counts once: "declared once" or "declared sets".
	Vantage string
	// FlowsShared counts flows that several hosts report; FlowsTwice those with similar counts at several hosts, as on hosts
	// along one path.
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

// text is the line about hosts in a table.
func (h *Hosts) text() string {
	text := fmt.Sprintf("%d of %d", h.Merged, h.Known)
	if h.Missing > 0 {
		text += "; missing " + typeset.Printable(strings.Join(h.MissingNames, ", "))
	}
	for _, part := range []struct {
		n    int
		what string
	}{{h.Skewed, "off in time"}, {h.Cut, "cut"}, {h.Unmeasured, "with unmeasured clocks"}} {
		if part.n > 0 {
			text += fmt.Sprintf("; %d windows %s", part.n, part.what)
		}
	}
	if h.FlowsTwice > 0 {
		text += fmt.Sprintf("; %d flows may be counted twice: similar counts at %s", h.FlowsTwice, typeset.Printable(strings.Join(h.TwiceNames, ", ")))
	}
	return text
}
