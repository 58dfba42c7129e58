// Package ahab registers the twin of AHAB.
package ahab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	bpf "github.com/xdpmon/xdpmon/bpf/ahab"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/ahab"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "ahab", Algorithm: "ahab",
		Forms:  []twin.Form{{}, {Name: "slices", Generated: true, Set: map[string]string{"columns": "64", "flows": "64", "config": some}}},
		Filter: ahab.FilterStepOf,
		Fill: []twin.Fill{
			{Kind: twin.FillRules, Object: "xdpmon p4 rules ahab", What: "who belongs to which slice and what a user is, quotients, time constants of the filters; what a slice may (Egress.leaving.slices): again every 10 ms, " +
				"divided by max-min of what ahab_offered and ahab_dropped count as arrived and dropped"},
			{Kind: twin.FillTable, Optional: true, Object: "Ingress.ahab.lease", What: "the default action, again every 10 ms: the epoch (bits 20 to 51 of the switch's clock in ns) until which limits hold; when it has passed nothing is dropped"},
		},
		Window:   &twin.Flip{Table: "leaving.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Prepare:  prepare,
		Enforces: true,
		Counts: []twin.Count{{Table: "leaving.steps", Actions: []string{"rise", "fall", "rest"}, Host: "ahab_counts",
			Index: int(bpf.AhabAhabCounterAHAB_EPOCHS)}},
		Also: []twin.Count{{Table: "leaving.steps", Actions: []string{"rise", "fall", "rest"}, Host: "ahab_counts",
			Index: int(bpf.AhabAhabCounterAHAB_WRITTEN)}},
		Registers: true,
		Emits:     headers,
		Remember:  remembered,
		Uncounted: []string{"unlimited", "stray", "rate_error", "rate_error_p99", "users", "users_above", "users_unseen", "samples", "slices.users_above",
			"slices.fairness", "slices.fairness_error"},
		Sampled:     []string{"members.members4", "members.members6", "users.words", "shares_low.shares", "shares_mid.shares", "shares_high.shares", "quotients.quotients"},
		Unreachable: unreachable,
		Drive:       drive,
		Host:        host,
		Same:        same,
		Differences: []twin.Difference{twin.Echoes,
			{Name: "epochs turn with the time stamps: sums are as old as can be", Max: 10, Wraps: true, Turn: &twin.Turn{Registers: []string{"ahab_epochs"}, Every: 1 << 48, As: epochs + 1}},
		},
	})
}

// Slices of one VLAN each, whose users are distinguished by so many bits of an address: of IPv6 some that end in each of its words.
const (
	prefixes    = 32
	firstPrefix = 1001 // VLAN
)

// byPrefix are these slices.
func byPrefix() string {
	var b strings.Builder
	for n := range prefixes {
		fmt.Fprintf(&b, `,{"name":"prefix%d","weight":%d,"user":%q,"prefix4":%d,"prefix6":%d,"match":{"vlans":[%d]}}`, n, min(1000, 1<<(n%11)), []string{"source", "destination"}[n%2], 1+n,
			1+n*4, firstPrefix+n)
	}
	return b.String()
}

// some slices, by source and by VLAN, with users of all kinds and weights.
var some = func() string {
	var vlans []string
	for n := range 300 {
		vlans = append(vlans, fmt.Sprint(n))
	}
	return `{"capacity":"100Gbit","room":63,"slices":[` +
		`{"name":"one","weight":1,"user":"source","prefix4":24,"match":{"sources":["1.0.0.0/8"]},"users":[{"prefix":"1.0.1.0/24","weight":2},{"prefix":"1.0.2.0/24","weight":5},{"prefix":"1.1.0.0/16","weight":8},{"prefix":"1.2.0.0/16","weight":500}]},` +
		`{"name":"two","weight":3,"match":{"sources":["51.0.0.0/8","198.51.100.0/24"]}},` +
		`{"name":"three","weight":20,"user":"destination","prefix4":16,"prefix6":40,"match":{"sources":["101.0.0.0/8","2001:200::/24"]},"users":[{"prefix":"51.0.0.0/16","weight":64}]},` +
		`{"name":"six","weight":90,"user":"source","prefix6":120,"match":{"sources":["2001:300::/24"]}},` +
		`{"name":"tagged","match":{"vlans":[` + strings.Join(vlans, ",") + `]}},` +
		`{"name":"all","weight":1000,"match":{"sources":["151.0.0.0/8","2001::/16"]}}` + byPrefix() + `]}`
}()

// prepare writes what `xdpmon p4 rules ahab` prints.
func prepare(sw *run.Switch, v algo.Values) error {
	rules, err := ahab.TwinRules(v)
	if err != nil {
		return err
	}
	for _, e := range rules.Entries {
		_, name, _ := strings.Cut(e.Table, ".")
		table := sw.Table(name)
		if table == nil {
			return fmt.Errorf("there is no table %s", name)
		}
		if e.Match == nil {
			err = table.SetDefault(e.Action, e.Args...)
		} else {
			match := make([]run.Match, len(e.Match))
			for i, m := range e.Match {
				match[i] = run.Match{Value: m.Value, Mask: m.Mask}
			}
			err = table.Add(match, e.Action, e.Args...)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range sw.Filters {
		f.Step = ahab.FilterStep(v)
	}
	return nil
}

// epochs of a switch: 48 bits of ns in epochs of 2^20 ns.
const epochs = 1<<28 - 1

// host writes what the twin has of a word: of a filter its sum, of a countdown what is left, of a count the lower half, of an epoch 28 bits.
func host(register string, word uint64) uint64 {
	if register == "ahab_epochs" {
		return word & epochs
	}
	return word & 0xffffffff
}

// same takes out what a test writes that no epoch has.
func same(register string, word uint64) uint64 {
	if register == "ahab_epochs" && word == epochs+1 {
		return 0
	}
	return word
}

// unreachable: no slice here has so large a share, nor its users such weights.
var unreachable = func() (rows []string) {
	used := []int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1} // shifts: of a slice's norm, less the logarithm of a user's weight
	for shift := -13; shift <= 12; shift++ {
		action := fmt.Sprintf("action ahab.scales.up_%02d", shift)
		if shift < 0 {
			action = fmt.Sprintf("action ahab.scales.down_%02d", -shift)
		}
		if !slices.Contains(used, shift) {
			rows = append(rows, action, fmt.Sprintf("ahab.scales.scales [{%d ", 16+shift))
		}
	}
	return append(rows, "action ahab.scales.none")
}()

// drive brings limits, rates and sums of every size, and ages of sums, to the tables that look at a number's highest bit: drawn again before each
// burst, so that they decide about some of its packets and about the next limit.
func drive(d twin.Driver, _ twin.Form) error {
	const columns, flows, rounds = 64, 64, 208
	if len(d.Read("ahab_row0")) > columns {
		return nil
	}
	r := rand.New(rand.NewPCG(6, 16))
	for n := range rounds {
		rate := sized(r, 6+n%26)
		if n%26 == 25 {
			rate = 1<<32 - 1
		}
		for i := range columns {
			for _, row := range []string{"ahab_row0", "ahab_row1", "ahab_row2"} {
				if err := d.Write(row, i, rate); err != nil {
					return err
				}
			}
		}
		for slice := 1; slice <= 6; slice++ {
			limit := max(16, min(uint64(float64(rate)*(.05+r.Float64())), 1<<30))
			for register, v := range map[string]uint64{"ahab_limit": limit, "ahab_low": sized(r, r.IntN(20)), "ahab_mid": sized(r, n%31), "ahab_high": sized(r, r.IntN(31)), "ahab_over": sized(r, r.IntN(20))} {
				if err := d.Write(register, slice, v); err != nil {
					return err
				}
			}
		}
		for i := range flows {
			if err := d.Write("ahab_countdown", i, []uint64{0, 50, 154, 1500}[r.IntN(4)]); err != nil { // 154: as many as one of the segments has
				return err
			}
		}
		at := d.Now() + []int64{300_000, 1_100_000, 2_200_000, 4_400_000, 9_000_000, 20_000_000}[r.IntN(6)]
		var err error
		if n%8 == 0 { // in the same epoch: limits are as they were written
			err = d.Lengths(netip.AddrFrom4([4]byte{151, 0, 0, 9}), netip.AddrFrom16([16]byte{0x20, 1, 3, 15: 9}))
		} else {
			err = errors.Join(d.Send(burst(at, n)...), d.Send(anywhere(r, d.Now(), n)...))
		}
		if err = errors.Join(err, d.Compare()); n == rounds/2 {
			err = errors.Join(err, d.End())
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(unlimited(d), leases(d))
}

// unlimited: nothing is written of what a slice may. Nobody is limited, and its limit is the highest one.
func unlimited(d twin.Driver) error {
	const slice = 6
	var was bpf.AhabAhabSlice
	match := []run.Match{{Value: slice, Mask: 1<<16 - 1}}
	var row *run.Row
	err := d.Control(func(set *maps.Set) error {
		a, err := set.Array("ahab_slices")
		if err == nil {
			err = a.Map().Lookup(uint32(slice), &was)
		}
		if err != nil {
			return err
		}
		open := was
		open.Capacity, open.Budget, open.Spacing, open.Ceiling = 0, 0, 0, full
		return a.Map().Put(uint32(slice), &open)
	}, func(sw *run.Switch) error {
		t := sw.Table("leaving.slices")
		for _, r := range t.Rows {
			if r.Match[0].Value == slice {
				row = r
			}
		}
		return t.Remove(match)
	})
	for n := range 12 {
		at := d.Now() + 600_000
		err = errors.Join(err, tighten(d), d.Send(burst(at, 2*n)...), d.Compare())
	}
	return errors.Join(err, d.Control(func(set *maps.Set) error {
		a, err := set.Array("ahab_slices")
		if err != nil {
			return err
		}
		return a.Map().Put(uint32(slice), &was)
	}, func(sw *run.Switch) error { return sw.Table("leaving.slices").Add(match, row.Action, row.Args...) }))
}

// full is the highest limit.
const full = 1 << 30

// tighten all limits, and let everybody send far more.
func tighten(d twin.Driver) error {
	for slice := 1; slice <= 6; slice++ {
		if err := d.Write("ahab_limit", slice, 64); err != nil {
			return err
		}
	}
	for _, row := range []string{"ahab_row0", "ahab_row1", "ahab_row2"} {
		for i := range d.Read(row) {
			if err := d.Write(row, i, 1<<20); err != nil {
				return err
			}
		}
	}
	return nil
}

// anywhere are packets of users distinguished by prefixes of every length, with addresses drawn bit by bit, and one of no slice.
func anywhere(r *rand.Rand, at int64, n int) []packet.Packet {
	address := func(six bool) netip.Addr {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], r.Uint64()&^(7<<61)|1<<61) // 2000::/3
		binary.BigEndian.PutUint64(b[8:], r.Uint64())
		if six {
			return netip.AddrFrom16(b)
		}
		return netip.AddrFrom4([4]byte{byte(2 + r.IntN(40)), b[1], b[2], b[3]})
	}
	var all []packet.Packet
	for i := range 5 {
		p := packet.Packet{Time: at + int64(i+1)*20_000, Valid: packet.IP | packet.Ports | packet.UDP | packet.VLAN, Proto: 17, Segs: 1, Payload: 300, SrcPort: 9, DstPort: 10,
			VLAN: uint16(firstPrefix + (5*n+i)%prefixes), Src: address(n%4 != 0), Dst: address(n%4 != 0)}
		if i == 4 {
			p.VLAN = 4000
		}
		all = append(all, p)
	}
	return all
}

// sized is a number of so many bits and one.
func sized(r *rand.Rand, bits int) uint64 { return min(1<<bits+r.Uint64N(1<<bits), 1<<32-1) }

// leases that end in the epoch before some packets, with them or later; nothing is dropped then.
func leases(d twin.Driver) error {
	for n := range 24 {
		at := d.Now() + 1_100_000
		if err := tighten(d); err != nil {
			return err
		}
		until := uint64(at)>>20 + uint64(n%4) - 1
		err := errors.Join(d.Control(holds(int64(until+1)<<20-1, until)), d.Send(burst(at, n)...), d.Compare())
		if err != nil {
			return err
		}
	}
	return d.Control(holds(math.MaxInt64, 1<<30))
}

// holds lets limits hold until a time in ns, on a switch to the end of an epoch.
func holds(ns int64, epoch uint64) (host func(set *maps.Set) error, sw func(sw *run.Switch) error) {
	host = func(set *maps.Set) error {
		a, err := set.Array("ahab_lease")
		if err != nil {
			return err
		}
		return a.Map().Put(uint32(0), &bpf.AhabAhabLeaseT{Until: uint64(ns)})
	}
	return host, func(sw *run.Switch) error { return sw.Table("ahab.lease").SetDefault("hold", epoch) }
}

// burst is some packets of every slice, TCP with and without data and UDP, the first of which begin an epoch.
func burst(at int64, n int) (all []packet.Packet) {
	for i := range 24 {
		p := packet.Packet{Time: at + int64(i)*50_000*int64(1+n%3), Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.ACK, Payload: uint32(100 * (i / 3 % 4)),
			SrcPort: uint16(1000 + i), DstPort: 80, Src: netip.AddrFrom4([4]byte{byte(1 + 50*(i%4)), byte(i % 3), byte(i % 4), 9}), Dst: netip.AddrFrom4([4]byte{51, byte(i % 2), 3, 4})}
		if i%5 == 0 {
			p.Valid, p.Proto = packet.IP|packet.Ports|packet.UDP, 17
		}
		if n%2 == 1 && i%2 == 0 {
			p.Src, p.Dst = netip.AddrFrom16([16]byte{0x20, 1, byte(2 + i/2%2), 5: byte(i), 9: byte(i), 15: byte(i)}), netip.AddrFrom16([16]byte{0x20, 1, 9, 4: byte(n), 9: byte(i), 15: byte(i)})
		}
		if i == 11 {
			p.Valid, p.VLAN = p.Valid|packet.VLAN, 7
		}
		all = append(all, p)
	}
	return all
}
