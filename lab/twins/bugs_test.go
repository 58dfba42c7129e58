// Package twins plants bugs in the P4 twins and asks whether the comparison of make test finds them.
package twins

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/lab/twins/mutate"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/p4"
	_ "github.com/xdpmon/xdpmon/p4/all"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/structure"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/twins"
	_ "github.com/xdpmon/xdpmon/userspace/all"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(300) // recordings are large and stay
	testutil.Main(m)
}

const (
	bugsOfATwin = 16
	bugSeed     = 16
	seedEnv     = "XDPMON_TWIN_SEED" // draws other bugs
	bugsEnv     = "XDPMON_TWIN_BUGS" // ... and more of each twin
)

func setting(t *testing.T, name string, usual int) int {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: a number is wanted", name, text)
	}
	return n
}

// equivalent bugs change nothing that a packet can show, and why.
var equivalent = map[string]string{
	"HhhC1: entries 0 and 1 of counters":                     "the first one is for a key that both ways hold: only a key that neither holds is admitted",
	"PrecisionC1: entries 0 and 1 of counters":               "the same",
	"PrecisionOutcome: entries 2 and 3 of outcomes":          "nobody is admitted who is in way 1",
	"HhhC1: entry 3 of counters: grow for take":              "second passes come at once in the model: what is written is what was there, and one",
	"HhhOutcome: entries 2 and 3 of outcomes":                "the same",
	"Reasons: entries 0 and 1 of reason":                     "nothing is read behind a header that is not read",
	"BeaucoupEnds.begin: >= for > in ((v - now) > 58659286)": "what a collector has left is its window at most, which is 2^16 ticks less",
	"FridgeSurvived: entries 2 and 3 of survivals":           "what a response without a request reads there is looked at by nobody",
	"FridgeInserts: entries 2 and 3 of inserts":              "the same",
	"Lean: entries 15 and 16 of reports":                     "no packet is of all four: one that ends a delay has no data",
	"Lean: entries 23 and 24 of reports":                     "an ACK that ends a delay has no data, which order and repetition are of",
	"ReorderId1: entries 0 and 1 of ids":                     "a flow that way 0 holds is in no other way: looking there finds nothing, and what it found is used by nobody",
	"Lean: entries 77 and 78 of reports":                     "a packet of both has matched an entry of both before",
	"Reasons: entries 1 and 2 of reason":                     "an IP header that is not read is not there",
	"Reasons: entries 3 and 4 of reason":                     "no packet has headers of both versions",
	"ReorderSeqArray: entries 8 and 9 of numbers":            "no role is both that of seizing and one of taking a way",
	"ReorderId1: entries 2 and 3 of ids":                     "a flow that way 0 holds is in no other way, so that looking there finds nothing",
	"BeaucoupEnds.begin: 58659286 + 1":                       "what a collector has left is its window at most, which is 2^16 ticks less",
	"BeaucoupOnehot: 0 + 1":                                  "every coupon that is drawn has an entry",
	"FridgeOutcome: entries 3 and 4 of outcomes":             "the two are added up: a host has one counter for them",
	"Reorder: entries 2 and 3 of kinds":                      "a SYN without data is the entry's before them",
	"Reorder: ahead[31:31] by -1":                            "sizes are far below 2^30: both bits of their difference are its sign",
}

// families of bugs that change nothing: what follows one rule in many arrays.
var families = []struct{ what, why string }{
	{`^Reasons: \(0 &&& 65534\) for 0 of prsr\.parser_err`, "bit 0 is an error of a select without a default, which no parser here has: a packet that is too short is bit 1"},
	{`^(Hhh|Precision|Reorder): without q\.carry\.pad$`, "metadata begin as zeros, and nobody reads it"},
	{`^(beaucoup|fridge|lean|reorder|rttarray)/Clock: 0 \+ 1 in ticks$`, "the 49th bit of the time is above the 32 that are kept: ticks are of less than 2^17 ns"},
	{`^fridge/FridgeOutcome: entries 8 and 9 of outcomes$`, "an end without a record has no leg either; neither of both counters is of the host or in a report"},
	{`^ReorderCountArray: \(0 &&& 252\) for \(2 &&& 254\) of role in entry [56] of counts$`, "a first pass with this fate has an earlier entry, and what has no role has no fate"},
	{`^FridgeOutcome: \(0 &&& 253\) for ROLE_RESPONSE of role in entry [5-7] of outcomes$`, "what has no role is not asked"},
	{`^FridgeOutcome: .* for others in a miss of outcomes$`, "every role that is asked has an entry"},
	{`^Carpe: \(0 &&& 1\) for _ of left_1 in entry [01] of bundles$`, "what way 0 has found is not asked of way 1: its number is 0"},
	{`^LeanRetCuts: \(0 &&& 4\) for _ of fate in entry \d of cuts$`, "no fate but that of a taken record, which has an entry before, has this bit"},
	{`^Reorder: size_1 for size_0$`, "of a flow in way 0 the size in way 1 is 0, too: nobody looks there"},
	{`^BeaucoupKeys: 0 \+ 1 for own$`, "every entry overwrites it"},
	{`^Reasons: \(0 &&& 1\) for _ of hdr\.ipv6\.isValid\(\) in entry 1 of reason$`, "an IP header that is not read is not there"},
	{`^(Fridge|RttArray): whether or not \(q\.role != ROLE_NONE\)$`, "every table skips what has no role"},
	{`^rttarray/Handshake: final[46] for none in a miss of ask$`, "the ends of handshakes are of the fridge alone"},
	{`^LeanLatRecords\.insert_lat_fr: <= for < in \(mine < v\)$`, "the same number is written over itself"},
	{`^rttarray/RttOutcome: .* of time in entry [012] of outcomes$`, "a request takes no time out of a record: it is 0"},
	{`^rttarray/Handshake: [^&]* in entry ([4-9]|1\d|2[0-5]) of ask$`, "the ends of handshakes are of the fridge alone: here they have no register and no counter; with a wider match they would take packets of other entries"},
	{`^rttarray/Handshake: \((16|0) &&& \d+\) for \(16 &&& 23\) of hdr\.tcp\.flags in entry ([4-9]|1\d|2[0-5]) of ask$`, "the same: whom such an entry takes more, no earlier one has"},
	{`^rttarray/Handshake: no entry ([4-9]|1\d|2[0-5]) of ask$`, "the same"},
	{`^Conquest[TS]\d(_\d)?\.read_cell: [13] \+ 1$`, "a snapshot's windows are the number of snapshots apart: of four (two), a window that is read and not four (two) before is three (one) before at most"},
	{`^Hhh(Level|Source|Destination): level_\d for level_\d in a miss of levels$`, "every random word has an entry, and every level that a clone carries"},
	{`^Conquest[TS]\d(_\d)?\.read_cell: < for <= in \(v\.window <= window\)$`, "a window that is read is not the one that is written"},
	{`^(Hhh|Precision)C0: entry 2 of counters: grow for take$`, "second passes come at once in the model: what is written is what was there, and one"},
	{`^PrecisionC1: entry 3 of counters: grow for take$`, "the same"},
	{`^(Hhh|Precision): 0 \+ 1 for value$`, "a second pass overwrites it, and so does who asks for one"},
	{`^(Hhh|Precision)Admission: 0 \+ 1 for left$`, "every entry overwrites it"},
	{`^(Hhh|Precision)K\d\d: 0 \+ 1 for found$`, "neither 0 nor 1 says that a word is the key's"},
	{`^(Hhh|Precision)C\d: 0 \+ 1 for count$`, "who looks overwrites it, and nobody else is asked"},
	{`^(carpe|precision|hhh|lean)/IngressParser: without plain6 to udp$`, "IPv4 alone is measured"},
	{`^CarpeD1\.count_d1: 0 \+ 1 for after$`, "nobody asks what a packet has found that may not begin a bundle"},
	{`^ReorderIdArray\.(renew|leave)_array: (\+ for - in \(now - v\.time\)|>= for > in \(\(now - v\.time\) > 29\)|29 \+ 1 in found)$`,
		"how old the record is decides about other flows' buckets: who may take none, or leaves, is not asked"},
	{`^Reorder(CountArray: entry 6 of counts|SeqArray: entry 10 of numbers|PrefixArray: entry [35] of prefixes): (follow|swap) for (leave|read)$`,
		"the first pass of a flow that leaves for a way has renewed its record, which is not old then; its prefix is the record's"},
	{`^Reorder: entry [0-3] of doors: no_new for shut$`, "a flow in a way has no bucket: that it may take no other one is enough"},
	{`^Reorder: 2 \+ 1 for closed$`, "what is shut is named by nobody: all entries are for 0 and 1"},
	{`^Reorder: (- for \+ in \(first \+ wide\)|1073741825 \+ 1 for wide)$`, "read by the second definition alone, which is not the form that bugs are planted in"},
	{`^ReorderPayload: 0 \+ 1 for (payload|first)$`, "what is no TCP has no role"},
	{`^Reorder: entries 0 and 1 of renewals$`, "a flow is in one way"},
	{`^ReorderId1: entry [02] of ids: look for skip$`, "a flow that way 0 holds is in no other way: looking there finds nothing, and what it found is used by nobody"},
	{`^Reorder: 0 \+ 1 in colour$`, "both meters are without a rate"},
	{`^AhabLeaving: entry 2 of aims: twice for four_times$`, "sums that are as old as can be are compared with nothing: the limit begins anew"},
	{`^Ahab: left\[31:31\] by -1$`, "leases are less than 2^30 epochs: both bits are the difference's sign"},
	{`^Lean(Lat|Loss|Ooo|Ret)\d: 0 \+ 1 for row$`, "neither 0 nor 1 says that a row has reached its limit"},
	{`^Handshake: \(0 &&& 0\) for false of hdr\.ipv4\.isValid\(\) in entry \d*[13579] of ask$`, "the row asks for an IPv6 header, and the parser extracts one of the two"},
	{`^Handshake: \(0 &&& 0\) for false of hdr\.ipv6\.isValid\(\) in entry \d*[02468] of ask$`, "the row asks for an IPv4 header, and the parser extracts one of the two"},
	{`^LeanRetCuts: 0 \+ 1 for found$`, "neither 0 nor 1 says that a packet begins below"},
	{`^LeanRetCuts: entries 0 and 1 of cuts$`, "a record that is taken begins a turn: the others have none"},
	{`^LeanRetMax\.follow_ret_max: > for >= in \(end >= v\)$`, "the same number is written over itself"},
	{`^LeanLengths: 0 \+ 1 for base(_1)?$`, "what has no TCP header has no role"},
	{`^HhhLevel: 0 \+ 1 for (prefix|tag)$`, "every entry overwrites it"},
	{`^CarpeD[01]: 0 \+ 1 for left$`, "both actions of way 0 overwrite it; who does not get to way 1 has found way 0, and what has found neither is told by both"},
	{`^Conquest: 4293918720 \+ 1 in back$`, "the window's begin and the oldest window's are multiples of 2^20 ns: bit 0 of their difference is below what is looked at"},
}

func changesNothing(tw *twin.Twin, b *mutate.Bug) (why string, same bool) {
	if why, same = equivalent[b.What]; same {
		return why, true
	}
	for _, f := range families {
		if re := regexp.MustCompile(f.what); re.MatchString(b.What) || re.MatchString(tw.Name+"/"+b.What) {
			return f.why, true
		}
	}
	if b.Row != nil && slices.ContainsFunc(tw.Unreachable, func(part string) bool { return strings.Contains(twins.EntryOf(b.Table, b.Row), part) }) ||
		b.Action != "" && slices.ContainsFunc(tw.Unreachable, func(part string) bool {
			return strings.HasPrefix(part, "action ") && strings.HasSuffix(part, "."+b.Action)
		}) {
		return "the twin says that no packet gets there", true
	}
	return "", false
}

// otherTexts are forms with rows, tables or parser states that the last form of their twin has not.
var otherTexts = map[string][]string{"fridge": {"dns", "data"}, "precision": {"srcdst", "sport", "proto"}, "hhh": {"both"},
	"lean": {"bits-latency", "bits-loss", "bits-ooo", "bits-retrans"}, "conquest": {"two"}}

// played are recordings by twin and form: a bug that one form's packets do not find is looked for in others.
var played = map[string]twins.Recording{}

func recordingOf(tw *twin.Twin, form twin.Form) (r twins.Recording, err error) {
	key := tw.Name + "/" + form.Name
	if r, ok := played[key]; ok {
		return r, nil
	}
	if r, err = twins.RecordToPlay(tw, form); err == nil {
		played[key] = r
	}
	return r, err
}

// plantedForms of a twin: the last, and what has a text that the last has not.
func plantedForms(tw *twin.Twin) (forms []twin.Form) {
	for _, form := range tw.FormsOf() {
		if slices.Contains(otherTexts[tw.Name], form.Name) {
			forms = append(forms, form)
		}
	}
	return append(forms, tw.LastForm())
}

// TestPlantedBugs: 95 of a hundred bugs are found that change what the twin does.
func TestPlantedBugs(t *testing.T) {
	testutil.NeedRoot(t)
	planted, found := 0, 0
	for _, tw := range twin.All() {
		for _, form := range plantedForms(tw) {
			t.Run(tw.Name+"/"+form.Name, func(t *testing.T) {
				n, f := plant(t, tw, form)
				planted, found = planted+n, found+f
			})
		}
	}
	t.Logf("%d of %d found", found, planted)
	if found*100 < planted*95 {
		t.Errorf("%d of %d planted bugs were found, want 95 %%", found, planted)
	}
}

func plant(t *testing.T, tw *twin.Twin, form twin.Form) (planted, found int) {
	recording, err := recordingOf(tw, form)
	if err != nil {
		t.Fatal(err)
	}
	if form.Name == tw.LastForm().Name {
		t.Run("texts", func(t *testing.T) { checkTexts(t, tw, form, recording) })
	}
	files, err := tw.Text(form)
	if err != nil {
		t.Fatal(err)
	}
	program, err := run.Read(files, tw.Name+"/top.p4", run.Tofino1, form.Define)
	if err != nil {
		t.Fatal(err)
	}
	asItStands, err := run.New(program, run.Tofino1)
	if err != nil {
		t.Fatal(err)
	}
	host, err := structure.OfHost(tw, form)
	if err != nil {
		t.Fatal(err)
	}
	var others []func(b *mutate.Bug) (string, error)
	for _, f := range plantedForms(tw) {
		if f.Name == form.Name || form.Name == tw.LastForm().Name {
			continue
		}
		other, err := elsewhere(tw, f)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, other)
	}
	committed, err := fs.ReadFile(p4.Sources, tw.Name+"/tables.p4")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	by := map[string]int{}
	bugs := mutate.Draw(mutate.Find(program, asItStands), rand.New(rand.NewPCG(uint64(setting(t, seedEnv, bugSeed)), 1)), setting(t, bugsEnv, bugsOfATwin))
	for _, b := range bugs {
		b.Plant()
		how, err := detect(tw, form, program, host, recording)
		b.Remove()
		if why, same := changesNothing(tw, b); same {
			if err != nil && how != "by structure" {
				t.Errorf("%s is said to change nothing (%s), but: %v", b, why, err)
			}
			continue
		}
		if err == nil && generated(b, committed) {
			how, err = "by generator", errors.New("the text is not what the generator writes (p4: TestGeneratedParts)")
		}
		for _, other := range others {
			if err == nil {
				how, err = other(b)
			}
		}
		planted++
		if err == nil {
			t.Logf("not found: %s", b)
			continue
		}
		t.Logf("%s: %s: %.300v", how, b, err)
		by[how]++
		found++
	}
	t.Logf("%d of %d found: %v", found, planted, by)
	return planted, found
}

// elsewhere plants a bug of a form's text in another form, which make test runs as well.
func elsewhere(tw *twin.Twin, form twin.Form) (find func(b *mutate.Bug) (how string, err error), err error) {
	recording, err := recordingOf(tw, form)
	if err != nil {
		return nil, err
	}
	files, err := tw.Text(form)
	if err != nil {
		return nil, err
	}
	program, err := run.Read(files, tw.Name+"/top.p4", run.Tofino1, form.Define)
	if err != nil {
		return nil, err
	}
	asItStands, err := run.New(program, run.Tofino1)
	if err != nil {
		return nil, err
	}
	host, err := structure.OfHost(tw, form)
	if err != nil {
		return nil, err
	}
	bugs := map[string]*mutate.Bug{}
	for _, kind := range mutate.Find(program, asItStands) {
		for _, b := range kind {
			bugs[b.String()] = b
		}
	}
	return func(b *mutate.Bug) (string, error) {
		same := bugs[b.String()]
		if same == nil {
			return "", nil
		}
		same.Plant()
		defer same.Remove()
		_, err := detect(tw, form, program, host, recording)
		return "in form " + form.Name, err
	}, nil
}

// testedEntries are of controls that only other forms have, and what tests their generator.
var testedEntries = map[string]string{
	"HhhSource": "userspace/hhh: TestPairLevels", "HhhDestination": "userspace/hhh: TestPairLevels", "LeanKey": "userspace/lean/entries: TestRanges, TestOnes",
}

// inControl is the control that a bug is in.
var inControl = regexp.MustCompile(`^\w+`)

// generated reports whether a bug is in text that package p4 compares, byte for byte, with what its generator writes: in parameters, or in a control of the committed
// tables. What a generator writes for other forms alone is compared with nothing, unless a test reads its entries.
func generated(b *mutate.Bug, committed []byte) bool {
	control := inControl.FindString(b.What)
	return b.Row != nil && testedEntries[control] != "" || strings.HasSuffix(b.File, "/params.p4") ||
		strings.HasSuffix(b.File, "/tables.p4") && bytes.Contains(committed, []byte("control "+control+"("))
}

// detect does what make test does with a program: it is read, compared by structure, and run.
func detect(tw *twin.Twin, form twin.Form, program *syntax.Program, host []pisa.Touch, recording twins.Recording) (how string, err error) {
	sw, err := run.New(program, run.Tofino1)
	if err != nil {
		return "refused", err
	}
	if err := tw.Ready(sw, run.Tofino1, form); err != nil {
		return "refused", err
	}
	if err := recording.Play(sw); err != nil {
		return "by packets", err
	}
	if len(tw.Saturating) > 0 {
		if sw, err = run.New(program, run.Tofino1); err == nil {
			err = errors.Join(tw.Ready(sw, run.Tofino1, form), recording.Full(sw))
		}
		if err != nil {
			return "by packets", err
		}
	}
	list, err := structure.ListOf(tw)
	if err != nil {
		return "", err
	}
	touches, err := structure.Of(program, structure.WindowOf(tw))
	if err != nil {
		return "by structure", err
	}
	if unlisted := list.Unlisted(host, touches); len(unlisted) > 0 {
		return "by structure", errors.New(unlisted[0].String())
	}
	return "", nil
}
