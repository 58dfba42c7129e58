package twins

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/tests/twins"
)

// planted changes a twin's text.
type planted struct{ file, from, to string }

// wrongTexts are faults by twin that a run has to find: headers that say something else (a field left out, another one's value, or one that nothing in the
// switch reads), and what only traffic meets that is rare: masks, defaults, fragments, flags, long waits.
var wrongTexts = map[string][]planted{
	"conquest": {
		{"conquest/conquest.p4", "md.report.delay = delay;", "md.report.delay = calm;"},
		{"conquest/conquest.p4", "md.report.flow = bridged.row_1;", "md.report.flow = bridged.row_0;"},
		{"conquest/conquest.p4", "md.report.limit = limit;", "md.report.limit = 0;"},
		{"conquest/conquest.p4", "md.report.front = FRONT_REPORT;", "md.report.front = 2;"},
		{"conquest/conquest.p4", "calm[31:31]   : ternary;", "calm[28:28]   : ternary;"},
		{"conquest/arrive.p4", "hdr.bridged.pad_1 = 0;", "hdr.bridged.pad_1 = 1;"},
		{"conquest/arrive.p4", "hdr.bridged.row_1 = row_1_6.get(FLOW_6);", "hdr.bridged.row_1 = row_1_6.get(FLOW_4);"},
		{"conquest/arrive.p4", "0x080 &&& 0x180: through(2);", "0x080 &&& 0x180: through(3);"},
		{"conquest/top.p4", "FRONT_REPORT: report;", "7: report;"},
		{"conquest/top.p4", "pkt.emit(hdr.report);", ""},
		{"include/parser.p4", "(0, IPP_UDP): udp;", "(_, IPP_UDP): udp;"},
	},
	"ahab": {
		{"ahab/leaving.p4", "md.carry.pad = 0;", "md.carry.pad = 1;"},
		{"ahab/leaving.p4", "md.carry.ceiling = ceiling;", "md.carry.ceiling = AHAB_FULL;"},
		{"ahab/leaving.p4", "action anything() {\n        limited = 0;", "action anything() {\n        limited = 1;"},
		{"ahab/leaving.p4", "ceiling = AHAB_FULL;", "ceiling = AHAB_LEAST;"},
		{"ahab/ahab.p4", "hdr.bridged.session = (bit<8>)session;", "hdr.bridged.session = 1;"},
		{"ahab/ahab.p4", "hdr.bridged.high = number - share_high;", "hdr.bridged.high = number - share_mid;"},
		{"ahab/ahab.p4", "hdr.bridged.amount = len << 4;", "hdr.bridged.amount = len << 5;"},
		{"ahab/question.p4", "const bit<8> FRONT_SECOND = 1;", "const bit<8> FRONT_SECOND = 2;"},
		{"ahab/users.p4", "a0 = hdr.ipv6.src0 & m0;", "a0 = hdr.ipv6.src0;"},
		{"ahab/users.p4", "a1 = hdr.ipv6.src1 & m1;", "a1 = hdr.ipv6.src1;"},
		{"ahab/users.p4", "a2 = hdr.ipv6.src2 & m2;", "a2 = hdr.ipv6.src2;"},
		{"ahab/users.p4", "b0 = hdr.ipv6.dst0 & m0;", "b0 = hdr.ipv6.dst0;"},
		{"ahab/users.p4", "b1 = hdr.ipv6.dst1 & m1;", "b1 = hdr.ipv6.dst1;"},
		{"ahab/users.p4", "b2 = hdr.ipv6.dst2 & m2;", "b2 = hdr.ipv6.dst2;"},
		{"ahab/users.p4", "b3 = hdr.ipv6.dst3 & m3;", "b3 = hdr.ipv6.dst3;"},
		{"ahab/users.p4", "action stray() {}", "action stray() { slice = 1; }"},
		{"include/parser.p4", "(0, IPP_UDP): udp;", "(_, IPP_UDP): udp;"},
	},
	"precision": {
		{"precision/precision.p4", "q.carry.value = value;", "q.carry.value = 0;"},
		{"precision/precision.p4", "q.carry.pad = 0;", "q.carry.pad = 1;"},
		{"include/forward.p4", "if (hdr.second.isValid()) {", "if (hdr.tcp.isValid()) {"},
		{"include/parser.p4", "(0, IPP_UDP): udp;", "(_, IPP_UDP): udp;"},
	},
	"carpe":    {{"include/parser.p4", "(0, IPP_UDP): udp;", "(_, IPP_UDP): udp;"}},
	"beaucoup": {{"include/parser.p4", "(0, IPP_UDP): udp;", "(_, IPP_UDP): udp;"}},
	"hhh": {
		{"hhh/hhh.p4", "q.carry.level = tag[15:8];", "q.carry.level = tag[7:0];"},
		{"hhh/hhh.p4", "q.carry.bank = bank;", "q.carry.bank = 0;"},
	},
	"reorder": {
		{"reorder/reorder.p4", "q.carry.value = power;", "q.carry.value = 1;"},
		{"reorder/reorder.p4", "q.carry.role = ROLE_TAKE_1;", "q.carry.role = ROLE_TAKE_0;"},
	},
	"fridge": {
		{"include/handshake.p4", "#define TCP_SYN_ONLY 0x02 &&& 0x12", "#define TCP_SYN_ONLY 0x02 &&& 0x16"},
		{"include/handshake.p4", "#define TCP_SYN_ACK 0x12 &&& 0x12", "#define TCP_SYN_ACK 0x12 &&& 0x16"},
		{"include/handshake.p4", "#define TCP_SYN_ACK 0x12 &&& 0x12", "#define TCP_SYN_ACK 0x10 &&& 0x14"},
		{"include/handshake.p4", "#define TCP_ACK_ONLY 0x10 &&& 0x17", "#define TCP_ACK_ONLY 0x10 &&& 0x13"},
		{"include/handshake.p4", "#define TCP_ACK_ONLY 0x10 &&& 0x17", "#define TCP_ACK_ONLY 0x10 &&& 0x16"},
	},
	"rttarray": {
		{"include/handshake.p4", "#define TCP_SYN_ONLY 0x02 &&& 0x12", "#define TCP_SYN_ONLY 0x02 &&& 0x16"},
		{"include/handshake.p4", "#define TCP_SYN_ACK 0x12 &&& 0x12", "#define TCP_SYN_ACK 0x10 &&& 0x10"},
	},
	"lean": {
		{"lean/latency.p4", "(_, 4 &&& 4): none();", "(KIND_BARE, 4 &&& 0x14): none();"},
		{"lean/lean.p4", "(_, _, 0x04 &&& 0x04, _, _): no_data();", ""},
	},
}

// changed is the sources with one change.
type changed struct {
	fs.FS
	name string
	text []byte
}

// ReadFile implements fs.ReadFileFS.
func (c changed) ReadFile(name string) ([]byte, error) {
	if name == c.name {
		return c.text, nil
	}
	return fs.ReadFile(c.FS, name)
}

func TestWrongTextsAreOfTwins(t *testing.T) {
	for name := range wrongTexts {
		if !slices.ContainsFunc(twin.All(), func(tw *twin.Twin) bool { return tw.Name == name }) {
			t.Errorf("there is no twin %s", name)
		}
	}
}

// checkTexts plants each of a twin's wrong texts, which what was recorded has to find.
func checkTexts(t *testing.T, tw *twin.Twin, form twin.Form, recording twins.Recording) {
	files, err := tw.Text(form)
	if err != nil {
		t.Fatal(err)
	}
	for _, bug := range wrongTexts[tw.Name] {
		text, err := fs.ReadFile(files, bug.file)
		if err != nil || !bytes.Contains(text, []byte(bug.from)) {
			t.Errorf("%s has no %q: %v", bug.file, bug.from, err)
			continue
		}
		text = bytes.Replace(text, []byte(bug.from), []byte(bug.to), 1)
		sw, err := tw.BuildFrom(changed{files, bug.file, text}, run.Tofino1, form)
		if err != nil {
			t.Errorf("%s: %s for %s: %v", bug.file, bug.to, bug.from, err)
			continue
		}
		if err = recording.Play(sw); err == nil {
			t.Errorf("%s: %s for %s is not found", bug.file, bug.to, bug.from)
			continue
		}
		t.Logf("%s: %s for %s: %.200v", bug.file, bug.to, bug.from, err)
	}
}
