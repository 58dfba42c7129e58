package reorder

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo/p4text"
)

// The generated parts of the twin p4/reorder. One source has all three methods, chosen when it is compiled, with two ways; a part
// that reorder.method does not use gets the size of the other one. The twin's sizes are powers of two.
const (
	twinWays  = 2  // ways in the twin
	twinBits6 = 32 // bits of IPv6 prefixes in the twin
)

// P4 implements algo.Twin.
func (c *config) P4() (map[string]string, error) {
	if c.bits6 != twinBits6 {
		return nil, c.values.NoForm("prefix6", "32: a digest names a prefix by one word")
	}
	if c.ways > 0 && c.ways != twinWays {
		return nil, c.values.NoForm("ways", "2")
	}
	way, array := c.wayBuckets, c.array
	if way == 0 {
		way = array
	}
	if array == 0 {
		array = way
	}
	for _, n := range []int{way, array} {
		if n&(n-1) != 0 || n < 2 {
			return nil, c.values.NoForm("buckets", fmt.Sprintf("powers of two, not %d in a way and %d in the array", way, array))
		}
	}
	return map[string]string{"params": twinParams(c, way, array), "tables": twinTables(c)}, nil
}

// twinParams are sizes in entries of both banks, widths of indices, and thresholds.
func twinParams(c *config, way, array int) string {
	text := p4text.New("params", "reorder")
	line := text.Line
	line("#ifndef REORDER_METHOD\n#define REORDER_METHOD 2 /* 0 sampling, 1 precision, 2 hybrid */\n#endif")
	line("#ifndef REORDER_DEFINITION\n#define REORDER_DEFINITION %d\n#endif", c.definition)
	for _, part := range []struct {
		name string
		n    int
	}{{"way", way}, {"array", array}} {
		slot := bits.Len(uint(part.n - 1))
		line("#define REORDER_%s %d", strings.ToUpper(part.name), 2*part.n)
		line("#define REORDER_%s_LOW %d", strings.ToUpper(part.name), 32-slot)
		line("typedef bit<%d> %s_index_t;", slot+1, part.name)
	}
	line("#define REORDER_MASK %#x", ^uint32(0)<<(32-c.bits4))
	line("#define REORDER_STALE %d /* ticks */", c.stale)
	all := 0
	if c.all {
		all = 1
	}
	line("#define REORDER_ALL %d /* 1: records without reordering are reported, too */", all)
	return text.String()
}

func twinTables(c *config) string {
	return p4text.Head("tables", "reorder") + fmt.Sprintf(twinPayload, strings.Join(payloadEntries(), "\n")) +
		fmt.Sprintf(twinAdmission, strings.Join(admissionEntries(), "\n")) +
		fmt.Sprintf(twinExpiry, strings.Join(expiryEntries(c), "\n"), len(expiryEntries(c))+4)
}

// payloadEntries subtract the length of both headers (IPv6's length field excludes its own header); a SYN takes the number before
// its payload.
func payloadEntries() (list []string) {
	for words := 5; words <= 15; words++ {
		less := 1<<16 - 4*words
		list = append(list, fmt.Sprintf("            (true, false, 4w%d, 0 &&& 2): plain4(%d);", words, less-20),
			fmt.Sprintf("            (true, false, 4w%d, 2 &&& 2): after_syn4(%d);", words, less-20),
			fmt.Sprintf("            (false, true, 4w%d, 0 &&& 2): plain6(%d);", words, less),
			fmt.Sprintf("            (false, true, 4w%d, 2 &&& 2): after_syn6(%d);", words, less))
	}
	return list
}

// admissionEntries: a record of 2^k packets is replaced by one of as many, one of more than that and less than 2^(k+1) by one of 2^(k+1). A coin that is
// too large for the first entry of a size is too large for the second one, too.
func admissionEntries() (list []string) {
	entry := func(size, mask uint32, y int) {
		list = append(list, fmt.Sprintf("            (32w%#x &&& 32w%#x, 32w0 &&& 32w%#x): admit(%#x);", size, mask, uint32(1)<<y-1, uint32(1)<<y))
	}
	for k := range 31 {
		entry(1<<k, ^uint32(0), k)
		if k > 0 {
			entry(1<<k, ^uint32(0)<<k, k+1)
		}
	}
	return list
}

// cover lists the prefixes of 24 bits that make up 0 to limit: value and mask.
func cover(limit uint32) (list [][2]uint32) {
	const whole = 1<<24 - 1
	for bit := range 25 {
		if end := limit + 1; end>>bit&1 != 0 {
			list = append(list, [2]uint32{end &^ (2<<bit - 1) & whole, ^uint32(1<<bit-1) & whole})
		}
	}
	return list
}

// expiryEntries keep a record with n <= C and o < R; any other record has expired. A flow's own record is restarted when its counter
// is near its maximum.
func expiryEntries(c *config) (list []string) {
	for _, n := range cover(c.most) {
		for _, o := range cover(c.enough - 1) {
			list = append(list, fmt.Sprintf("            (ROLE_FIRST, 0, FATE_REFUSED, %#x &&& %#x, %#x &&& %#x): keep();", n[0], n[1], o[0], o[1]))
		}
	}
	return append(list, "            (ROLE_FIRST, 0, FATE_REFUSED, _, _): seize();",
		"            (ROLE_FIRST, _, FATE_OWN, REORDER_FULL &&& REORDER_FULL, _): seize();",
		"            (ROLE_FIRST, _, FATE_OWN_STALE, REORDER_FULL &&& REORDER_FULL, _): seize();")
}

const twinPayload = `/* Where a segment's payload begins, and how long it is: less is 2^16 minus the bytes of both headers. */
control ReorderPayload(in headers_t hdr, out bit<16> payload, out bit<32> first) {
    action none() {
        payload = 0;
        first = 0;
    }

    action plain4(bit<16> less) {
        payload = hdr.ipv4.total + less;
        first = hdr.tcp.seq;
    }

    action after_syn4(bit<16> less) {
        payload = hdr.ipv4.total + less;
        first = hdr.tcp.seq + 1;
    }

    action plain6(bit<16> less) {
        payload = hdr.ipv6.payload + less;
        first = hdr.tcp.seq;
    }

    action after_syn6(bit<16> less) {
        payload = hdr.ipv6.payload + less;
        first = hdr.tcp.seq + 1;
    }

    table lengths {
        key = {
            hdr.ipv4.isValid() : ternary;
            hdr.ipv6.isValid() : ternary;
            hdr.tcp.words : ternary;
            hdr.tcp.flags : ternary;
        }
        actions = {
            none;
            plain4;
            after_syn4;
            plain6;
            after_syn6;
        }
        const entries = {
%s
        }
        const default_action = none();
        size = 64;
    }

    apply {
        lengths.apply();
    }
}

`

const twinAdmission = `/* A record of this size is taken with probability 2^-y, 2^y being the smallest power of two that is not below the size. */
control ReorderAdmission(in bit<32> least, in bit<32> coin, inout bit<32> value) {
    action admit(bit<32> power) {
        value = power;
    }

    action refuse() {}

    table admission {
        key = {
            least : ternary;
            coin : ternary;
        }
        actions = {
            admit;
            refuse;
        }
        const entries = {
%s
        }
        const default_action = refuse();
        size = 64;
    }

    apply {
        admission.apply();
    }
}
`

const twinExpiry = `
/* Has another flow's record been watched long enough, n > C or o >= R? Then the packet takes its bucket by a second pass; and its
 * own, when its count is near its end. */
control ReorderExpiry(in role_t role, in bit<8> closed, in fate_t fate, in bit<32> n, in bit<32> o, inout bit<8> asks) {
    action seize() {
        asks = ROLE_SEIZE;
    }

    action keep() {}

    table expiry {
        key = {
            role : ternary;
            closed : ternary;
            fate : ternary;
            n : ternary;
            o : ternary;
        }
        actions = {
            seize;
            keep;
        }
        const entries = {
%s
        }
        const default_action = keep();
        size = %d;
    }

    apply {
        expiry.apply();
    }
}
`
