// Package lean registers the twin of the lean statistics, in every choice of them.
package lean

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/p4"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "lean", Algorithm: "lean",
		Forms:       forms(),
		Unreachable: unreachable,
		Fill:        []twin.Fill{{Kind: twin.FillRules, Optional: true, Object: "xdpmon p4 rules lean", What: "limits of reports (without one every flow with an event is reported), the share of segments that latency samples, and the weights of their delays"}},
		Window:      &twin.Flip{Table: "lean.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Start:       marked,
		Coins:       twin.HighBits, // of the bit that an event is added to
		Drive:       copies,
		Fixed:       map[string]uint64{"lean_shift": 63}, // every event reaches the limit, as on a switch without one
		Reports:     &twin.Reports{Ring: "lean_reports", Host: host, Twin: digests, Record: records},
		Registers:   true,
		Uncounted:   uncounted(),
		Differences: []twin.Difference{
			{Name: "IPv6", Max: 250, Ignored: true, Packet: func(p *packet.Packet) bool { return p.Has(packet.IP) && p.Src.Is6() }},
			{Name: "first fragments", Max: 1, Packet: func(p *packet.Packet) bool { return p.Has(packet.Fragment | packet.TCP) }},
			{Name: "a delay in which the 17 bits of time wrap", Max: 12, Turn: &twin.Turn{Registers: []string{"lean_lat_fr"}, Every: 1 << 33}},
		},
	})
}

// host converts a struct lean_report. A switch reports latency with the ACK's addresses, whose flow is the other direction.
func host(record []byte) []uint64 {
	const addresses = 16 + 16 // after the places of the flow
	r := record[16:]
	src, dst := uint64(binary.BigEndian.Uint32(r[12:])), uint64(binary.BigEndian.Uint32(r[28:]))
	sport, dport := uint64(binary.NativeEndian.Uint16(r[addresses:])), uint64(binary.NativeEndian.Uint16(r[addresses+2:]))
	stat := r[addresses+6]
	if stat == 0 {
		src, dst, sport, dport = dst, src, dport, sport
	}
	return []uint64{src, dst, sport<<16 | dport, uint64(stat), uint64(r[addresses+4])}
}

// digests are one a packet, with a bit for each statistic.
func digests(r *run.Result, _ uint64) (all [][]uint64) {
	for _, d := range r.Digests {
		for stat := range statistics {
			if d.Value("stats")>>stat&1 != 0 {
				all = append(all, []uint64{d.Value("src"), d.Value("dst"), d.Value("ports"), uint64(stat), d.Value("protocol")})
			}
		}
	}
	return all
}

// records of a digest as struct lean_report: the control plane hashes the flow's places. The count of the event that reached the
// limit is not known.
func records(_ algo.Values, d *run.Digest, bank int) (all [][]byte) {
	for _, w := range digests(&run.Result{Digests: []run.Digest{*d}}, 0) {
		src, dst, ports := uint32(w[0]), uint32(w[1]), uint32(w[2])
		if w[3] == 0 {
			src, dst, ports = dst, src, bits.RotateLeft32(ports, 16)
		}
		flow := binary.BigEndian.AppendUint32(append(mapped(src), mapped(dst)...), ports)
		var b []byte
		for _, row := range rows {
			b = binary.NativeEndian.AppendUint32(b, crc32.Checksum(append(flow[:36:36], make([]byte, 8)...), row))
		}
		b = append(b, flow[:32]...)
		b = binary.NativeEndian.AppendUint16(b, uint16(ports>>16))
		b = binary.NativeEndian.AppendUint16(b, uint16(ports))
		b = append(b, byte(w[4]), 4, byte(w[3]), byte(bank))
		all = append(all, binary.NativeEndian.AppendUint64(b, 0))
	}
	return all
}

// mapped is an IPv4 address in 16 bytes.
func mapped(a uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, a)
}

// rows of the sketch: the polynomials of p4/include/hashing.p4.
var rows = func() (tables [4]*crc32.Table) {
	for row, polynomial := range []uint32{0x04C11DB7, 0x1EDC6F41, 0x741B8CD7, 0x814141AB} {
		tables[row] = crc32.MakeTable(bits.Reverse32(polynomial))
	}
	return tables
}()

// uncounted: the twin has sketches and reports, but no counters, from which errors other than the sketch's noise are
// derived.
func uncounted() []string {
	all := []string{"packets", "aggregates", "latency.standard_error", "latency_sampling_probability", "out_of_order", "retransmitted"}
	for name, more := range map[string][]string{
		"latency": {"examined", "sampled", "repeated", "evicted", "acks", "stale"},
		"loss":    {"examined", "followed", "jumps", "gaps", "missing", "given_back", "not_followed"},
		"ooo":     {"examined", "compared", "behind", "copies", "not_watched"},
		"retrans": {"examined", "compared", "probes", "copies", "not_watched"},
	} {
		for _, what := range append(more, "events", "reports") {
			all = append(all, name+"_"+what)
		}
	}
	for _, bounded := range []string{"loss.lost", "ooo.out_of_order", "retrans.retransmitted"} {
		all = append(all, bounded+"_at_least", bounded+"_at_most")
	}
	slices.Sort(all)
	return all
}

// copies covers packets whose flow finds both ways taken by old records: many flows fill the ways, some more are refused,
// and are sent again as over a mirror, every millisecond.
func copies(d twin.Driver, _ twin.Form) error {
	begin := d.Now() + 1e10
	segment := func(at int64, kind byte, n int) packet.Packet {
		return packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1, TCPFlags: packet.ACK, Seq: uint32(n) << 20,
			Payload: 100, SrcPort: uint16(n), DstPort: 80, Src: netip.AddrFrom4([4]byte{70, kind, byte(n >> 8), byte(n)}), Dst: netip.AddrFrom4([4]byte{71, 0, 0, 1})}
	}
	for n := range 3000 {
		if err := d.Send(segment(begin+int64(n)*300, 0, n)); err != nil {
			return err
		}
	}
	for round := range int64(5) {
		for n := range 60 {
			if err := d.Send(segment(begin+(12+10*round)*1e5+int64(n)*300, 1, n)); err != nil {
				return err
			}
		}
	}
	for round := range int64(2) { // in the second one all records may be replaced
		if err := late(d, segment, 2+byte(round), 4e9*round); err != nil {
			return err
		}
	}
	return errors.Join(refusals(d, segment), limits(d))
}

// refusals are packets that resemble others: a reset, of which every third has FIN as well, that acknowledges what a delay waits for, ICMP whose identifiers leave gaps, segments
// that are repeated when their record has exactly the maximum age, one tick later, and with their acknowledgement; and acknowledgements at that age, and in the tick of the segment. No clock turns
// between them.
func refusals(d twin.Driver, segment func(at int64, kind byte, n int) packet.Packet) error {
	const tick, old, turn = 8192, 524288, 1 << 33 // ns, ticks, ns
	begin := (d.Now()/turn + 2) * turn
	var all []packet.Packet
	for n := range 400 {
		at := begin + int64(n)*3*tick
		data := segment(at, 5, n)
		reset := packet.Packet{Time: at + 40*tick, Valid: data.Valid, Proto: 6, Segs: 1, Src: data.Dst, Dst: data.Src, SrcPort: data.DstPort, DstPort: data.SrcPort,
			TCPFlags: packet.RST | packet.ACK, Ack: data.Seq + data.Payload}
		if n%3 == 0 {
			reset.TCPFlags |= packet.FIN
		}
		ack := reset
		ack.TCPFlags = packet.ACK
		ping := packet.Packet{Time: at + tick, Valid: packet.IP | packet.ICMP | packet.IPID, Proto: 1, ICMPType: 8, Segs: 1, Src: data.Src, Dst: data.Dst, IPID: uint16(7 * n)}
		all = append(all, data, reset, ping)
		switch n % 4 {
		case 0, 1:
			again := segment(at+(old+int64(n%2))*tick, 5, n)
			ack.Time = again.Time + 2*tick
			all = append(all, again)
		case 2:
			ack.Time = at + old*tick
		case 3:
			ack.Time = at + tick/2
		}
		all = append(all, ack)
	}
	slices.SortStableFunc(all, func(a, b packet.Packet) int { return cmp.Compare(a.Time, b.Time) })
	return errors.Join(d.Send(all...), d.Compare()) // before the next turn, which forgets what waits
}

// anyFlow is a packet of a flow of its own. Protocols have every bit of the field, 0 and 1.
func anyFlow(r *rand.Rand, at int64) packet.Packet {
	address := func() netip.Addr {
		return netip.AddrFrom4([4]byte{byte(1 + r.IntN(220)), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())})
	}
	p := packet.Packet{Time: at, Valid: packet.IP | packet.IPID, Proto: []uint8{6, 17, 50, 89, 132, 200}[r.IntN(6)], Segs: 1, Src: address(), Dst: address(), IPID: uint16(r.Uint32())}
	switch p.Proto {
	case 6:
		p.Valid |= packet.Ports | packet.TCP
	case 17:
		p.Valid |= packet.Ports | packet.UDP
	default:
		return p
	}
	p.SrcPort, p.DstPort = uint16(r.Uint32()), uint16(r.Uint32())
	return p
}

// gaps: so many packets are lost that each bit of a key, and of the hash behind it, is drawn several times as one and as none. Three packets prove that a flow numbers
// its packets; each of the next ones has a gap before it.
func gaps(d twin.Driver) error {
	const flows, proof, events = 600, 3, 5
	r, begin := rand.New(rand.NewPCG(30, 1)), d.Now()+1e9
	var all []packet.Packet
	for flow := range int64(flows) {
		p := anyFlow(r, begin+flow*10_000)
		for n := range proof + events {
			p.Time, p.IPID = p.Time+1000, p.IPID+1
			if n >= proof {
				p.IPID += uint16(1 + r.IntN(3))
			}
			all = append(all, p)
		}
	}
	return d.Send(all...)
}

// limits that matter: the control plane sets them in every row. A host's limits are a share of the sum of all flows, which is so large here that new
// packets do not change it.
func limits(d twin.Driver) error {
	for _, limit := range []int64{2, 9} {
		if err := errors.Join(d.Control(limited(limit)), d.Mix(3000), d.Compare()); err != nil {
			return err
		}
	}
	return d.Control(limited(1))
}

func limited(limit int64) (host func(set *maps.Set) error, sw func(sw *run.Switch) error) {
	const shift, none = 40, 63
	host = func(set *maps.Set) (err error) {
		for stat, name := range []string{"lat", "loss", "ooo", "ret"} {
			share, sum := uint32(shift), uint64(limit)<<shift
			if limit == 1 {
				share, sum = none, 0
			}
			sums, failed := set.Array("lean_" + name + "_sum")
			shares, failed2 := set.Array("lean_shift")
			if err = errors.Join(err, failed, failed2); err != nil {
				return err
			}
			for bank := range sums.Banks {
				err = errors.Join(err, sums.Write(bank, []uint64{sum}))
			}
			err = errors.Join(err, shares.Map().Put(uint32(stat), share))
		}
		return err
	}
	return host, func(sw *run.Switch) error {
		for _, p := range sw.Params {
			least := limit
			if strings.Contains(p.Name, ".ooo_") || strings.Contains(p.Name, ".ret_") {
				least-- // a row is compared before the event adds its 1
			}
			if strings.HasSuffix(p.Name, ".at_most") {
				least = -least
			}
			p.Value = uint64(uint32(least))
		}
		return nil
	}
}

// late sends late packets when a flow's maximum is just old enough, or just not, or its record has expired; with numbers in every
// quarter of their range, and as far apart as those of two connections.
func late(d twin.Driver, segment func(at int64, kind byte, n int) packet.Packet, kind byte, silence int64) error {
	const window = 11718 << 8 // ns
	begin := (d.Now()>>8+1<<20)<<8 + silence
	for n := range 240 {
		first := segment(begin+int64(n)*2e7, kind, n)
		first.Seq = uint32(n%4)<<30 + 50_000
		below := uint32(2000)
		switch n % 16 / 4 {
		case 1: // late across the wrap
			first.Seq, below = 1000, 3000
		case 2: // in order, across it
			first.Seq, below = 1<<32-500, 1<<32-1000
		case 3: // another connection
			below = []uint32{1 << 25, 1<<26 - 1, 1 << 26, 1<<30 - 1, 1 << 30, 1 << 31, 3 << 30}[n/16%7]
		}
		again := first
		again.Seq, again.Time = first.Seq-below, first.Time+window+[]int64{0, 256, -256, 1e7}[n/16%4]
		last := again
		last.Seq, last.Time = first.Seq+3000, again.Time+1000
		if err := d.Send(first, again); err != nil {
			return err
		}
		if n%16/4 == 3 && silence > 0 { // the current maximum remains
			continue
		}
		if err := d.Send(last); err != nil {
			return err
		}
	}
	return nil
}

// marked: some bits of the filters are set by other flows.
func marked(register string, _ int) uint64 {
	switch {
	case strings.HasSuffix(register, "_b_0"):
		return 0x55555555
	case strings.HasSuffix(register, "_b_1"):
		return 0x33333333
	}
	return 0
}

// unreachable: an ACK without data ends a delay, only data are out of order or repeated; and a record's maximum age.
var unreachable = func() (rows []string) {
	for mask := range 16 {
		if mask&1 != 0 && mask&12 != 0 {
			rows = append(rows, fmt.Sprintf("report [%x]", mask))
		}
	}
	for n := range uint64(32) {
		rows = append(rows, fmt.Sprintf("lat_values.values [{%d ", (32+n)<<14))
	}
	return rows
}()

var statistics = []string{"latency", "loss", "ooo", "retrans"}

// forms: bugs are planted in the last one.
func forms() (all []twin.Form) {
	all = append(all, twin.Form{Name: "every segment", Generated: true, Driven: true, Define: map[string]string{"LEAN_STATS": "15"},
		Set: map[string]string{"candidates": "65536", "p": "1"}})
	for _, name := range statistics {
		form := twin.Form{Name: "bits-" + name, Generated: true, Brief: true, Set: map[string]string{"keys": "bits", "stat": name}}
		if name == "loss" {
			form.Drive = gaps
		}
		all = append(all, form)
	}
	for _, define := range p4.Forms("lean") {
		var chosen []string
		for bit, name := range statistics {
			if mask, _ := strconv.Atoi(define["LEAN_STATS"]); mask>>bit&1 != 0 {
				chosen = append(chosen, name)
			}
		}
		all = append(all, twin.Form{
			Study:  len(chosen) == 2 || len(chosen) == 3,
			Name:   strings.Join(chosen, "-"),
			Define: define,
			Set:    map[string]string{"stat": strings.Join(chosen, ","), "candidates": "65536"},
		})
	}
	return all
}
