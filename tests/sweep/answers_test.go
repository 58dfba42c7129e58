package sweep

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

var update = flag.Bool("update", false, "rewrite the answers")

// parameters of a line, KEY=VALUE each.
func parameters(t *testing.T, d *algo.Descriptor, line string) algo.Values {
	t.Helper()
	set := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		set[key] = value
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The answers of captures, and the measures that findings are made of, do not change unnoticed: a change needs -update, and an entry in the changelog for users who compare windows of years. The parameters of an
// algorithm are in testdata/NAME.jsonl: lines of parameters after a #, each before its answer.
func TestAnswers(t *testing.T) {
	testutil.NeedRoot(t)
	scan, err := traffic.NewLean(traffic.LeanOptions{Packets: 200, Flows: 100, Span: 10 * time.Second, Heavy: 10, Victims: 1, Scan: 3000, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	all := append(mixedFrames(t, 10*time.Second), framesOf(t, scan)...)
	slices.SortStableFunc(all, func(a, b packet.Frame) int { return int(a.Time - b.Time) })
	for i, f := range all { // captures have any length of what packets carry
		all[i].Data = append(bytes.Clone(f.Data), make([]byte, min(i%9, f.Len-len(f.Data)))...)
	}
	forAll(t, func(t *testing.T, s session.Selected) {
		path := filepath.Join("testdata", s.Descriptor.Name+".jsonl")
		want, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("nothing is asked: no %s", path)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for line := range strings.Lines(string(want)) {
			if asked, ok := strings.CutPrefix(line, "#"); ok {
				s.Values = parameters(t, s.Descriptor, asked)
				fmt.Fprint(&got, line)
				answer(t, s, all, &got)
			}
		}
		if *update {
			err = os.WriteFile(path, got.Bytes(), 0o644)
		} else {
			differ(t, got.String(), string(want))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

func answer(t *testing.T, s session.Selected, all frames, to *bytes.Buffer) {
	t.Helper()
	cfg := session.Config{Algorithms: []session.Selected{s}, Proven: true, Window: 5 * time.Second, Seed: 7, Truth: true, Emit: func(l report.Line) error {
		b, err := l.Record(report.Clock{Name: "capture"})
		to.Write(append(long.ReplaceAllFunc(b, short), '\n'))
		if rule := s.Descriptor.Findings; rule != nil {
			to.Write(long.ReplaceAllFunc(measures(rule(l)), short))
		}
		return err
	}}
	if err := session.ReplaySource(context.Background(), cfg, "mixed", all.source(), nil); err != nil {
		t.Fatal(err)
	}
}

// measures writes what findings are made of, a line each, with the first of those who are blamed.
func measures(seen finding.Seen) []byte {
	var b bytes.Buffer
	for _, m := range seen.Measures {
		all := len(m.Blames)
		m.Blames = m.Blames[:min(all, 3)]
		fmt.Fprintf(&b, "measure %q blames %d\n", fmt.Sprintf("%+v", m), all)
	}
	for _, text := range seen.Unable {
		fmt.Fprintf(&b, "unable %q\n", text)
	}
	return b.Bytes()
}

// long numbers may have another end: sums are in any order.
var long = regexp.MustCompile(`\d+\.\d{8,}(e-\d+)?`)

func short(number []byte) []byte {
	x, _ := strconv.ParseFloat(string(number), 64)
	return strconv.AppendFloat(nil, x, 'g', 8, 64)
}

// differ shows where.
func differ(t *testing.T, got, want string) {
	t.Helper()
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		x, y := "", ""
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x == y {
			continue
		}
		at := 0
		for at < min(len(x), len(y)) && x[at] == y[at] {
			at++
		}
		from := max(0, at-60)
		t.Errorf("line %d from byte %d on: …%.120s…, it was …%.120s…", i+1, at, x[from:], y[from:])
		return
	}
}
