// Package reorder registers the twin of the reordering prefixes: three methods, three definitions.
package reorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/p4"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "reorder", Algorithm: "reorder",
		Forms:       forms(),
		Window:      &twin.Flip{Table: "reorder.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Coins:       lowBits,
		Start:       sizes,
		Drive:       renew,
		Unreachable: unlikely,
		Host:        untagged,
		Same:        untagged,
		Reports:     &twin.Reports{Ring: "reorder_reports", Host: host, Twin: digests, Record: records},
		Emits:       []twin.Emit{{Header: "second_pass_h", Want: second, View: seizes}},
		Native:      tagged,
		Registers:   true,
		Uncounted: []string{"watched", "watched_share", "out_of_order", "out_of_order_share", "repeated", "aggregates", "not_watched", "torn",
			"recirculation", "reports"},
		Counts: []twin.Count{
			{Table: "reorder.kinds", Actions: []string{"data", "begin_with_data"}, Host: "reorder_counts", Index: 0},
			{Table: "reorder.kinds", Actions: []string{"second"}, Host: "reorder_counts", Index: 7},
			{Host: "reorder_counts", Index: 7},
		},
		Differences: []twin.Difference{
			{Name: "first fragments", Max: 1, Packet: func(p *packet.Packet) bool { return p.Has(packet.Fragment | packet.TCP) }},
			{Name: "hybrid: an empty way holds the prefix of zeros", Max: 4, Packet: zeros},
			{Name: "late across the turn of sequence numbers", Max: 1, Follow: turning, Captures: true},
		},
	})
}

// forms: 1,024 records in each way and in the array.
func forms() (all []twin.Form) {
	methods := map[string][2]string{"0": {"sampling", "1024"}, "1": {"precision", "2048"}, "2": {"hybrid", "3072"}} // and their records in total
	for _, define := range p4.Forms("reorder") {
		method, definition := methods[define["REORDER_METHOD"]], define["REORDER_DEFINITION"]
		all = append(all, twin.Form{Name: method[0] + "-" + definition, Define: define,
			Set: map[string]string{"method": method[0], "definition": definition, "buckets": method[1]}})
	}
	return all
}

// sizes of every magnitude that is ever replaced, powers of two and one more, of records in the ways without a flow: they decide admission.
func sizes(register string, i int) uint64 {
	if (register == "reorder_id0" || register == "reorder_id1") && i%4 == 1 {
		return 1<<(i/8%14) + uint64(i/4%2)
	}
	return 0
}

// renew covers records whose count is near its maximum: flows have sent as much as a record can count, and continue.
func renew(d twin.Driver, form twin.Form) error {
	begin := d.Now() + 1e9
	send := func(round int) error {
		var all []packet.Packet
		for n := range 600 {
			all = append(all, packet.Packet{Time: begin + int64(round)*1e6 + int64(n)*500, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1,
				TCPFlags: packet.ACK, Seq: uint32(1000 + 2000*round), Payload: 100, SrcPort: uint16(n), DstPort: 443,
				Src: netip.AddrFrom4([4]byte{60, byte(n % 150), 0, 1}), Dst: netip.AddrFrom4([4]byte{88, 0, 0, 1})})
		}
		return d.Send(all...)
	}
	for round := range 8 {
		if err := send(round); err != nil {
			return err
		}
	}
	for _, register := range []string{"reorder_count0", "reorder_count1", "reorder_count_array"} {
		for i, v := range d.Read(register) {
			if v == 0 {
				continue
			}
			if err := d.Write(register, i, v|15<<20); err != nil {
				return err
			}
		}
	}
	return errors.Join(send(8), send(9), again(d), states(d, form.Define["REORDER_DEFINITION"] != "2"))
}

// again starts connections, with data in the first packet, of flows that are in the ways.
func again(d twin.Driver) error {
	begin := d.Now() + 1e6
	for round := range 12 {
		for n := range 40 {
			p := packet.Packet{Time: begin + int64(round)*1e6 + int64(n)*500, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1,
				TCPFlags: packet.ACK, Seq: uint32(1000 + 200*round), Payload: 100, SrcPort: 7, DstPort: 80,
				Src: netip.AddrFrom4([4]byte{61, byte(n), 0, 1}), Dst: netip.AddrFrom4([4]byte{88, 0, 0, 1})}
			if round%4 == 3 {
				p.TCPFlags, p.Seq = packet.SYN, uint32(4e9)-uint32(round)*1e6
			}
			if err := d.Send(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// states covers records of every age, count and number that matter, of the next packet's flow and of others, drawn again before some packets of
// each flow. Numbers more than half of the range apart are so across the wrap, where a switch detects nothing late; with the second definition that
// happens earlier.
func states(d twin.Driver, half bool) error {
	const flows, rounds = 160, 40
	r := rand.New(rand.NewPCG(7, 16))
	now := d.Now() + 1e9
	for round := range rounds {
		if round > 0 {
			if err := redraw(d, r, now+1<<16, round%9); err != nil {
				return err
			}
		}
		now = (now + 1<<18) >> 10 << 10
		for range flows {
			now += r.Int64N(200)
			n := r.IntN(flows)
			p := packet.Packet{Time: now, Valid: packet.IP | packet.Ports | packet.TCP | packet.IPID, Proto: 6, Segs: 1, TCPFlags: packet.ACK, Seq: someNumber - uint32(100*r.IntN(2)) + r.Uint32N(3) - 1,
				Payload: 100, SrcPort: uint16(n % 4), DstPort: 80, Src: netip.AddrFrom4([4]byte{62, byte(n / 4), 0, 1}), Dst: netip.AddrFrom4([4]byte{88, 0, 0, 1})}
			switch r.IntN(10) {
			case 0:
				p.TCPFlags = packet.SYN
			case 1:
				p.TCPFlags, p.Payload = packet.SYN, 0
			case 2, 3:
				if half {
					p.Seq = someNumber - 1<<31 + 1 + r.Uint32N(3) // up to half of the range back, and one more
				}
			}
			if err := d.Send(p); err != nil {
				return err
			}
		}
		if err := d.Compare(); err != nil {
			return err
		}
	}
	return nil
}

// someNumber of sequence.
const someNumber = 3 << 30

// redraw draws new contents for the records in use, at a time; sizes are 2^size and one more, so that both ways meet coins of as many bits.
func redraw(d twin.Driver, r *rand.Rand, now int64, size int) error {
	counts := []uint64{0, 1, 15, 16, 17, 31, 1000, 15<<20 - 1, 15 << 20, 15<<20 + 9}
	for _, part := range []string{"0", "1", "_array"} {
		ids, prefixes := d.Read("reorder_id"+part), d.Read("reorder_prefix"+part)
		numbers, all := d.Read("reorder_seq"+part), d.Read("reorder_count"+part)
		for i, id := range ids {
			if id>>32 == 0 {
				continue
			}
			signature, second := id>>32, uint64(1)<<size+uint64(r.IntN(2))
			if r.IntN(3) == 0 {
				signature = uint64(r.Uint32() | 1)
			}
			if part == "_array" {
				second = uint64(now>>10-int64([]int{0, 27, 28, 29, 30, 31, 40}[r.IntN(7)])) & (1<<32 - 1)
			}
			prefix := prefixes[i]
			if r.IntN(4) == 0 {
				prefix = prefixes[i]&^(1<<32-1) | 62<<24 | uint64(r.IntN(40))<<16
			}
			n := counts[r.IntN(len(counts))]
			numbers[i] = min(n, uint64(r.IntN(3)/2))<<32 | uint64(someNumber-1+r.Uint32N(4))
			count := signature>>25<<25 | all[i]&(1<<24) | n
			err := errors.Join(d.Write("reorder_id"+part, i, signature<<32|second), d.Write("reorder_prefix"+part, i, prefix),
				d.Write("reorder_seq"+part, i, numbers[i]), d.Write("reorder_count"+part, i, count))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// host converts a struct reorder_report to the twin's form: prefix, seven bits of the signature, whether it is IPv6, n, o.
func host(record []byte) []uint64 {
	prefix, number := binary.NativeEndian.Uint64(record), binary.NativeEndian.Uint32
	six := min(1, prefix>>32)
	return []uint64{prefix >> (16 * six), uint64(number(record[8:]) >> 25), six, uint64(number(record[12:])), uint64(number(record[16:]))}
}

// digests contain the array's record and the way's, of which one may be missing. Of a way's record the control plane uses what is
// above Rshare, as a host does by itself.
func digests(r *run.Result, _ uint64) (all [][]uint64) {
	const share = 655 // of 2^16: the default of reorder.Rshare
	for _, d := range r.Digests {
		wayN, wayO, n, o := d.Value("way_n")&counted, d.Value("way_o"), d.Value("n")&counted, d.Value("o")
		if wayO<<16 > wayN*share {
			all = append(all, recordOf(&d, "way_"))
		}
		if n > 0 && o > 0 {
			all = append(all, recordOf(&d, ""))
		}
		if (wayN == 0 || wayO == 0) && (n == 0 || o == 0) { // nothing to report, and a host sends none
			all = append(all, nil)
		}
	}
	return all
}

const counted = 1<<24 - 1

func recordOf(d *run.Digest, of string) []uint64 {
	n := d.Value(of + "n")
	return []uint64{d.Value(of + "prefix"), n >> 25, n >> 24 & 1, n & counted, d.Value(of + "o")}
}

// records of a digest as struct reorder_report. A switch reports only the upper seven bits of the signature.
func records(_ algo.Values, d *run.Digest, bank int) (all [][]byte) {
	for _, r := range digests(&run.Result{Digests: []run.Digest{*d}}, 0) {
		if r == nil {
			continue
		}
		prefix, signature, six, n, o := r[0], r[1]<<25, r[2], r[3], r[4]
		b := binary.NativeEndian.AppendUint64(nil, prefix<<(16*six))
		b = binary.NativeEndian.AppendUint64(b, signature|n<<32)
		all = append(all, binary.NativeEndian.AppendUint64(b, o|uint64(bank)<<32))
	}
	return all
}

// tagged adds to a word the tag by which a host detects torn records, and to a prefix its family.
func tagged(register string, word uint64, beside func(string) uint64) uint64 {
	parts := []string{"0", "1", "_array"}
	part := parts[slices.IndexFunc(parts, func(p string) bool { return strings.HasSuffix(register, p) })]
	id, count := beside("reorder_id"+part), beside("reorder_count"+part)
	signature := id >> 32
	switch register {
	case "reorder_prefix" + part:
		prefix := word & (1<<32 - 1)
		return prefix<<(16*(count>>24&1)) | signature&0xffff<<48
	case "reorder_seq" + part:
		return word&(1<<56-1) | signature&0xff<<56
	case "reorder_count" + part:
		if id == 0 {
			return word
		}
		const enough = 1 // packets out of order: the default of reorder.R
		reached := uint64(0)
		if beside("reorder_seq"+part)>>32&counted >= enough {
			reached = 1
		}
		return word&counted | reached<<24 | signature>>25<<25
	}
	return word
}

// lowBits: the host looks at the first bits of a coin, a table of the twin at the last ones.
func lowBits(flip func() uint32) func(string, int) uint64 {
	return func(string, int) uint64 { return uint64(bits.Reverse32(flip())) }
}

// untagged removes from a host's word what a switch does not have: tags that detect torn records, and the bit of a count that
// records that R was reached.
func untagged(register string, word uint64) uint64 {
	switch register {
	case "reorder_prefix0", "reorder_prefix1", "reorder_prefix_array":
		prefix := word & (1<<48 - 1)
		if prefix>>32 != 0 { // of IPv6: its first 32 bits
			prefix >>= 16
		}
		return prefix
	case "reorder_seq0", "reorder_seq1", "reorder_seq_array":
		return word & (1<<56 - 1)
	case "reorder_count0", "reorder_count1", "reorder_count_array":
		return word &^ (1 << 24)
	}
	return word
}

// turning: a packet whose position relative to its flow's numbers changes if numbers are compared without
// the wrap at 2^32.
func turning() func(p *packet.Packet) bool {
	type flow struct {
		src, dst netip.Addr
		ports    [2]uint16
	}
	type numbers struct{ start, end, largest uint32 }
	seen := map[flow]numbers{}
	older := func(a, b uint32) bool { return int32(a-b) < 0 }
	differs := func(a, b uint32) bool {
		return older(a, b) != (a < b && b-a <= 1<<31) || older(b, a) != (b < a && a-b <= 1<<31)
	}
	return func(p *packet.Packet) bool {
		if !p.Has(packet.TCP) || p.Payload == 0 && p.TCPFlags&packet.SYN == 0 {
			return false
		}
		f := flow{p.Src, p.Dst, [2]uint16{p.SrcPort, p.DstPort}}
		last, known := seen[f]
		if known && p.TCPFlags&packet.SYN == 0 && (differs(p.Seq, last.start) || differs(p.Seq, last.end) || differs(p.Seq, last.largest)) {
			return true
		}
		now := numbers{p.Seq, p.Seq + p.Payload, p.Seq}
		if known && p.TCPFlags&packet.SYN == 0 && older(p.Seq, last.largest) {
			now.largest = last.largest
		}
		seen[f] = now
		return false
	}
}

// zeros: 0.0.0.0/24 and ::/32.
func zeros(p *packet.Packet) bool {
	if !p.Has(packet.TCP) {
		return false
	}
	from := p.Src.AsSlice()
	return from[0] == 0 && from[1] == 0 && from[2] == 0 && (len(from) == 4 || from[3] == 0)
}

// unlikely entries need a coin of thirteen bits or more to show zeros: those of more than 2^12 packets.
var unlikely = func() (rows []string) {
	row := func(size, mask uint32) { rows = append(rows, fmt.Sprintf("admission.admission [{%d %d", size, mask)) }
	for k := 12; k < 31; k++ {
		row(1<<k, ^uint32(0)<<k)
		if k > 12 {
			row(1<<k, ^uint32(0))
		}
	}
	return rows
}()

// Roles of second passes in p4/reorder/types.p4: into way 0 or 1, or into the array's bucket, for which the host uses a number that no way has.
const (
	roleTake  = 2
	roleSeize = 4
	array     = 5
)

// second is what the clone of this packet contains.
func second(s *twin.Seen) twin.Fields {
	if s.PHV.Pass == 0 {
		return nil
	}
	f := twin.Fields{"value": s.PHV.Carry[1], "role": roleTake + s.PHV.Carry[0], "pad": 0, "bank": uint64(s.PHV.Bank)}
	if s.PHV.Carry[0] == array {
		f["role"] = roleSeize
	}
	return f
}

// seizes: a record of the array has no size.
func seizes(want, mine twin.Fields) {
	if want["role"] == roleSeize {
		mine["value"] = want["value"]
	}
}
