package figure

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := &Table{Columns: []string{"what", "value"}}
	table.Add("a|b", "1")
	table.Add("short")
	want := "| what | value |\n|:---|---:|\n| a\\|b | 1 |\n| short |  |\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Percent(0.0812), "8.1 %"}, {Percent(0.0041), "0.41 %"}, {Percent(1.684), "168 %"}, {Percent(math.NaN()), "-"},
		{Percent(math.Inf(1)), "-"}, {Power(4096), "4096"}, {Power(1.0 / 512), "1/512"}, {Power(0.3), "0.3"}, {Power(math.Copysign(0, -1)), "0"},
		{Factor(2.44), "2.4x"}, {Factor(math.NaN()), "-"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestPowers(t *testing.T) {
	a := Axis{Base: 2, Every: 2}
	var labels []string
	for _, tick := range a.ticks(a.place(200), a.place(5000)) {
		labels = append(labels, tick.Label)
	}
	if got := strings.Join(labels, " "); got != "256  1024  4096" {
		t.Errorf("labels %q", got)
	}
	b := Axis{Base: 10}
	if n := len(b.ticks(0, 1)); n != 10 { // 1 to 10
		t.Errorf("%d marks from 1 to 10", n)
	}
}

// A figure is well-formed, names its curves, and bears points that cannot be drawn.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	f := &Figure{Panels: []Panel{
		{Title: "left", X: Axis{Label: "memory", Base: 2}, Y: Axis{Label: "error", Base: 10}, Legend: TopLeft, Series: []Series{
			{Name: "a curve", Points: []Point{{256, 1}, {512, 0}, {1024, math.NaN()}, {4096, math.Inf(1)}, {8192, 20}}, Style: Style{Marks: true}},
			{Name: "nothing", Points: []Point{{1, math.NaN()}}},
		}},
		{Title: "right", X: Axis{Label: "percentile", Min: 0, Max: 100, Every: 20}, Y: Axis{Label: "error"},
			Series: []Series{{Name: "not named", Points: []Point{{0, -1}, {100, 1}}}}},
	}}
	link, err := f.Save(dir, "x.svg", "two panels")
	if err != nil || link != "![two panels](x.svg)\n" {
		t.Fatalf("link %q, error %v", link, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "x.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{">a curve<", ">left<", ">right<", ">256<", ">100<", ">percentile<"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not in the figure", want)
		}
	}
	for _, not := range []string{">nothing<", ">not named<", "NaN", "Inf"} {
		if strings.Contains(string(text), not) {
			t.Errorf("%s is in the figure", not)
		}
	}
}
