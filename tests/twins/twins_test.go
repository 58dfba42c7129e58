package twins

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"

	_ "github.com/xdpmon/xdpmon/p4/all"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/tests/testutil"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/capture"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(300) // recordings are large and stay
	testutil.Main(m)
}

// packetsEnv raises the number of packets of the model, which every twin and form gets; the study has a million, and seedEnv draws others than
// make test has.
const (
	packetsEnv = "XDPMON_TWIN_PACKETS"
	seedEnv    = "XDPMON_TWIN_SEED"
)

const (
	mostOfALine = 25     // of a thousand packets, for what all twins differ in
	ofCaptures  = 10_000 // packets of a window, fewer than a ring has places for
	ofTheStudy  = 50_000 // ... in the study, of which not every one is reported
)

// study: a million packets, all forms, all captures.
func study() bool { return os.Getenv(packetsEnv) != "" }

func modelled(t *testing.T) int {
	text := os.Getenv(packetsEnv)
	if text == "" {
		return mixPackets
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < windows {
		t.Fatalf("%s=%s: a number of packets is wanted", packetsEnv, text)
	}
	return n
}

// seed draws the packets of the study.
func seed(t *testing.T) uint64 {
	text := os.Getenv(seedEnv)
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: a number is wanted", seedEnv, text)
	}
	return n
}

// each opens every twin in every form, by Tofino 2's text outside of the study in the last one only, and judges which of its differences occurred.
func each(t *testing.T, target run.Target, do func(t *testing.T, tw *twin.Twin, form twin.Form) *pair) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		met, packets, reports, ran, wanted := map[string]int{}, 0, 0, 0, 0
		fields := map[string]bool{}
		forms := tw.FormsOf()
		if target == run.Tofino2 && !study() {
			forms = forms[len(forms)-1:]
		}
		for _, form := range forms {
			if form.Driven || form.Study && !study() {
				continue
			}
			wanted++
			t.Run(fmt.Sprintf("%s/%s", tw.Name, form.Name), func(t *testing.T) {
				p := do(t, tw, form)
				for name, n := range p.met {
					met[name] += n
				}
				for name, decides := range p.fields {
					fields[name] = fields[name] || decides
				}
				packets, reports, ran = packets+p.packets, reports+p.reports, ran+1
			})
		}
		whole := ran == wanted // and no form alone, which may have nothing to report
		if tw.Reports != nil && whole && reports == 0 {
			t.Errorf("%s: no report in %d packets", tw.Name, packets)
		}
		if list := undecided(fields); whole && len(list) > 0 {
			t.Errorf("%s: nothing compares %q of its digests", tw.Name, list)
		}
		if !t.Failed() && packets > 0 {
			judge(t, tw, met, packets, whole && target == run.Tofino1)
		}
	}
}

// judge the differences that occurred: each one of the list does if all forms ran, and not more often than it states.
func judge(t *testing.T, tw *twin.Twin, met map[string]int, packets int, all bool) {
	t.Logf("%s: %d packets, differences %v", tw.Name, packets, met)
	for _, d := range tw.Differences {
		if n := met[d.Name]; n == 0 && all && !d.Captures && !d.Wraps || n*1000 > d.Max*packets {
			t.Errorf("%s: %q occurred %d times in %d packets; the list states 1 to %d in a thousand", tw.Name, d.Name, n, packets, d.Max)
		}
		delete(met, d.Name)
	}
	for _, name := range []string{unread, lengths} {
		if n := met[name]; n == 0 && all || n*1000 > mostOfALine*packets {
			t.Errorf("%s: %q occurred %d times in %d packets; the list states 1 to %d in a thousand", tw.Name, name, n, packets, mostOfALine)
		}
		delete(met, name)
	}
	delete(met, beginnings)
	for name, n := range met {
		t.Errorf("%s: %q, met %d times, is no line of the list", tw.Name, name, n)
	}
}

// recordings are runs of the model's traffic by twin and form, which several tests use.
var recordings = map[string]*pair{}

// record is Record, once for all tests.
func record(t *testing.T, tw *twin.Twin, form twin.Form) *pair {
	t.Helper()
	key := tw.Name + "/" + form.Name
	if p := recordings[key]; p != nil {
		return p
	}
	r, err := Record(tw, form)
	if err != nil {
		t.Fatal(err)
	}
	recordings[key] = r.pair
	return r.pair
}

// modelRun is a twin in a form beside its bytecode. Tofino 2's text is run by its plan, gets what Tofino 1's got, and has to answer alike. The study runs every
// form by itself, since its packets are too many to be stored.
func modelRun(t *testing.T, tw *twin.Twin, form twin.Form, target run.Target, packets int) *pair {
	if study() {
		p, err := openPair(tw, form, target, byHandOf)
		if err != nil {
			t.Fatal(err)
		}
		defer p.host.close()
		if err := p.feed(newMix(seed(t), packets, mixFlows), min((packets+windows-1)/windows, ofTheStudy)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := record(t, tw, form)
	if target == run.Tofino1 {
		return p
	}
	if err := execute(p, target, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTextIsReached: the model's packets reach every branch, action, state and entry of a twin's text that packets can reach.
func TestTextIsReached(t *testing.T) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		t.Run(tw.Name, func(t *testing.T) {
			checkCoverage(t, tw, record(t, tw, tw.LastForm()))
		})
	}
}

// TestModel: all words are the same at the end of every window, whatever the traffic.
func TestModel(t *testing.T) {
	n := modelled(t)
	for _, target := range []run.Target{run.Tofino1, run.Tofino2} {
		t.Run(fmt.Sprintf("tofino%d", target), func(t *testing.T) {
			each(t, target, func(t *testing.T, tw *twin.Twin, form twin.Form) *pair { return modelRun(t, tw, form, target, n) })
		})
	}
}

// TestFullCountersStay: registers that saturate stay full, also where a host's word cannot be as large.
func TestFullCountersStay(t *testing.T) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		if len(tw.Saturating) == 0 {
			continue
		}
		p := record(t, tw, tw.LastForm())
		sw, err := tw.Build(run.Tofino1, tw.LastForm())
		if err == nil {
			err = p.full(sw)
		}
		if err != nil {
			t.Errorf("%s: %v", tw.Name, err)
		}
	}
}

// stampsTurn runs the model's traffic across the wrap of a switch's 48-bit timestamps, in the middle of a window; the host's 64 bits do not wrap.
func stampsTurn(t *testing.T, tw *twin.Twin, p *pair) {
	t.Helper()
	source := newMix(2, mixPackets/2, mixFlows)
	source.time = stampTurn - clockTurn + mixStart // the mix lets clocks wrap in its middle
	if err := p.feed(source, mixPackets/2); err != nil {
		t.Fatal(err)
	}
	if p.now>>48 != 1 {
		t.Errorf("the run ends at %d ns", p.now)
	}
	for _, d := range tw.Differences {
		if n := p.met[d.Name]; d.Wraps && n == 0 {
			t.Errorf("%q was not met", d.Name)
		}
	}
	clear(p.met)
	p.packets = 0
}

// TestTurnAndCaptures is the same across the wrap of time stamps, and then, with the same bytecode and switch, with real packets: the large captures only in
// the study.
func TestTurnAndCaptures(t *testing.T) {
	testutil.NeedRoot(t)
	for _, tw := range twin.All() {
		forms := tw.FormsOf()
		last := len(forms) - 1
		if !study() {
			forms, last = forms[last:], 0
		}
		for i, form := range forms {
			if form.Driven {
				continue
			}
			t.Run(tw.Name+"/"+form.Name, func(t *testing.T) {
				p, err := openPair(tw, form, run.Tofino1, byHandOf)
				if err != nil {
					t.Fatal(err)
				}
				defer p.host.close()
				if i == last {
					stampsTurn(t, tw, p)
				}
				captures(t, tw, p)
			})
		}
	}
}

func captures(t *testing.T, tw *twin.Twin, p *pair) {
	t.Helper()
	names := []string{"laptop_wan_300s.pcap", "web_reordered.pcap"}
	if study() {
		names = append(names, "speedtest_server.pcap", "composite_120s.pcap")
	}
	paths := testutil.CornerCaptures(t)
	for _, name := range names {
		paths = append(paths, testutil.Trace(t, name))
	}
	p.every = ofCaptures
	for _, path := range paths {
		source, err := capture.Open(path, nil)
		if err != nil {
			continue // no capture at all: package capture's business
		}
		err = p.frames(source, p.apart())
		source.Close()
		if err != nil {
			t.Fatalf("%s: %v", filepath.Base(path), err)
		}
	}
	if err := p.window(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d packets, differences %v", p.packets, p.met)
	for _, d := range tw.Differences {
		if n := p.met[d.Name]; d.Captures && (n == 0 || n*1000 > d.Max*p.packets) {
			t.Errorf("%q occurred %d times in %d packets; the list states 1 to %d in a thousand", d.Name, n, p.packets, d.Max)
		}
	}
}
