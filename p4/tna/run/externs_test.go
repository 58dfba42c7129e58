package run

import (
	"encoding/binary"

	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/xdpmon/xdpmon/p4/tna/lang"
)

// frame of a small program: a, b, c, d.
func frame(a, b uint32, c, d uint16) []byte {
	f := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, a), b)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(f, c), d)
}

func mustBuild(t *testing.T, text string) *Switch {
	t.Helper()
	sw, err := build(text)
	if err != nil {
		t.Fatal(err)
	}
	return sw
}

func process(t *testing.T, sw *Switch, p Packet) (a, b uint32, c, d uint16) {
	t.Helper()
	var r Result
	if err := sw.Process(p, &r); err != nil {
		t.Fatal(err)
	}
	return binary.BigEndian.Uint32(r.Data), binary.BigEndian.Uint32(r.Data[4:]), binary.BigEndian.Uint16(r.Data[8:]), binary.BigEndian.Uint16(r.Data[10:])
}

const filters = "Lpf<bit<32>, bit<4>>(16) f;"

// TestFilter: a filter of rates gives rate times time constant; one that follows reaches 1 - 1/e of a step after its constant.
func TestFilter(t *testing.T) {
	sw := mustBuild(t, small(filters, "hdr.h.a = f.execute(hdr.h.a, hdr.h.c[3:0]);"))
	f := sw.Filters[0]
	var r Result
	if err := sw.Process(Packet{Data: frame(1, 2, 3, 0), Port: 1, Time: 5}, &r); err == nil || !strings.Contains(err.Error(), "the control plane has not set it") {
		t.Errorf("an unset filter: %v", err)
	}
	const tau, gap, size = 4e6, 10_000, 1000 // ns, ns, bytes
	f.Filter = Filter{Rate: true, Decay: tau}
	var out uint32
	for n := range uint64(4000) {
		out, _, _, _ = process(t, sw, Packet{Data: frame(size, 0, 3, 0), Port: 1, Time: 1e9 + n*gap})
	}
	if want := size / (1 - math.Exp(-gap/tau)) * (1 - math.Exp(-4000*gap/tau)); math.Abs(float64(out)-want) > 1 {
		t.Errorf("a rate of %d bytes in %d ns gives %d, want %.1f", size, gap, out, want)
	}
	for i, v := range f.Array.Data {
		if (v != 0) != (i == 3) {
			t.Errorf("filter %d holds %d after values for number 3", i, v)
		}
	}
	f.Array.Reset(0, 16)
	f.Filter = Filter{Gain: tau, Decay: 2 * tau, Shift: 2}
	process(t, sw, Packet{Data: frame(0, 0, 3, 0), Port: 1, Time: 1})
	if out, _, _, _ = process(t, sw, Packet{Data: frame(1e6, 0, 3, 0), Port: 1, Time: 1 + tau}); out != uint32(math.Round(1e6*(1-1/math.E)))/4 {
		t.Errorf("a step up by 1,000,000, scaled down by four, gives %d after the time constant", out)
	}
	held := float64(f.value[3])
	if out, _, _, _ = process(t, sw, Packet{Data: frame(0, 0, 3, 0), Port: 1, Time: 1 + 3*tau}); out != uint32(math.Round(held/math.E))/4 {
		t.Errorf("a step down gives %d after its time constant, from %v", out, held)
	}
	f.Array.Reset(0, 16)
	f.Filter = Filter{Step: func(held, value, now, last uint64) uint64 { return held + value + now - last }}
	process(t, sw, Packet{Data: frame(7, 0, 3, 0), Port: 1, Time: 100})
	if out, _, _, _ = process(t, sw, Packet{Data: frame(7, 0, 3, 0), Port: 1, Time: 130}); out != 144 {
		t.Errorf("arithmetic that was given: %d, want 7 + 100, 7 + 30", out)
	}
}

// TestFilterOnce: a filter is reached once by a packet.
func TestFilterOnce(t *testing.T) {
	sw := mustBuild(t, small(filters, "hdr.h.a = f.execute(hdr.h.a, hdr.h.c[3:0]);\nhdr.h.b = f.execute(hdr.h.a, 1);"))
	sw.Filters[0].Filter = Filter{Rate: true, Decay: 1}
	var r Result
	if err := sw.Process(Packet{Data: frame(1, 2, 3, 0), Port: 1}, &r); err == nil || !strings.HasPrefix(err.Error(), "top.p4:43: a second access to register f") {
		t.Errorf("a second access: %v", err)
	}
}

// TestMathUnit against floating point: four leading bits in, eight out.
func TestMathUnit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for name, c := range map[string]struct {
		args   string
		f      func(x float64) float64
		off    float64 // the maximum error: that of four bits of a number, and half a unit of the table's eight
		bitsIn int     // whose result fits
	}{
		"a product":          {"MathOp_t.MUL, 3", func(x float64) float64 { return 3 * x }, 1.0/8 + 1.0/128, 29},
		"a fraction":         {"MathOp_t.MUL, 5, 7", func(x float64) float64 { return x * 5 / 7 }, 1.0/8 + 1.0/128, 32},
		"a square":           {"MathOp_t.SQR, 1", func(x float64) float64 { return x * x }, 1.0/4 + 1.0/128, 15},
		"a root":             {"MathOp_t.SQRT, 16", func(x float64) float64 { return 16 * math.Sqrt(x) }, 1.0/8 + 1.0/64, 32},
		"a reciprocal":       {"MathOp_t.DIV, 2147483647", func(x float64) float64 { return 2147483647 / x }, 1.0/8 + 1.0/64, 20},
		"a root's":           {"MathOp_t.RSQRT, 1000000000", func(x float64) float64 { return 1e9 / math.Sqrt(x) }, 1.0/8 + 1.0/64, 24},
		"a table of its own": {"false, 0, -4, { 8w240, 224, 208, 192, 176, 160, 144, 128, 0, 0, 0, 0, 0, 0, 0, 0 }", func(x float64) float64 { return 8 * x }, 1.0 / 8, 28},
	} {
		sw := mustBuild(t, small("MathUnit<bit<32>>("+c.args+") u;\n"+register+"void apply(inout bit<32> v, out bit<32> o) { v = u.execute(hdr.h.a); o = v; } };",
			"hdr.h.b = a.execute(hdr.h.c[3:0]);"))
		for range 3000 {
			x := uint32(r.Uint64()>>(64-c.bitsIn)) >> r.IntN(c.bitsIn)
			_, y, _, _ := process(t, sw, Packet{Data: frame(x, 0, 1, 0), Port: 1})
			if x == 0 {
				if y != 0 {
					t.Errorf("%s of 0 is %d", name, y)
				}
				continue
			}
			if want := c.f(float64(x)); math.Abs(float64(y)-want) > want*c.off+1 {
				t.Fatalf("%s of %d is %d, want %.1f, off by %.3f at most", name, x, y, want, c.off)
			}
		}
	}
	sw := mustBuild(t, small("MathUnit<bit<32>>(MathOp_t.SQR, 1) u;\n"+register+"void apply(inout bit<32> v) { v = u.execute(hdr.h.a); } };", "a.execute(1);"))
	var result Result
	if err := sw.Process(Packet{Data: frame(1<<16, 0, 0, 0), Port: 1}, &result); err == nil || !strings.Contains(err.Error(), "more than 32 bits") {
		t.Errorf("a square of 2^16: %v", err)
	}
}

// internetSum is a checksum as RFC 1071 has it.
func internetSum(b []byte) uint16 {
	sum := uint64(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint64(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// TestChecksum: the deparser's, of fields and of a whole header; and the parser's, whose residual is that of what it did not read.
func TestChecksum(t *testing.T) {
	text := small("", "")
	text = strings.Replace(text, "    apply {\n        if (dprsr", "    Checksum() sum;\n    Checksum() whole;\n    apply {\n        hdr.h.c = sum.update({ hdr.h.a, hdr.h.b, hdr.h.d });\n"+
		"        if (hdr.more[0].isValid()) { hdr.more[0].d = whole.update({ hdr.more[0].a, hdr.more[0].b, hdr.more[0].c }, true); }\n        if (dprsr", 1)
	sw := mustBuild(t, text)
	r := rand.New(rand.NewPCG(2, 9))
	for range 500 {
		p := frame(r.Uint32(), r.Uint32()>>r.IntN(32), uint16(r.Uint32()), 1)
		p = append(p, frame(r.Uint32(), r.Uint32(), uint16(r.Uint32()), 0)...)
		if r.IntN(5) == 0 {
			copy(p[12:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 255, 255}) // its sum is zero
		}
		want := append([]byte(nil), p...)
		binary.BigEndian.PutUint16(want[8:], internetSum(append(append([]byte(nil), p[:8]...), p[10:12]...)))
		second := internetSum(p[12:22])
		if second == 0 {
			second = 0xffff
		}
		binary.BigEndian.PutUint16(want[22:], second)
		var result Result
		if err := sw.Process(Packet{Data: p, Port: 1}, &result); err != nil {
			t.Fatal(err)
		}
		if string(want) != string(result.Data) {
			t.Fatalf("%x, want %x", result.Data, want)
		}
	}
	in := strings.Replace(small("", "if (md.y == 1) { hdr.h.b = 1; } else { hdr.h.b = 0; }\nhdr.h.a[15:0] = md.x[15:0];"), "parser IP(packet_in pkt, out headers_t hdr, out md_t md, out ingress_intrinsic_metadata_t ig) {",
		"parser IP(packet_in pkt, out headers_t hdr, out md_t md, out ingress_intrinsic_metadata_t ig) {\n    Checksum() good;\n    Checksum() rest;", 1)
	in = strings.Replace(in, "        transition select(hdr.h.d) {", "        good.add(hdr.h);\n        if (good.verify()) { md.y = 1; }\n        rest.subtract({ hdr.h.c });\n        rest.subtract({ hdr.h.a, hdr.h.b });\n        md.x[15:0] = rest.get();\n        transition select(hdr.h.d) {", 1)
	sw = mustBuild(t, in)
	for range 500 {
		payload, a, b, d := r.Uint32(), r.Uint32(), r.Uint32(), uint16(2+r.IntN(1<<15))
		whole := frame(a, b, 0, d)
		c := internetSum(append(binary.BigEndian.AppendUint32(nil, payload), whole...))
		wrong := r.IntN(2) // of the header alone
		if wrong == 0 {
			c = internetSum(whole)
		}
		first, good, _, _ := process(t, sw, Packet{Data: frame(a, b, c, d), Port: 1})
		if wrong == 0 && good != 1 {
			t.Errorf("a header with the right checksum %#x is not verified", c)
		}
		residual := internetSum(append(append(frame(0, 0, 0, d), 0, 0), byte(payload>>24), byte(payload>>16), byte(payload>>8), byte(payload), 0, 0))
		if wrong == 1 && uint16(first)%0xffff != ^residual%0xffff {
			t.Errorf("what is left of the checksum is %#x, want %#x", uint16(first), ^residual)
		}
	}
}

// stacks extracts labels with .next until one is the last, and records which.
const stacks = `
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.h);
        transition select(hdr.h.c) {
            1: more;
            known: odd;
            default: accept;
        }
    }
    state odd {
        md.y = 9;
        transition accept;
    }
    state more {
        pkt.extract(hdr.more.next);
        md.x = hdr.more.last.a;
        transition select(hdr.more.last.d) {
            1: more;
            default: accept;
        }
    }
`

// TestStackAndValueSet: .next fills one element after the other and ends in an error, .last reads what it filled; a value set holds what the
// control plane put there.
func TestStackAndValueSet(t *testing.T) {
	text := small("", "hdr.h.b = md.x;\nhdr.h.a[23:16] = md.y;\nhdr.h.a[15:0] = prsr.parser_err;")
	from, to := strings.Index(text, "    state start {"), strings.Index(text, "}\ncontrol IC")
	sw := mustBuild(t, text[:from]+"value_set<bit<16>>(2) known;"+stacks+text[to:])
	var result Result
	for labels := range 4 {
		p := frame(0, 0, 1, 0)
		for n := range labels {
			p = append(p, frame(uint32(100+n), 0, 0, uint16(number(n+1 < labels)))...)
		}
		if err := sw.Process(Packet{Data: p, Port: 1}, &result); err != nil {
			t.Fatal(err)
		}
		want, failed := uint32(99+labels), uint32(0)
		switch labels {
		case 0:
			want, failed = 0, lang.ParserShort
		case 3:
			want, failed = 101, lang.ParserFull
		}
		if a, b := binary.BigEndian.Uint32(result.Data), binary.BigEndian.Uint32(result.Data[4:]); a != failed || b != want || len(result.Data) != len(p) {
			t.Errorf("%d labels: the last one is %d, errors %#x, %d bytes of %d", labels, b, a, len(result.Data), len(p))
		}
	}
	known := sw.ValueSets[0]
	for _, want := range []uint32{0, 9} {
		if a, _, _, _ := process(t, sw, Packet{Data: frame(0, 0, 0x8123, 0), Port: 1}); a>>16 != want {
			t.Errorf("value set with %d members: %d, want %d", 1, a>>16, want)
		}
		if err := known.Add(0x8100, 0xff00); err != nil {
			t.Fatal(err)
		}
	}
	if err := known.Add(1, 0xffff); err == nil {
		t.Error("a third member of two")
	}
	if err := known.Add(1<<16, 0xffff); err == nil {
		t.Error("a member of 17 bits")
	}
}

const asked = `
    action five() { md.y = 5; }
    action six(bit<8> n) { md.y = n; }
    table t { key = { hdr.h.a : lpm; } actions = { five; six; @defaultonly NoAction; } default_action = NoAction(); size = 8; }
    table u { key = { hdr.h.b[15:0] : range; hdr.h.c : exact; } actions = { five; six; } size = 8; }
`

// TestFoundByTheControlPlane: entries of lpm and range tables, what was found, and which action ran.
func TestFoundByTheControlPlane(t *testing.T) {
	sw := mustBuild(t, small(asked, `
        if (!t.apply().hit) { hdr.h.d[7:0] = 77; } else { hdr.h.d[7:0] = md.y; }
        switch (u.apply().action_run) {
            five: { hdr.h.d[15:8] = 1; }
            six: { hdr.h.d[15:8] = md.y; }
            default: { hdr.h.d[15:8] = 3; }
        }`))
	lpm, ranges := sw.Table("t"), sw.Table("u")
	for n, prefix := range []int{8, 24, 16, 0} {
		under := ^uint64(0) << (32 - prefix) & lang.Mask(32)
		if err := lpm.Add([]lang.Match{{Value: 0x0a0b0c00 & under, Mask: under}}, "six", uint64(10+n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ranges.Add([]lang.Match{{Value: 100, High: 200, Range: true}, {Value: 7, Mask: 0xffff}}, "five"); err != nil {
		t.Fatal(err)
	}
	if err := ranges.Add([]lang.Match{{Value: 150, High: 300, Range: true}, {Value: 7, Mask: 0xffff}}, "six", 44); err != nil {
		t.Fatal(err)
	}
	check := func(a, b uint32, c, want uint16) {
		t.Helper()
		if _, _, _, d := process(t, sw, Packet{Data: frame(a, b, c, 0), Port: 1}); d != want {
			t.Errorf("a %#x, b %d, c %d: %#x, want %#x", a, b, c, d, want)
		}
	}
	check(0x0a0b0c0d, 150, 7, 1<<8|11)
	check(0x0a0b0000, 201, 7, 44<<8|12)
	check(0x0aff0000, 301, 7, 3<<8|10)
	check(0xff000000, 150, 8, 3<<8|13)
	if err := lpm.Clear(); err != nil {
		t.Fatal(err)
	}
	check(0x0a0b0c0d, 100, 7, 1<<8|77)
	for name, err := range map[string]error{
		"mask that is no prefix": lpm.Add([]lang.Match{{Mask: 0xff00ff00}}, "five"),
		"wide value":             lpm.Add([]lang.Match{{Value: 1 << 32, Mask: 1 << 32}}, "five"),
		"bits outside":           lpm.Add([]lang.Match{{Value: 1}}, "five"),
		"range for lpm":          lpm.Add([]lang.Match{{High: 1, Range: true}}, "five"),
		"mask for range":         ranges.Add([]lang.Match{{}, {Value: 7, Mask: 0xffff}}, "five"),
		"empty range":            ranges.Add([]lang.Match{{Value: 2, High: 1, Range: true}, {Value: 7, Mask: 0xffff}}, "five"),
		"mask of exact":          ranges.Add([]lang.Match{{High: 1, Range: true}, {}}, "five"),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// queued bridges a flow to the egress, where a register of the queue's delays is.
const queued = `
#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
header bridge_t { bit<16> flow; bit<16> when; }
header h_t { bit<32> a; bit<32> b; }
struct headers_t { bridge_t bridge; h_t h; }
struct md_t { bit<8> y; }
parser IP(packet_in pkt, out headers_t hdr, out md_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h); transition accept; }
}
control IC(inout headers_t hdr, inout md_t md, in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t prsr,
           inout ingress_intrinsic_metadata_for_deparser_t dprsr, inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply {
        tm.ucast_egress_port = 9;
        hdr.bridge.setValid();
        hdr.bridge.flow = hdr.h.a[15:0];
        hdr.bridge.when = prsr.global_tstamp[15:0];
    }
}
control ID(packet_out pkt, inout headers_t hdr, in md_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
parser EP(packet_in pkt, out headers_t hdr, out md_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); pkt.extract(hdr.bridge); pkt.extract(hdr.h); transition accept; }
}
control EC(inout headers_t hdr, inout md_t md, in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t prsr,
           inout egress_intrinsic_metadata_for_deparser_t dprsr, inout egress_intrinsic_metadata_for_output_port_t oport) {
    Register<bit<32>, bit<16>>(65536, 0) delays;
    RegisterAction<bit<32>, bit<16>, bit<32>>(delays) add = {
        void apply(inout bit<32> v, out bit<32> o) { v = v + (bit<32>)eg.deq_timedelta; o = v; }
    };
    apply {
        hdr.h.b = add.execute(hdr.bridge.flow);
        hdr.h.a[31:16] = (bit<16>)eg.enq_qdepth[15:0];
        hdr.h.a[15:0] = prsr.global_tstamp[15:0] - hdr.bridge.when;
        hdr.bridge.setInvalid();
        if (eg.egress_port == 9 && eg.deq_qdepth == 3) { dprsr.drop_ctl = 1; }
    }
}
control ED(packet_out pkt, inout headers_t hdr, in md_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) { apply { pkt.emit(hdr); } }
Pipeline(IP(), IC(), ID(), EP(), EC(), ED()) pipe;
Switch(pipe) main;
`

// TestEgress: what the ingress bridges, and the traffic manager's results, reach the egress of both chips.
func TestEgress(t *testing.T) {
	for _, target := range []Target{Tofino1, Tofino2} {
		program, err := Read(fstest.MapFS{"top.p4": {Data: []byte(queued)}}, "top.p4", target, nil)
		if err != nil {
			t.Fatal(err)
		}
		sw, err := New(program, target)
		if err != nil {
			t.Fatal(err)
		}
		room := uint32(lang.Mask(map[Target]int{Tofino1: 18, Tofino2: 32}[target]))
		sum, wait := uint32(0), uint64(1000)
		for n := range 20 {
			var r Result
			p := frame(uint32(n%2), 0, 0xbeef, 0)
			if err := sw.Process(Packet{Data: p, Port: 1, Time: 1e9, Queue: Queue{Wait: wait, Depth: uint32(40 + n), After: uint32(n % 4)}}, &r); err != nil {
				t.Fatal(err)
			}
			if n%2 == 0 {
				sum += uint32(wait) & room
				if a, b := binary.BigEndian.Uint32(r.Data), binary.BigEndian.Uint32(r.Data[4:]); b != sum || a>>16 != uint32(40+n) || uint16(a) != uint16(wait) || len(r.Data) != len(p) || r.Port != 9 || r.Dropped {
					t.Errorf("Tofino %d, packet %d: %x to port %d (dropped: %v), the sum of delays is %d", target, n, r.Data, r.Port, r.Dropped, sum)
				}
			}
			if r.Dropped != (n%4 == 3) {
				t.Errorf("Tofino %d, packet %d: dropped: %v", target, n, r.Dropped)
			}
			wait = wait*3/2 + uint64(bits.OnesCount(uint(n)))
		}
		if got, want := sw.Register("delays").Data[0], uint64(sum); got != want {
			t.Errorf("Tofino %d: %d in the register, want %d", target, got, want)
		}
	}
}
