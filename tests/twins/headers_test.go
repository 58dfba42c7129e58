package twins

import (
	"bytes"
	"io/fs"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// planted changes what a header of a twin says, in its text.
type planted struct{ file, from, to string }

// wrongHeaders are headers that say something else, by twin: a field left out, another one's value, or one that nothing in the switch reads.
var wrongHeaders = map[string][]planted{
	"conquest": {
		{"conquest/conquest.p4", "md.report.delay = delay;", "md.report.delay = calm;"},
		{"conquest/conquest.p4", "md.report.flow = bridged.row_1;", "md.report.flow = bridged.row_0;"},
		{"conquest/conquest.p4", "md.report.limit = limit;", "md.report.limit = 0;"},
		{"conquest/conquest.p4", "md.report.front = FRONT_REPORT;", "md.report.front = 2;"},
		{"conquest/arrive.p4", "hdr.bridged.pad_1 = 0;", "hdr.bridged.pad_1 = 1;"},
		{"conquest/arrive.p4", "hdr.bridged.row_1 = row_1_6.get(FLOW_6);", "hdr.bridged.row_1 = row_1_6.get(FLOW_4);"},
		{"conquest/arrive.p4", "0x080 &&& 0x180: through(2);", "0x080 &&& 0x180: through(3);"},
		{"conquest/top.p4", "FRONT_REPORT: report;", "7: report;"},
		{"conquest/top.p4", "pkt.emit(hdr.report);", ""},
	},
	"ahab": {
		{"ahab/leaving.p4", "md.carry.pad = 0;", "md.carry.pad = 1;"},
		{"ahab/leaving.p4", "md.carry.ceiling = ceiling;", "md.carry.ceiling = AHAB_FULL;"},
		{"ahab/ahab.p4", "hdr.bridged.session = (bit<8>)session;", "hdr.bridged.session = 1;"},
		{"ahab/ahab.p4", "hdr.bridged.high = number - share_high;", "hdr.bridged.high = number - share_mid;"},
		{"ahab/ahab.p4", "hdr.bridged.amount = len << 4;", "hdr.bridged.amount = len << 5;"},
		{"ahab/question.p4", "const bit<8> FRONT_SECOND = 1;", "const bit<8> FRONT_SECOND = 2;"},
	},
	"precision": {
		{"precision/precision.p4", "q.carry.value = value;", "q.carry.value = 0;"},
		{"precision/precision.p4", "q.carry.pad = 0;", "q.carry.pad = 1;"},
		{"include/forward.p4", "if (hdr.second.isValid()) {", "if (hdr.tcp.isValid()) {"},
	},
	"hhh": {
		{"hhh/hhh.p4", "q.carry.level = tag[15:8];", "q.carry.level = tag[7:0];"},
		{"hhh/hhh.p4", "q.carry.bank = bank;", "q.carry.bank = 0;"},
	},
	"reorder": {
		{"reorder/reorder.p4", "q.carry.value = power;", "q.carry.value = 1;"},
		{"reorder/reorder.p4", "q.carry.role = ROLE_TAKE_1;", "q.carry.role = ROLE_TAKE_0;"},
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

// checkHeaders plants each of a twin's wrong headers, which a run of p has to find.
func checkHeaders(t *testing.T, tw *twin.Twin, form twin.Form, p *pair) {
	files, err := tw.Text(form)
	if err != nil {
		t.Fatal(err)
	}
	if len(tw.Emits) > 0 && len(wrongHeaders[tw.Name]) == 0 {
		t.Errorf("%s makes headers, and none is planted wrong", tw.Name)
	}
	for _, bug := range wrongHeaders[tw.Name] {
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
		if err = p.play(sw); err == nil {
			t.Errorf("%s: %s for %s is not found", bug.file, bug.to, bug.from)
			continue
		}
		t.Logf("%s: %s for %s: %.200v", bug.file, bug.to, bug.from, err)
	}
}
