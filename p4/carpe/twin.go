// Package carpe registers the twin of Carpe's data plane.
package carpe

import (
	"encoding/binary"
	"errors"
	"net/netip"

	bpf "github.com/xdpmon/xdpmon/bpf/carpe"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/carpe"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "carpe", Algorithm: "carpe",
		Forms: []twin.Form{
			{}, {Name: "small", Generated: true, Set: map[string]string{"entries": "128", "threshold": "640", "observers": "4", "s": "1/4"}},
		},
		Coins: twin.HighBits,
		Fill:  []twin.Fill{{Kind: twin.FillTable, Object: "Ingress.carpe.groups", What: "parameters of groups, as set by the coordinator; those of unknown groups are in the default action"}},
		Counts: []twin.Count{
			count(bpf.CarpeCarpeCounterCARPE_FULL, "report", "kept_quiet"),
			count(bpf.CarpeCarpeCounterCARPE_REPORTED, "report"),
			count(bpf.CarpeCarpeCounterCARPE_COLLIDED, "collided"),
			count(bpf.CarpeCarpeCounterCARPE_PACKETS, "report", "kept_quiet", "collided", "other"),
		},
		Also: []twin.Count{
			count(bpf.CarpeCarpeCounterCARPE_UNITS, "report", "kept_quiet", "collided", "other"),
		},
		Unreachable: []string{"action carpe.d0.skip"}, // no packet misses
		Messages:    coordinated,
		Drive:       again,
		Reports:     &twin.Reports{Ring: "carpe_events", Host: event, Twin: digests, Record: records},
		Registers:   true,
		Freed:       []string{"carpe_d0", "carpe_d1", "carpe_heard"},
		Uncounted:   []string{"asked", "asked_unknown", "bundles_begun", "expired", "groups_told", "held_most", "no_key"}, // entries are freed only at the end of windows
		Differences: []twin.Difference{twin.Echoes},
	})
}

func count(counter bpf.CarpeCarpeCounter, actions ...string) twin.Count {
	return twin.Count{Table: "carpe.bundles", Actions: actions, Host: "carpe_counts", Index: int(counter)}
}

// Bits of a digest: report_t.what.
const (
	bundle = 1
	group  = 2
)

// event is a record of the host: its kind, the flow, and the bundle.
func event(record []byte) []uint64 {
	var e bpf.CarpeCarpeEvent
	if _, err := binary.Decode(record, binary.NativeEndian, &e); err != nil {
		return nil
	}
	return []uint64{uint64(e.Kind), e.Key[0], e.Key[1], uint64(e.Units)}
}

// digests of a packet: a host sends two records in a row.
func digests(r *run.Result, _ uint64) (all [][]uint64) {
	for _, d := range r.Digests {
		flow, tag := d.Value("src")<<32|d.Value("dst"), d.Value("ports")<<32|d.Value("protocol")<<24|1
		if d.Value("what")&bundle != 0 {
			all = append(all, []uint64{bundle, flow, tag, d.Value("units")})
		}
		if d.Value("what")&group != 0 {
			all = append(all, []uint64{group, flow, tag, 0})
		}
		if d.Value("what") == 0 {
			all = append(all, []uint64{0, flow, tag, 0})
		}
	}
	return all
}

// records of a digest as struct carpe_event.
func records(v algo.Values, d *run.Digest, _ int) (all [][]byte) {
	for _, w := range digests(&run.Result{Digests: []run.Digest{*d}}, 0) {
		e := bpf.CarpeCarpeEvent{Kind: uint32(w[0]), Units: uint32(w[3]), Family: 4}
		e.Key[0], e.Key[1] = w[1], w[2]
		if e.Kind == bundle {
			e.Observers, _ = carpe.TwinObservers(v, e.Units) // the parameters are those of a switch that was built
		}
		b, _ := binary.Append(nil, binary.NativeEndian, &e) // only numbers: it cannot fail
		all = append(all, b)
	}
	return all
}

// coordinated: in a test, some groups have more observers than others.
func coordinated(v algo.Values) (messages [][]byte, write func(sw *run.Switch) error, err error) {
	observers := map[carpe.Group]uint32{}
	for n := range 12 {
		near := func(n int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(1 + n%4*50), byte(n / 4)}), 16)
		}
		for m := range 12 {
			if n := (7*n + m) % 8; n < 4 { // the others are unknown
				observers[carpe.Group{Src: near(n), Dst: near(m)}] = 1 << n
			}
		}
	}
	messages = carpe.Updates(observers)
	var groups []carpe.TwinGroup
	for _, m := range messages {
		some, err := carpe.TwinGroups(v, m)
		if err != nil {
			return nil, nil, err
		}
		groups = append(groups, some...)
	}
	return messages, func(sw *run.Switch) error { return fillGroups(sw, groups) }, nil
}

func fillGroups(sw *run.Switch, groups []carpe.TwinGroup) error {
	for _, g := range groups {
		match := make([]run.Match, 2)
		for i, p := range []netip.Prefix{g.Src, g.Dst} {
			b := p.Addr().As4()
			match[i] = run.Match{Value: uint64(binary.BigEndian.Uint32(b[:])), Mask: 1<<32 - 1<<(32-p.Bits())}
		}
		if err := sw.Table("carpe.groups").Add(match, "parameters", uint64(g.Begin), uint64(g.Chance), uint64(g.Tau)); err != nil {
			return err
		}
	}
	return nil
}

// again fills bundles whose group has been removed: only the bundle records that its parameters were requested.
func again(d twin.Driver, _ twin.Form) error {
	const flows, floor = 64, 1 << 24
	now := d.Now() + 1e9
	send := func() error {
		for n := range flows {
			now += 1000
			p := packet.Packet{Time: now, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, Segs: 1, SrcPort: uint16(n), DstPort: 53,
				Src: netip.AddrFrom4([4]byte{1, byte(n % 3), 9, 9}), Dst: netip.AddrFrom4([4]byte{byte(1 + n%4*50), byte(n / 4 % 3), 8, 8})}
			if err := d.Send(p); err != nil {
				return err
			}
		}
		return nil
	}
	empty := func(uint64) uint64 { return 0 }
	nearlyFull := func(v uint64) uint64 {
		if v&(1<<32-1) > floor {
			v = v>>32<<32 | floor + 1
		}
		return v
	}
	for range 4 {
		err := errors.Join(rewrite(d, "carpe_d0", empty), rewrite(d, "carpe_d1", empty))
		for range 8 { // most are in the table then
			err = errors.Join(err, send())
		}
		err = errors.Join(err, rewrite(d, "carpe_d0", nearlyFull), rewrite(d, "carpe_d1", nearlyFull), rewrite(d, "carpe_heard", empty), send(), d.Compare())
		if err != nil {
			return err
		}
	}
	return nil
}

// rewrite changes the elements of a register that are not 0.
func rewrite(d twin.Driver, register string, as func(v uint64) uint64) error {
	for i, v := range d.Read(register) {
		if v == 0 {
			continue
		}
		if err := d.Write(register, i, as(v)); err != nil {
			return err
		}
	}
	return nil
}
