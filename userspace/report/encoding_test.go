package report

import (
	"bytes"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report/ordered"
)

// An encoding that is shared gives the text that each line has alone, and none once the report is another.
func TestEncodingIsShared(t *testing.T) {
	clock := Clock{UnixOffsetNS: 1e18}
	for _, first := range []Line{fixtureLine(), fixtureTruth()} {
		first.Encoding = NewEncoding(first)
		later, other, exact := first, first, first
		exact.Truth = &Body{Values: []Value{{Name: "exact", Value: 1.0}}}
		later.Window.Start, later.Window.End, later.Window.Number, later.Instance = later.Window.End, 2*later.Window.End, 7, "another"
		other.Report.Values = append(other.Report.Values[:1:1], other.Report.Values...)
		other.Report.Values[0].Name = "one_more"
		for _, with := range []layout{{}, {clock: &clock}, {clock: &clock, cdf: true}} {
			for n, l := range []Line{first, later, other, first, exact} {
				want, err := ordered.Marshal(l.object(with))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := l.encode(with); err != nil || !bytes.Equal(got, want) {
					t.Errorf("line %d, %+v: %v\n%s\nwant\n%s", n, with, err, got, want)
				}
				if l.Encoding.Fits(l) != (n != 2 && n != 4) {
					t.Errorf("line %d fits: %v", n, l.Encoding.Fits(l))
				}
			}
		}
		if &first.Encoding.text[1][0] != &later.Encoding.text[1][0] {
			t.Error("encoded twice")
		}
	}
}
