package beaucoup

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// The generated parts of the twin p4/beaucoup. What p4/beaucoup/beaucoup.p4 relies on:
//
// params.p4
//
//	BEAUCOUP_ENTRIES, beaucoup_slot_t  collectors, and the index type
//	BEAUCOUP_TICK, BEAUCOUP_HORIZON    2^tick ns; the longest that a collector can have left, in ticks
//
// tables.p4
//
//	control BeaucoupCoupons(hdr, q, stamp, coin, out query, out coupon, out drawn)  one hash and one ternary table an
//	    attribute, then the tie rules
//	control BeaucoupQueries(hdr, q, query, out key, out before, out window, out asked)  the fields of a query's key
//	control BeaucoupOnehot, BeaucoupOnes, BeaucoupLeft, BeaucoupComplete  a coupon's bit; how many bits a byte has; whether none is missing
// The entries of the tables of coupons and queries are the initial ones. They can be replaced on a running switch: rules.go.

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	p, err := c.program()
	if err != nil {
		return nil, err
	}
	if err := p.CheckP4(); err != nil {
		return nil, err
	}
	return map[string]string{"params": c.p4Params(p), "tables": p4text.Head("tables", "beaucoup") + p.TablesP4()}, nil
}

func (c *config) p4Params(p *compile.Program) string {
	var b strings.Builder
	b.WriteString(p4text.Head("params", "beaucoup"))
	fmt.Fprintf(&b, "#define BEAUCOUP_ENTRIES %d\n#define BEAUCOUP_TICK %d\n#define BEAUCOUP_HORIZON 32w%d\n", c.entries, compile.Tick, p.Horizon())
	fmt.Fprintf(&b, "typedef bit<%d> beaucoup_slot_t;\n", bits.Len(uint(c.entries-1)))
	return b.String()
}
