package run

import (
	"strings"
	"testing"
	"testing/fstest"
)

// small is a whole program around an ingress control whose members and apply are given. Its members begin in line 39.
func small(members, apply string) string {
	return strings.TrimPrefix(`
#include <core.p4>
#include <tna.p4>
header h_t {
    bit<32> a;
    bit<32> b;
    bit<16> c;
    bit<16> d;
}
header carry_t { bit<64> v; }
struct headers_t {
    h_t h;
    h_t[2] more;
}
struct md_t {
    carry_t carry;
    bit<32> x;
    bit<8> y;
}
struct pair_t { bit<32> hi; bit<32> lo; } struct long_t { bit<64> a; bit<64> b; bit<64> c; bit<64> d; bit<64> e; bit<64> f; }
struct nothing_t {}
parser IP(packet_in pkt, out headers_t hdr, out md_t md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.h);
        transition select(hdr.h.d) {
            1: more;
            default: accept;
        }
    }
    state more {
        pkt.extract(hdr.more[0]);
        transition accept;
    }
}
control IC(inout headers_t hdr, inout md_t md, in ingress_intrinsic_metadata_t ig,
           in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
           inout ingress_intrinsic_metadata_for_tm_t tm) {
`, "\n") + members + "\n    apply {\n        tm.bypass_egress = 1;\n" + apply + `
    }
}
control ID(packet_out pkt, inout headers_t hdr, in md_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Resubmit() again;
    apply {
        if (dprsr.resubmit_type == 1) { again.emit(md.carry); }
        pkt.emit(hdr);
    }
}
parser EP(packet_in pkt, out nothing_t hdr, out nothing_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control EC(inout nothing_t hdr, inout nothing_t md, in egress_intrinsic_metadata_t eg,
           in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
           inout egress_intrinsic_metadata_for_output_port_t oport) { apply {} }
control ED(packet_out pkt, inout nothing_t hdr, in nothing_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) { apply {} }
Pipeline(IP(), IC(), ID(), EP(), EC(), ED()) pipe;
Switch(pipe) main;
`
}

func build(text string) (*Switch, error) {
	program, err := Read(fstest.MapFS{"top.p4": {Data: []byte(text)}}, "top.p4", Tofino1, nil)
	if err != nil {
		return nil, err
	}
	return New(program, Tofino1)
}

const register = "Register<bit<32>, bit<4>>(16, 0) r;\nRegisterAction<bit<32>, bit<4>, bit<32>>(r) a = {\n"

// TestRefused: what the chip or the model does not have is an error with file and line.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ members, apply, want string }{
		"type":              {"", "md.x = hdr.h.c;", "top.p4:42: bit<16> where bit<32> is expected"},
		"width of a sum":    {"", "md.x = hdr.h.a + hdr.h.c;", "top.p4:42: bit<32> and bit<16> are not of one type"},
		"literal":           {"", "md.y = 256;", "top.p4:42: 256 does not fit into bit<8>"},
		"slice":             {"", "md.x = hdr.h.a[32:1];", "top.p4:42: [32:1] of bit<32>"},
		"product":           {"", "md.x = hdr.h.a * hdr.h.b;", "top.p4:42: * of bit<32> is outside of the model"},
		"name":              {"", "md.z = 1;", "top.p4:42: md_t has no field z"},
		"stack":             {"", "md.x = hdr.more[2].a;", "top.p4:42: element 2 of h_t[2]"},
		"shift":             {"", "md.x = hdr.h.a << md.x;", "top.p4:42: a shift that is no constant"},
		"written in":        {"", "ig.ingress_port = 1;", "top.p4:42: the left side is an `in` parameter"},
		"statement":         {"", "exit;", "top.p4:42: `exit` is outside of the model"},
		"extern":            {"Wred<bit<32>, bit<4>>(16, 1, 0) l;", "", "top.p4:39: Wred is outside of the model"},
		"narrow filter":     {"Lpf<bit<16>, bit<4>>(16) l;", "", "top.p4:39: a low-pass filter of bit<16>"},
		"filter's index":    {"Lpf<bit<32>, bit<4>>(17) l;", "", "top.p4:39: an index of 4 bits does not reach 17 entries"},
		"filter":            {"Lpf<bit<32>, bit<4>>(16) l;", "md.x = l.execute(hdr.h.a);", "top.p4:42: a filter is given a value and an index"},
		"root of squares":   {"MathUnit<bit<32>>(MathOp_t.RSQR, 1) u;", "", "top.p4:39: RSQR of a math unit is outside of the model"},
		"short table":       {"MathUnit<bit<32>>(true, 0, 9, {0, 0, 0}) u;", "", "top.p4:39: a math unit that is given its table"},
		"math of a field":   {"MathUnit<bit<32>>(MathOp_t.DIV, 1) u;", "md.x = u.execute(hdr.h.a);", "top.p4:42: a math unit computes the first word"},
		"math of two":       {"MathUnit<bit<32>>(MathOp_t.DIV, 1) u;\n" + register + "void apply(inout bit<32> v) { v = u.execute(v + hdr.h.a); } };", "", "top.p4:42: 2 operations in one statement"},
		"checksum":          {"Checksum() c;", "md.x = (bit<32>)c.verify();", "top.p4:42: verify of a Checksum is outside of the model here"},
		"odd checksum":      {"Checksum() c;", "hdr.h.c = c.update({ md.y });", "top.p4:42: a checksum over 8 bits"},
		"action profile":    {"ActionProfile(16) p;", "", "top.p4:39: ActionProfile is outside of the model"},
		"next of a stack":   {"", "md.x = hdr.more.next.a;", "top.p4:42: h_t[2] has no field next"},
		"last of a stack":   {"", "md.x = hdr.more.last.a;", "top.p4:42: .last of a stack is the parser's"},
		"switch":            {"", "switch (md.y) { default: { md.x = 1; } }", "top.p4:42: a switch over anything but a table's action_run"},
		"label":             {"action n() {}\ntable t { actions = { n; } }", "switch (t.apply().action_run) { m: { md.x = 1; } }", "top.p4:43: m is no action of table t"},
		"label without end": {"action n() {}\ntable t { actions = { n; } }", "switch (t.apply().action_run) { n: }", "top.p4:43: the last label of a switch has no block"},
		"hit in a sum":      {"action n() {}\ntable t { actions = { n; } }", "if (t.apply().hit && md.y == 0) { md.x = 1; }", "top.p4:43: this call has no value"},
		"hit of a switch":   {"action n() {}\ntable t { actions = { n; } }", "if (t.apply().action_run) { md.x = 1; }", "top.p4:43: a condition is hit or miss of a table"},
		"lpm and mask":      {"action n() {}\ntable t { key = { hdr.h.a : lpm; hdr.h.b : ternary; } actions = { n; } }", "t.apply();", "top.p4:40: table t: one key that is lpm"},
		"second meter":      {"Meter<bit<1>>(2, MeterType_t.BYTES) m;", "", "top.p4:39: the model counts PACKETS only"},
		"hash of odd bits":  {"CRCPolynomial<bit<32>>(32w0x04C11DB7, true, false, false, 32w0, 32w0) p;\nHash<bit<32>>(HashAlgorithm_t.CUSTOM, p) h;", "md.x = h.get({ hdr.h.a[30:0] });", "top.p4:43: a CRC over 31 bits"},
		"index":             {register + "void apply(inout bit<32> v) { v = 1; } };", "a.execute(md.y);", "top.p4:44: bit<8> where bit<4> is expected"},
		"24 bits":           {"Register<bit<24>, bit<4>>(16, 0) r;", "", "top.p4:39: an element of bit<24>"},
		"third comparison":  {register + "void apply(inout bit<32> v) { if (v == 1 || v == 2) { v = 3; }\nif (v == 4) { v = 5; } } };", "", "top.p4:42: a third comparison"},
		"two operations":    {register + "void apply(inout bit<32> v) { v = v + hdr.h.a + hdr.h.b; } };", "", "top.p4:41: 2 operations in one statement"},
		"two packet fields": {register + "void apply(inout bit<32> v) { if (v + hdr.h.a > hdr.h.b) { v = 1; } } };", "", "top.p4:41: 1 words and 2 packet fields"},
		"signed sum":        {register + "void apply(inout bit<32> v) { int<32> w = (int<32>)v; if (w + (int<32>)hdr.h.a >= 1) { v = 1; } } };", "", "top.p4:41: a signed sum in a comparison"},
		"cast of a sum":     {register + "void apply(inout bit<32> v) { if ((int<32>)(v + hdr.h.a) >= 1) { v = 1; } } };", "", "top.p4:41: a signed sum in a comparison"},
		"minus":             {register + "void apply(inout bit<32> v) { int<32> w = (int<32>)v;\nif (-(w + (int<32>)hdr.h.a) <= 1) { v = 1; } } };", "", "top.p4:42: - in a comparison"},
		"complement":        {register + "void apply(inout bit<32> v) {\nif (~v == hdr.h.a) { v = 1; } } };", "", "top.p4:42: ~ in a comparison"},
		"minus a parameter": {"RegisterParam<int<32>>(1) p;\n" + register + "void apply(inout bit<32> v) { int<32> w = (int<32>)v; int<32> k = p.read();\nif (w >= -k) { v = 1; } } };", "", "top.p4:43: - in a comparison"},
		"wider parameter":   {"RegisterParam<int<32>>(1) p;\n" + register + "void apply(inout bit<32> v) { int<32> w = (int<32>)v; int<32> k = p.read();\nif ((int<33>)(w + (int<32>)hdr.h.a) >= (int<33>)k) { v = 1; } } };", "", "top.p4:43: a cast of k to int<33> in a comparison"},
		"unread parameter":  {"RegisterParam<int<32>>(1) p;\n" + register + "void apply(inout bit<32> v) { int<32> k = p.read(); v = 1; } };", "", "top.p4:42: k has a RegisterParam's value and is never read"},
		"shift of the time": {"Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;", "md.x = h.get((bit<32>)(prsr.global_tstamp >> 20));", "top.p4:42: bits 51 to 20 of 48 in a field list"},
		"shift in a list":   {"Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;", "md.x = h.get({ hdr.h.c, (hdr.h.a >> 17)[15:0] });", "top.p4:42: bits 32 to 17 of 32 in a field list"},
		"parameter":         {"RegisterParam<bit<32>>(1) p;\n" + register + "void apply(inout bit<32> v) { if (v >= p.read()) { v = 1; } } };", "", "top.p4:42: a RegisterParam in a comparison"},
		"three updates":     {register + "void apply(inout bit<32> v) { v = 1; v = 2; v = 3; } };", "", "top.p4:41: 3 different updates"},
		"table twice":       {"table t { actions = { n; } default_action = n(); }\n", "t.apply(); t.apply();", "top.p4:39: n is not declared"},
		"applied twice":     {"action n() {}\ntable t { actions = { n; } default_action = n(); }", "t.apply(); t.apply();", "top.p4:43: table t is applied in two places"},
		"wide range":        {"action n() {}\ntable t { key = { hdr.h.a : range; } actions = { n; } }", "t.apply();", "top.p4:40: a range over 32 bits"},
		"entry":             {"action n() {}\ntable t { key = { hdr.h.a : exact; } actions = { n; } const entries = {\n(1, 2): n(); } }", "t.apply();", "top.p4:41: 2 values for the 1 keys"},
		"mask of exact":     {"action n() {}\ntable t { key = { hdr.h.a : exact; } actions = { n; } const entries = {\n1 &&& 1: n(); } }", "t.apply();", "top.p4:41: a mask for a key that is exact"},
		"unused control":    {"", "} }\ncontrol Unused(in bit<8> a, out bit<8> b) { apply {\nb = a + 16w1;", "top.p4:44: bit<8> and bit<16> are not of one type"},
		"index on a miss":   {register + "void apply(inout bit<32> v) { v = 1; } };\naction n() { a.execute(hdr.h.c[3:0]); }\ntable t { key = { hdr.h.a : exact; } actions = { n; }\ndefault_action = n(); }", "t.apply();", "top.p4:44: n is what table t does on a miss"},
		"hash on a miss":    {"Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;\naction n() { md.x = h.get(hdr.h.a); }\naction m() { n(); }\ntable t { key = { hdr.h.b : ternary; } actions = { m; }\ndefault_action = m(); }", "t.apply();", "top.p4:43: m is what table t does on a miss"},
		"random on a miss":  {"Random<bit<8>>() r;\naction n() { md.y = r.get(); }\naction m() {}\ntable t { actions = { n; m; }\ndefault_action = n(); }", "t.apply();", "top.p4:43: n is what table t does on a miss"},
		"calculated if":     {"", "if (hdr.h.a + hdr.h.b == 0) { md.y = 1; }", "top.p4:42: a gateway compares fields"},
		"two fields":        {"", "if (hdr.h.a < hdr.h.b) { md.y = 1; }", "top.p4:42: < of two fields"},
		"wide order":        {"", "if (md.y == 1 && hdr.h.a > 1000) { md.y = 1; }", "top.p4:42: > of 32 bits: a gateway orders 12"},
		"wide equality":     {"", "if (prsr.global_tstamp == 0) { md.y = 1; }", "top.p4:42: == of 48 bits: a gateway compares 44"},
		"choice in an if":   {"", "if (md.y == 1 ? md.x == 0 : md.x == 1) { md.y = 2; }", "top.p4:42: ?: in a condition"},
		"deep assignment":   {"", "md.x = hdr.h.a + hdr.h.b - 1;", "top.p4:42: 2 operations in one assignment"},
		"deep action":       {"action n() { md.x = (hdr.h.a & 15) + hdr.h.b; }", "n();", "top.p4:39: 2 operations in one assignment"},
		"shift and mask":    {"action n() { md.x = (hdr.h.a >> 3) & 15; }", "n();", "top.p4:39: 2 operations in one assignment"},
		"choice":            {"action n() { md.x = md.y == 1 ? hdr.h.a : hdr.h.b; }", "n();", "top.p4:39: ?: in an action"},
		"two stages":        {"action n() {\nmd.x = hdr.h.a + 1;\nhdr.h.b = md.x; }", "n();", "top.p4:41: this reads what the same action has computed"},
		"two stages inside": {"action m() { md.x = hdr.h.a + 1; }\naction n() { m();\nhdr.h.b[7:0] = md.x[7:0]; }", "n();", "top.p4:41: this reads what the same action has computed"},
		"if in an action":   {"action n() { if (md.y == 1) { md.x = 1; } }", "n();", "top.p4:39: an if in an action"},
		"two registers": {register + "void apply(inout bit<32> v) { v = 1; } };\nRegister<bit<32>, bit<4>>(16, 0) q;\n" +
			"RegisterAction<bit<32>, bit<4>, bit<32>>(q) b = { void apply(inout bit<32> v) { v = 2; } };\naction n() { a.execute(1);\nb.execute(2); }", "n();", "top.p4:45: a second register in one action"},
		"calculated index": {register + "void apply(inout bit<32> v) { v = 1; } };", "a.execute(hdr.h.c[3:0] + 1);", "top.p4:44: an index that is calculated"},
		"third input": {register + "void apply(inout bit<32> v) { v = hdr.h.a; } };\nRegisterAction<bit<32>, bit<4>, bit<32>>(r) b = { void apply(inout bit<32> v) { v = hdr.h.b; } };\n" +
			"RegisterAction<bit<32>, bit<4>, bit<32>>(r) c = {\nvoid apply(inout bit<32> v) { v = md.x; } };", "", "top.p4:44: a third packet field"},
		"fifth number": {register + "void apply(inout bit<32> v) { if (v > 100) { v = 200; } else { v = 300; } } };\n" +
			"RegisterAction<bit<32>, bit<4>, bit<32>>(r) b = {\nvoid apply(inout bit<32> v) { if (v > 400) { v = v + 500; } } };", "", "top.p4:43: a fifth large number"},
		"both happen":     {register + "void apply(inout bit<32> v) { if (v == 1) { v = 2; }\nv = 3; } };", "", "top.p4:42: v is assigned at top.p4:41 too"},
		"two ifs":         {register + "void apply(inout bit<32> v, out bit<32> o) { o = 0; if (v == 1) { o = 2; }\nif (v == 3) { o = 4; } } };", "", "top.p4:42: o is assigned at top.p4:41 too"},
		"two outputs":     {"Register<pair_t, bit<4>>(16, {0, 0}) r;\nRegisterAction<pair_t, bit<4>, bit<32>>(r) a = {\nvoid apply(inout pair_t v, out bit<32> o) { if (v.hi == 1) { o = v.lo; } else { o = v.hi; } } };", "", "top.p4:41: another output"},
		"sum as output":   {"Register<pair_t, bit<4>>(16, {0, 0}) r;\nRegisterAction<pair_t, bit<4>, bit<32>>(r) a = {\nvoid apply(inout pair_t v, out bit<32> o) { o = v.lo + 1; } };", "", "top.p4:41: a pair's action puts out what it calculates for its words"},
		"three as output": {"Register<pair_t, bit<4>>(16, {0, 0}) r;\nRegisterAction<pair_t, bit<4>, bit<8>>(r) a = {\nvoid apply(inout pair_t v, out bit<8> o) { o = 3; } };", "", "top.p4:41: a pair's action puts out 3"},
		"too large":       {"Register<bit<32>, bit<18>>(147456, 0) r;", "", "top.p4:39: 4718592 bits in register r"},
		"two lists":       {"Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;", "md.x = h.get(hdr.h.a);\nhdr.h.b = h.get(md.x);", "top.p4:43: a second field list of one Hash"},
		"long digest":     {"Digest<long_t>() d;", "", "top.p4:39: a digest of 48 bytes"},
		"wide random":     {"Random<bit<33>>() r;", "", "top.p4:39: a random number of 33 bits"},
	} {
		_, err := build(small(c.members, c.apply))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestSourceErrors are those of preprocessor and grammar.
func TestSourceErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no endif":       {"\n#if 1\n", "top.p4:2: #if without #endif"},
		"error":          {"#define N 3\n#if N > 2\n#error too many\n#endif", "top.p4:3: #error too many"},
		"include":        {"#include \"none.p4\"", "top.p4:1: cannot read none.p4"},
		"library":        {"\n#include <v1model.p4>", "top.p4:2: <v1model.p4> is outside of the model"},
		"mark":           {"const bit<8> a = 'x';", "top.p4:1: '\\'' is no part of P4"},
		"annotation":     {"@atomic struct s {}", "top.p4:1: @atomic is outside of the model"},
		"macro":          {"#define M(a, b) a\nM(1)", "top.p4:2: a macro of 2 parameters is given 1"},
		"no pipeline":    {"struct s {}", ":0: the program has no Pipeline of six parts"},
		"directive":      {"#line 3", "top.p4:1: #line is outside of the model"},
		"wide":           {"const bit<65> a = 1;", "top.p4:1: 65 where 1 to 64 is possible"},
		"table property": {"control C() { table t { idle_timeout = true; } apply {} }", "top.p4:1: a table's `idle_timeout` is outside of the model"},
	} {
		_, err := build(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestTaken: what is beside what TestRefused has, and the chip does.
func TestTaken(t *testing.T) {
	for name, c := range map[string]struct{ members, apply string }{
		"signed sum": {"RegisterParam<int<32>>(1) p;\n" + register + "void apply(inout bit<32> v) { int<32> w = (int<32>)v; int<32> k = p.read();\n" +
			"if ((int<64>)(w + (int<32>)hdr.h.a) >= (int<64>)k) { v = 1; } } };", ""},
		"minus one":     {register + "void apply(inout bit<32> v) { int<32> w = (int<32>)v; if (w >= -1) { v = 1; } } };", ""},
		"whole slice":   {"Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;", "md.x = h.get((bit<32>)(prsr.global_tstamp >> 16));"},
		"zeros":         {"Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;", "md.x = h.get((bit<32>)((16w0 ++ prsr.global_tstamp) >> 20));"},
		"shifted field": {"Hash<bit<32>>(HashAlgorithm_t.IDENTITY) h;", "md.x = h.get(hdr.h.a >> 3);"},
	} {
		if _, err := build(small(c.members, c.apply)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
